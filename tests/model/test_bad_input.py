"""What does not fit is refused, and the error names the argument, what was expected and what came."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from regard.config import ModelConfig
from regard.errors import ConfigError, ShapeError
from regard.model.build import build
from regard.model.classifier import Classifier
from regard.model.decoder import DecoderLayer
from regard.model.embedding import Embedding
from regard.model.encoder import Encoder
from regard.model.fast.kernels import packed_attention
from regard.model.language_model import LanguageModel
from regard.model.masks import SameSequence, causal_mask, length_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.positional_encoding import rotate
from regard.model.scaled_dot_product_attention import attention_weights, scaled_dot_product_attention
from regard.model.transformer import Transformer
from regard.packing import Boundaries, pack
from tests.model.small import INPUT_LENGTHS, V, random_pack, small_config, small_model
from tests.parity.tolerances import assert_close

B, H, L, M, K, U, D = 2, 3, 5, 7, 11, 13, 17


@contextmanager
def refused(argument: str, expected: object, got: object) -> Iterator[None]:
    """The block raises a ShapeError whose three parts hold these words."""
    with pytest.raises(ShapeError) as caught:
        yield
    error = caught.value
    assert argument in error.argument
    assert str(expected) in str(error.expected)
    assert str(got) in str(error.got)
    assert isinstance(error, ValueError)


@pytest.fixture
def block() -> MultiHeadAttention:
    return MultiHeadAttention(D, H, d_k=K, d_v=U)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(B, L, D)


class TestShapes:
    @pytest.mark.parametrize("shape", [(B, L, D + 2), (L, D), (D,), (B, H, L, D)])
    def test_an_input_of_another_width_or_number_of_dimensions(self, block, shape):
        with refused("x", f"(batch, length, d_model) with d_model = {D}", shape):
            block(torch.zeros(shape))

    @pytest.mark.parametrize("shape", [(B, M, D + 2), (M, D)])
    def test_a_memory_of_another_width_or_number_of_dimensions(self, block, x, shape):
        with refused("memory", f"d_model = {D}", shape):
            block(x, torch.zeros(shape))

    def test_a_memory_of_another_number_of_sequences(self, block, x):
        with refused("memory", B, 3):
            block(x, torch.zeros(3, M, D))

    @pytest.mark.parametrize("shape", [(L, D + 2), (1, L, D), (L,)])
    def test_packed_tokens_of_another_width_or_number_of_dimensions(self, block, shape):
        own = Boundaries.of_lengths((2, 3))
        with refused("x", f"(tokens, d_model) with d_model = {D}", shape):
            block(torch.zeros(shape), may_attend=SameSequence(own, own, causal=True))

    @pytest.mark.parametrize("n_tokens", [3, 11])
    def test_another_number_of_packed_tokens_than_the_boundaries_say(self, block, n_tokens):
        own = Boundaries.of_lengths((2, 3))
        with refused("x", 5, n_tokens):
            block(torch.zeros(n_tokens, D), may_attend=SameSequence(own, own, causal=True))

    @pytest.mark.parametrize("n_tokens", [3, 11])
    def test_another_number_of_packed_memory_tokens_than_the_boundaries_say(self, block, n_tokens):
        own, source = Boundaries.of_lengths((2, 3)), Boundaries.of_lengths((1, 6))
        with refused("memory", 7, n_tokens):
            block(torch.zeros(5, D), torch.zeros(n_tokens, D), SameSequence(own, source, causal=False))

    def test_queries_and_keys_of_different_sequences(self):
        queries, keys = Boundaries.of_lengths((2, 3)), Boundaries.of_lengths((1, 6, 2))
        q, k = torch.zeros(5, H, K), torch.zeros(9, H, K)
        with refused("keys", 2, 3):
            packed_attention(q, k, k, SameSequence(queries, keys, causal=False), 1.0)

    def test_keys_of_another_width_than_the_queries(self):
        with refused("k", K, U):
            attention_weights(torch.zeros(B, H, L, K), torch.zeros(B, H, M, U))

    def test_a_decoder_layer_that_is_not_given_its_memory(self):
        config = small_config()
        with refused("memory", "encoder", "None"):
            DecoderLayer(config)(torch.zeros(B, L, config.d_model), None, causal_mask(L))

    def test_a_whole_stack_names_the_argument_too(self):
        config = small_config()
        with refused("x", f"d_model = {config.d_model}", (B, L, D)):
            Encoder(config)(torch.zeros(B, L, D))

    @pytest.mark.parametrize("tokens", [[[1, 2]], torch.tensor([[1, 2]])])
    def test_tokens_that_were_not_packed(self, tokens):
        with refused("tokens", "regard.pack", type(tokens).__name__):
            small_model()(tokens, tokens)

    def test_new_tokens_for_another_number_of_rows_than_the_cache_has(self):
        model = small_model(architecture="decoder")
        with refused("ids", "each of the cache's 2 rows", 3):
            model.extend(pack([[1], [2], [3]]), model.start(2, 5))

    # torch's own tracer does what torch warns of.
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_compiled_pack_of_a_length_that_no_tiles_cover(self):
        torch.compiler.reset()
        model = torch.compile(small_model(architecture="decoder"), backend="eager")
        with refused("ids", "a multiple of 128 packed tokens", 3):
            model(pack([[1, 2], [3]]))


class TestMasksOfThreeDimensions:
    def test_sequences_are_not_taken_for_heads_where_there_are_as_many(self):
        block, x = MultiHeadAttention(H * K, H), torch.randn(H, L, H * K)
        may_attend = causal_mask(L).expand(H, L, L)
        with refused("may_attend", "(batch, heads, queries, keys)", (H, L, L)):
            block(x, may_attend=may_attend)
        block(x, may_attend=may_attend[:, None])


class TestHeads:
    @pytest.mark.parametrize("widths", [{}, {"d_k": K}, {"d_v": U}])
    def test_a_width_that_does_not_divide_among_the_heads(self, widths):
        with pytest.raises(ConfigError, match=r"d_model = 17 .* n_heads = 3"):
            MultiHeadAttention(D, H, **widths)

    def test_the_same_in_a_configuration(self):
        with pytest.raises(ConfigError, match=r"d_model = 17 does not divide among 3 heads; 18 does"):
            ModelConfig(d_model=D, n_heads=H, positions="none")

    @pytest.mark.parametrize("n_heads", [0, -3])
    def test_no_heads(self, n_heads):
        with pytest.raises(ConfigError, match=f"n_heads = {n_heads}"):
            MultiHeadAttention(D, n_heads, d_k=K)

    @pytest.mark.parametrize("width", ["d_k", "d_v"])
    def test_a_head_of_no_width(self, width):
        with pytest.raises(ConfigError, match=f"{width} = 0"):
            MultiHeadAttention(H * K, H, **{width: 0})

    def test_a_rotation_of_an_odd_width(self):
        block = MultiHeadAttention(D, H, d_k=K, d_v=U, turn=rotate)
        with refused("d_k", "even", K):
            block(torch.zeros(B, L, D))

    def test_a_rotation_towards_a_memory(self):
        """There are no distances to the memory's tokens: such a block is made without `turn`."""
        block = MultiHeadAttention(D, H, d_k=2 * 5, d_v=U, turn=rotate)
        with refused("memory", "", (B, M, D)):
            block(torch.zeros(B, L, D), torch.zeros(B, M, D))


