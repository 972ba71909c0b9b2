"""The softmax written out, which runs while someone looks, against every kernel that runs otherwise."""

import pytest
import torch
from torch import Tensor, nn

from regard.model.build import build
from regard.model.fast import kernels
from regard.model.masks import SameSequence, causal_mask, length_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.scaled_dot_product_attention import scaled_dot_product_attention
from regard.model.taps import recording
from regard.packing import Boundaries
from tests.model.small import INPUT_LENGTHS, OUTPUT_LENGTHS, random_pack, small_config, small_model, stirred
from tests.parity.tolerances import assert_close

B, H, L, M, K, U, D = 2, 3, 5, 7, 11, 13, 17
DTYPES = [torch.float64, torch.float32, torch.bfloat16]


def both(module: nn.Module, *arguments, **options) -> tuple[Tensor, Tensor]:
    """The explicit answer, and the one that nobody watched."""
    with recording(module):
        explicit = module(*arguments, **options)
    return explicit, module(*arguments, **options)


def compare_with_gradients(module: nn.Module, inputs: list[Tensor], **options) -> None:
    explicit, fused = both(module, *inputs, **options)
    assert_close(fused, explicit)
    along = torch.randn_like(fused)
    wanted = [*inputs, *module.parameters()]
    of_explicit, of_fused = (torch.autograd.grad((y * along).sum(), wanted) for y in (explicit, fused))
    for one, other in zip(of_fused, of_explicit, strict=True):
        scale = float(other.abs().max())
        assert_close(one.double() / scale, other.double() / scale, fused.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("similarity", ["scaled-dot", "dot", "cosine", "bilinear"])
class TestMultiHeadAttention:
    """Values, and gradients of inputs and weights; the additive similarity is always written out."""

    def block(self, similarity: str, dtype: torch.dtype) -> MultiHeadAttention:
        weights = torch.float64 if dtype == torch.float64 else torch.float32
        return stirred(MultiHeadAttention(D, H, d_k=K, d_v=U, similarity=similarity)).to(weights)

    def randn(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return (0.5 * torch.randn(*shape)).to(dtype).requires_grad_()

    def test_on_ordinary_tensors(self, similarity, dtype):
        x = self.randn(B, L, D, dtype=dtype)
        may_attend = causal_mask(L) & length_mask(torch.tensor([L, 3]))
        compare_with_gradients(self.block(similarity, dtype), [x], may_attend=may_attend)

    def test_on_ordinary_tensors_without_a_mask(self, similarity, dtype):
        inputs = [self.randn(B, L, D, dtype=dtype), self.randn(B, M, D, dtype=dtype)]
        compare_with_gradients(self.block(similarity, dtype), inputs)

    @pytest.mark.parametrize("causal", [True, False])
    def test_on_packed_tokens(self, similarity, dtype, causal):
        own = Boundaries.of_lengths((5, 2, 13))
        x = self.randn(own.n_tokens, D, dtype=dtype)
        compare_with_gradients(self.block(similarity, dtype), [x], may_attend=SameSequence(own, own, causal))

    def test_on_packed_tokens_and_a_memory(self, similarity, dtype):
        own, of_memory = Boundaries.of_lengths((5, 2, 13)), Boundaries.of_lengths((3, 11, 7))
        inputs = [self.randn(own.n_tokens, D, dtype=dtype), self.randn(of_memory.n_tokens, D, dtype=dtype)]
        source = SameSequence(own, of_memory, causal=False)
        compare_with_gradients(self.block(similarity, dtype), inputs, may_attend=source)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("lengths", [(5, 2, 13), (263, 3, 257, 1)], ids=["short", "long"])
def test_both_kernels_for_packed_tokens_agree_with_the_formula(monkeypatch, causal, lengths):
    """Sequences up to kernels.SHORT are written out with their gradient; longer ones take torch's kernel."""
    own = Boundaries.of_lengths(lengths)
    rule = SameSequence(own, own, causal)
    q, k, v = (torch.randn(own.n_tokens, H, width, dtype=torch.float64) for width in (K, K, U))
    along = torch.randn(own.n_tokens, H, U, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (q, k, v)]

    def formula() -> Tensor:
        blocks = (own.padded.pad(x)[0].transpose(1, 2) for x in inputs)
        heads = scaled_dot_product_attention(*blocks, rule.as_mask())
        return own.padded.unpad([heads.transpose(1, 2)])

    def kernel(short: int) -> Tensor:
        monkeypatch.setattr(kernels, "SHORT", short)
        return kernels.packed_attention(*inputs, rule, K**-0.5)

    answers = [formula(), kernel(kernels.SHORT), kernel(0), kernel(10_000)]
    expected, *others = [(y, *torch.autograd.grad((y * along).sum(), inputs)) for y in answers]
    for other in others:
        for one, of_formula in zip(other, expected, strict=True):
            assert_close(one, of_formula)


def test_the_two_kernels_for_packed_tokens_are_two(monkeypatch):
    """Or the test above would compare one with itself."""
    calls = []
    written_out = kernels._ShortAttention.apply
    monkeypatch.setattr(kernels._ShortAttention, "apply", lambda *a: calls.append(len(a)) or written_out(*a))
    for lengths, n_calls in (((kernels.SHORT,), 1), ((kernels.SHORT + 1,), 0)):
        own = Boundaries.of_lengths(lengths)
        x = torch.randn(own.n_tokens, H, K)
        kernels.packed_attention(x, x, x, SameSequence(own, own, causal=True), 1.0)
        assert len(calls) == n_calls
        calls.clear()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"positions": "rotary", "norm_position": "pre"},
        {"positions": "alibi"},
        {"positions": "t5-relative"},
    ],
    ids=["post", "pre", "alibi", "t5-relative"],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_whole_model_gives_the_same_answer_while_someone_looks(settings, dtype):
    model = small_model(dtype=torch.float64 if dtype == torch.float64 else torch.float32, **settings)
    model.compute_dtype = dtype
    with torch.no_grad():
        explicit, fused = both(model, random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS))
    assert_close(fused.log_softmax(dim=-1), explicit.log_softmax(dim=-1), dtype)


