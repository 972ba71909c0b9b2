"""What holds of attention whatever the numbers: rows sum to 1, masked is 0, nothing to see gives zeros."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from regard.model.fast.kernels import dense_attention
from regard.model.masks import SameSequence, causal_mask, length_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.scaled_dot_product_attention import (
    attention_scores,
    attention_weights,
    masked_softmax,
    scaled_dot_product_attention,
)
from regard.model.taps import recording
from regard.packing import Boundaries
from tests.model.small import stirred
from tests.parity.tolerances import assert_close
from tests.refusals import refused

B, H, L, M, K, U, D = 2, 3, 5, 7, 11, 13, 17
DTYPES = [torch.float64, torch.float32, torch.bfloat16]


def random_mask(*shape: int) -> Tensor:
    """About half may attend; the second query to nothing, the third to one key alone."""
    may_attend = torch.rand(*shape) < 0.5
    may_attend[..., 1, :] = False
    may_attend[..., 2, :] = False
    may_attend[..., 2, 3] = True
    return may_attend


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape).to(dtype)


class TestMasks:
    def test_a_causal_mask_lets_a_token_attend_to_itself_and_to_those_before(self):
        assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
        assert causal_mask(3).dtype == torch.bool

    def test_a_length_mask_lets_every_query_attend_to_the_tokens_that_exist(self):
        mask = length_mask(torch.tensor([2, 3]))
        assert mask.shape == (2, 1, 1, 3)
        assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1]]
        assert length_mask(torch.tensor([2]), longest=5)[0, 0, 0].int().tolist() == [1, 1, 0, 0, 0]

    @pytest.mark.parametrize("causal", [True, False])
    def test_the_rule_for_packed_tokens_written_out(self, causal):
        queries = Boundaries.of_lengths((2, 3))
        keys = queries if causal else Boundaries.of_lengths((1, 2))
        mask = SameSequence(queries, keys, causal).as_mask()[:, 0].int().tolist()
        if causal:
            assert mask[1] == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
            assert mask[0][:2] == [[1, 0, 0], [1, 1, 0]]
        else:
            assert mask == [[[1, 0]] * 3, [[1, 1]] * 3]


@pytest.mark.parametrize("dtype", DTYPES)
class TestWeights:
    def test_rows_sum_to_one(self, dtype):
        weights = attention_weights(randn(B, H, L, K, dtype=dtype), randn(B, H, M, K, dtype=dtype))
        assert_close(weights.sum(dim=-1), torch.ones(B, H, L), dtype)
        assert (weights > 0).all()

    def test_masked_weights_are_exactly_zero_and_rows_that_see_something_sum_to_one(self, dtype):
        may_attend = random_mask(B, H, L, M)
        q, k = randn(B, H, L, K, dtype=dtype), randn(B, H, M, K, dtype=dtype)
        weights = attention_weights(q, k, may_attend)
        assert (weights[~may_attend] == 0).all()
        assert (weights[may_attend] > 0).all()
        assert_close(weights.sum(dim=-1), may_attend.any(dim=-1).double(), dtype)
        assert (weights[..., 2, 3] == 1).all()

    def test_masked_scores_do_not_matter_however_large(self, dtype):
        may_attend = random_mask(B, H, L, M)
        scores = randn(B, H, L, M, dtype=dtype)
        spoilt = scores.masked_fill(~may_attend, torch.finfo(dtype).max)
        assert torch.equal(masked_softmax(scores, may_attend), masked_softmax(spoilt, may_attend))

    def test_very_low_scores_where_one_may_attend_beat_masked_ones(self, dtype):
        scores = torch.full((1, 1, 1, 3), -1e30, dtype=dtype)
        weights = masked_softmax(scores, torch.tensor([True, True, False]))
        assert weights.flatten().tolist() == [0.5, 0.5, 0.0]


def test_scores_are_divided_by_the_root_of_d_k_unless_told_otherwise():
    q, k = randn(B, H, L, K), randn(B, H, M, K)
    product = torch.einsum("bhlk,bhmk->bhlm", q, k)
    assert_close(attention_scores(q, k), product / K**0.5)
    assert_close(attention_scores(q, k, scale=0.3), product * 0.3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("road", ["explicit", "fused"])
def test_a_query_that_may_attend_to_nothing_gets_zeros_and_finite_gradients(road, dtype):
    attend = {
        "explicit": scaled_dot_product_attention,
        "fused": lambda q, k, v, mask: dense_attention(q, k, v, mask, K**-0.5),
    }[road]
    shapes = ((B, H, L, K), (B, H, M, K), (B, H, M, U))
    inputs = [randn(*shape, dtype=dtype).requires_grad_() for shape in shapes]
    may_attend = random_mask(B, 1, L, M)
    output = attend(*inputs, may_attend)
    assert (output[:, :, 1] == 0).all()
    assert output.isfinite().all()
    gradients = torch.autograd.grad(output.sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][:, :, 1] == 0).all()
    assert gradients[0].abs().max() > 0


@pytest.mark.parametrize("road", ["explicit", "fused"])
def test_when_nobody_may_attend_to_anything_all_is_zero(road):
    q, k, v = (randn(B, H, L, K).requires_grad_() for _ in range(3))
    nobody = torch.zeros(L, L, dtype=torch.bool)
    if road == "explicit":
        output = scaled_dot_product_attention(q, k, v, nobody)
        assert attention_weights(q, k, nobody).sum() == 0
    else:
        output = dense_attention(q, k, v, nobody, K**-0.5)
    assert (output == 0).all()
    for gradient in torch.autograd.grad(output.sum(), (q, k, v)):
        assert (gradient == 0).all()


@pytest.mark.parametrize("similarity", ["scaled-dot", "cosine", "additive"])
@pytest.mark.parametrize("watched", [True, False])
def test_in_a_whole_block_such_a_query_gets_the_bias_of_w_o_and_finite_gradients(similarity, watched):
    module = stirred(MultiHeadAttention(D, H, d_k=K, d_v=U, bias=True, similarity=similarity)).double()
    x, memory = randn(B, L, D).requires_grad_(), randn(B, M, D).requires_grad_()
    may_attend = random_mask(B, 1, L, M)
    if watched:
        with recording(module) as seen:
            output = module(x, memory, may_attend)
        assert (seen["heads"][:, 1] == 0).all()
    else:
        output = module(x, memory, may_attend)
    assert_close(output[:, 1], module.w_o.bias.expand(B, D))
    for gradient in torch.autograd.grad(output.sum(), (x, memory, *module.parameters())):
        assert gradient.isfinite().all()


def test_a_cosine_of_zero_vectors_is_zero_and_not_nan():
    module = MultiHeadAttention(D, H, d_k=K, d_v=U, similarity="cosine").double()
    x = torch.zeros(B, L, D, dtype=torch.float64, requires_grad=True)
    with recording(module) as seen:
        output = module(x)
    assert (seen["scores"] == 0).all()
    assert torch.autograd.grad(output.sum(), x)[0].isfinite().all()


def test_the_bilinear_similarity_starts_as_the_scaled_dot_product():
    paper = MultiHeadAttention(D, H, d_k=K, d_v=U)
    bilinear = MultiHeadAttention(D, H, d_k=K, d_v=U, similarity="bilinear")
    bilinear.load_state_dict({**bilinear.state_dict(), **paper.state_dict()})
    x = randn(B, L, D, dtype=torch.float32)
    with torch.no_grad():
        assert_close(bilinear(x), paper(x))


def test_a_query_mask_of_one_column_is_a_mask():
    """(L, 1) broadcasts over the keys: some queries may attend to everything, others to nothing."""
    module, x = MultiHeadAttention(D, H, d_k=K, d_v=U).double(), randn(B, L, D)
    may = torch.tensor([True, False, True, True, True])[:, None]
    with torch.no_grad():
        output = module(x, may_attend=may)
        assert_close(output, module(x, may_attend=may.expand(L, L)))
    assert (output[:, 1] == 0).all()


class TestMasksOfAnyPattern:
    """A mask of one's own: here every token may attend to all others of its sequence, but not to itself."""

    def block(self):
        return stirred(MultiHeadAttention(D, H, d_k=K, d_v=U, bias=True)).double()

    def by_hand(self, block, x, mask):
        """Each sequence by itself, from the functions of Figure 2."""
        with recording(block, keep=["q", "k", "v"]) as seen:
            block(x[None])
        q, k, v = (seen[name].transpose(1, 2) for name in ("q", "k", "v"))
        heads = scaled_dot_product_attention(q, k, v, mask)
        return block.w_o(heads.transpose(1, 2).flatten(-2))[0]

    @pytest.mark.parametrize("record", [False, True])
    @torch.no_grad()
    def test_padded_and_packed_are_the_functions_of_each_sequence(self, record):
        block, lengths = self.block(), (5, 2, 7)
        boundaries = Boundaries.of_lengths(lengths)
        x = torch.randn(sum(lengths), D, dtype=torch.float64)
        others = ~torch.eye(7, dtype=torch.bool)
        with recording(block) if record else nullcontext():
            packed = block(x, may_attend=SameSequence(boundaries, boundaries, causal=False, own=others))
            (padded,) = boundaries.padded.pad(x)
            mask = others & boundaries.exists_BL[:, None, None, :]
            dense = boundaries.padded.unpad([block(padded, may_attend=mask)])
        parts = zip(lengths, x.split(lengths), strict=True)
        expected = torch.cat([self.by_hand(block, each, others[:n, :n]) for n, each in parts])
        assert_close(packed, expected)
        assert_close(dense, expected)

    @torch.no_grad()
    def test_a_pattern_may_differ_by_sequence_and_head(self):
        block, lengths = self.block(), (5, 2, 7)
        boundaries = Boundaries.of_lengths(lengths)
        x = torch.randn(sum(lengths), D, dtype=torch.float64)
        own = torch.rand(3, H, 7, 7) < 0.5
        whole = block(x, may_attend=SameSequence(boundaries, boundaries, causal=True, own=own))
        for i, (n, each) in enumerate(zip(lengths, x.split(lengths), strict=True)):
            alone = self.by_hand(block, each, own[i : i + 1, :, :n, :n] & causal_mask(n))
            assert_close(whole.split(lengths)[i], alone)

    def test_a_mask_that_is_the_opposite_of_a_usual_one_is_refused(self):
        block, x = self.block(), torch.zeros(2, 5, D, dtype=torch.float64)
        exists = length_mask(torch.tensor([5, 3]))
        for mask in (~causal_mask(5), ~exists, ~(exists & causal_mask(5))):
            with refused("inverted_mask", "~mask"):
                block(x, may_attend=mask)
        assert block(x, x, ~causal_mask(5)).shape == x.shape  # if it is meant

    def test_a_mask_that_does_not_fit_the_padded_view_is_refused(self):
        boundaries = Boundaries.of_lengths((5, 2))
        with refused("bad_mask", "(2, 1, 5, 5)"):
            SameSequence(boundaries, boundaries, causal=False, own=torch.ones(4, 4, dtype=torch.bool))
        own = torch.ones(2, H + 2, 5, 5, dtype=torch.bool)
        with refused("bad_mask", f"(2, {H}, 5, 5)"):
            self.block()(
                torch.zeros(7, D).double(),
                may_attend=SameSequence(boundaries, boundaries, causal=False, own=own),
            )


@pytest.mark.parametrize("which", ["w_q", "w_k", "w_v"])
@torch.no_grad()
def test_a_bias_of_one_map_alone_is_used(which):
    block = stirred(MultiHeadAttention(D, H, d_k=K, d_v=U)).double()
    x = torch.randn(2, 5, D, dtype=torch.float64)
    bias = torch.randn_like(getattr(block, which).weight[:, 0])
    getattr(block, which).bias = torch.nn.Parameter(bias)
    name = which.removeprefix("w_")
    with recording(block, keep=name) as seen:
        block(x)
    assert_close(seen[name].flatten(-2), x @ getattr(block, which).weight.t() + bias)


def test_a_width_of_zero_is_refused():
    with refused("bad_value", "d_model"):
        MultiHeadAttention(0, 1)