class TestMasks:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
    def test_a_mask_that_is_not_boolean(self, block, x, dtype):
        mask = torch.ones(L, L, dtype=dtype)
        with refused("may_attend", "boolean tensor, True = may attend", dtype):
            block(x, may_attend=mask)
        with refused("may_attend", "boolean", dtype):
            scaled_dot_product_attention(*(torch.zeros(B, H, L, K) for _ in range(3)), mask)

    @pytest.mark.parametrize(
        "shape", [(M, M), (L, M), (B, L, L), (B, M), (B, H + 2, L, L), (1, B, H, L, L), (B + 1, 1, L, L)]
    )
    def test_a_mask_of_another_size(self, block, x, shape):
        with refused("may_attend", (B, H, L, L), shape):
            block(x, may_attend=torch.ones(shape, dtype=torch.bool))

    def test_a_mask_of_another_size_than_queries_and_memory(self, block, x):
        with refused("may_attend", (B, H, L, M), (L, L)):
            block(x, torch.zeros(B, M, D), torch.ones(L, L, dtype=torch.bool))

    @pytest.mark.parametrize("expanded", [True, False])
    def test_a_causal_mask_upside_down(self, block, x, expanded):
        wrong = ~causal_mask(L)
        with refused("may_attend", "True where a token may attend", "~mask"):
            block(x, may_attend=wrong.expand(B, H, L, L) if expanded else wrong)

    @pytest.mark.parametrize("expanded", [True, False])
    def test_a_padding_mask_upside_down(self, block, x, expanded):
        wrong = ~length_mask(torch.tensor([3, L]))
        with refused("may_attend", "True where a token may attend", "~mask"):
            block(x, may_attend=wrong.expand(B, H, L, L) if expanded else wrong)

    def test_a_causal_and_padding_mask_upside_down(self, block, x):
        with refused("may_attend", "True where a token may attend", "~mask"):
            block(x, may_attend=~(causal_mask(L) & length_mask(torch.tensor([3, L]))))

    def test_the_right_way_up_they_pass(self, block, x):
        for mask in (causal_mask(L), length_mask(torch.tensor([3, L]))):
            assert block(x, may_attend=mask).isfinite().all()

    def test_one_row_for_all_queries_passes_too(self, block, x):
        """(M,) broadcasts to (batch, heads, queries, keys), which is what the error asks for."""
        row = torch.tensor([True, True, False, True, False])
        with torch.no_grad():
            assert_close(block(x, may_attend=row), block(x, may_attend=row.expand(L, L)))

    def test_torch_s_own_causal_mask_of_minus_infinities(self, block, x):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(L)
        with refused("may_attend", "boolean", torch.float32):
            block(x, may_attend=mask)