@pytest.mark.parametrize("positions", ["rotary", "alibi", "t5-relative"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_cached_step_gives_the_same_answer_while_someone_looks(positions, dtype):
    model = small_model(dtype=dtype, positions=positions)
    with torch.no_grad():
        memory = model.encode(random_pack(INPUT_LENGTHS))
        prompts = random_pack((2, 5, 1, 3, 1, 2))
        fused, _ = model.extend(prompts, model.start(memory, 7, beams=2))
        with recording(model):
            explicit, _ = model.extend(prompts, model.start(memory, 7, beams=2))
    assert_close(fused, explicit)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_bfloat16_is_as_near_to_float32_as_bfloat16_allows(positions):
    model = small_model(dtype=torch.float32, positions=positions)
    inputs, outputs = random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS)
    with torch.no_grad():
        fine = model.output_probabilities.log_probs(model.decode(outputs, model.encode(inputs)))
        model.compute_dtype = torch.bfloat16
        states = model.decode(outputs, model.encode(inputs))
        coarse = model.output_probabilities.log_probs(states)
    assert states.dtype == torch.bfloat16
    assert coarse.dtype == torch.float32
    assert not torch.equal(coarse, fine)
    assert_close(coarse, fine, torch.bfloat16)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_what_flows_is_as_fine_as_the_weights_unless_told_otherwise(architecture, dtype):
    model = build(small_config(architecture=architecture)).eval()
    packs = [random_pack(INPUT_LENGTHS)] * (2 if architecture == "encoder-decoder" else 1)
    assert model.compute_dtype == torch.float32
    assert model(*packs).dtype == torch.float32
    model.to(dtype)
    assert model.compute_dtype == dtype
    assert model(*packs).dtype == dtype
    model.compute_dtype = torch.float32
    assert model(*packs).dtype == torch.float32