class TestIds:
    @pytest.mark.parametrize("wrong", [-1, -100, V, V + 2])
    def test_an_id_outside_the_vocabulary(self, wrong):
        model, good = small_model(), pack([[1, 2], [3]])
        bad = pack([[1, 2], [wrong]])
        with refused("ids", f"0 to {V - 1}", wrong):
            model(bad, good)
        with refused("ids", f"0 to {V - 1}", wrong):
            model(good, bad)
        with refused("ids", f"0 to {V - 1}", wrong):
            Embedding(V, D)(torch.tensor([1, wrong]))

    def test_an_id_outside_the_vocabulary_in_a_step(self):
        model = small_model(architecture="decoder")
        with refused("ids", f"0 to {V - 1}", V):
            model.step(torch.tensor([1, V]), model.start(2, capacity=3))

    @pytest.mark.parametrize("sequences", [[], [[]], [[1, 2], []]])
    def test_an_empty_sequence_and_an_empty_batch(self, sequences):
        with refused("lengths", "at least one", "n"):
            pack(sequences)


class TestLengths:
    def test_a_sequence_longer_than_positions_were_learned(self):
        model, fits, too_long = (
            small_model(positions="learned", max_length=7),
            random_pack((3, 7)),
            random_pack((3, 11)),
        )
        model(fits, fits)
        with refused("length", "max_length = 7", 11):
            model(too_long, fits)
        with refused("length", "max_length = 7", 11):
            model(fits, too_long)

    def test_a_text_that_grows_beyond_the_learned_positions(self):
        model = small_model(architecture="decoder", positions="learned", max_length=7)
        _, cache = model.extend(random_pack((3, 7)), model.start(2, capacity=11))
        with refused("length", "max_length = 7", 8):
            model.step(torch.tensor([1, 2]), cache)

    def test_other_positions_have_no_such_limit(self):
        for positions in ("sinusoidal", "rotary", "none"):
            model = small_model(architecture="decoder", positions=positions, max_length=7)
            assert model(random_pack((3, 11))).isfinite().all()

    @pytest.mark.parametrize("outputs", [(3, 11), (3, 11, 5, 2)])
    def test_another_number_of_outputs_than_of_inputs(self, outputs):
        with refused("outputs", len(INPUT_LENGTHS), len(outputs)):
            small_model()(random_pack(INPUT_LENGTHS), random_pack(outputs))


class TestCaches:
    def test_more_tokens_than_there_is_room_for(self):
        model = small_model(architecture="decoder")
        with refused("ids", "at most 5 tokens", 7):
            model.extend(random_pack((3, 7)), model.start(2, capacity=5))
        _, cache = model.extend(random_pack((3, 5)), model.start(2, capacity=5))
        with refused("ids", "at most 5 tokens", 6):
            model.step(torch.tensor([1, 2]), cache)

    @pytest.mark.parametrize("n_rows", [2, 5])
    def test_another_number_of_rows_than_the_cache_has(self, n_rows):
        model = small_model()
        cache = model.start(model.encode(random_pack(INPUT_LENGTHS)), capacity=5)
        with refused("ids", 3, n_rows):
            model.step(torch.zeros(n_rows, dtype=torch.int64), cache)

    def test_ids_of_a_step_in_a_column(self):
        model = small_model(architecture="decoder")
        with refused("ids", "one dimension", (2, 1)):
            model.step(torch.zeros(2, 1, dtype=torch.int64), model.start(2, capacity=5))

    @pytest.mark.parametrize(("capacity", "beams"), [(0, 1), (5, 0), (-1, 2)])
    def test_no_room_or_no_beams(self, capacity, beams):
        model = small_model()
        memory = model.encode(random_pack(INPUT_LENGTHS))
        with refused("beams, capacity", "at least 1", (beams, capacity)):
            model.start(memory, capacity, beams)

    @pytest.mark.parametrize(("n_rows", "capacity"), [(0, 5), (2, 0)])
    def test_no_rows_or_no_room_in_a_language_model(self, n_rows, capacity):
        with refused("capacity", "at least 1", (n_rows, capacity)):
            small_model(architecture="decoder").start(n_rows, capacity)


class TestArchitectures:
    @pytest.mark.parametrize(
        ("assembly", "architecture"),
        [(Transformer, "encoder-decoder"), (LanguageModel, "decoder"), (Classifier, "encoder")],
    )
    def test_an_assembly_refuses_the_configuration_of_another_and_build_chooses_it(
        self, assembly, architecture
    ):
        assert type(build(small_config(architecture=architecture))) is assembly
        for other in {"encoder-decoder", "decoder", "encoder"} - {architecture}:
            with pytest.raises(
                ConfigError, match=f"architecture = '{other}'; {assembly.__name__} needs '{architecture}'"
            ):
                assembly(small_config(architecture=other))
