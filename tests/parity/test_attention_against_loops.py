"""Figure 2, both halves, against plain loops."""

from itertools import product

import numpy as np
import pytest
import torch

from regard.model.fast.kernels import dense_attention, packed_attention
from regard.model.masks import SameSequence, causal_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.positional_encoding import rotate
from regard.model.scaled_dot_product_attention import attention_weights, scaled_dot_product_attention
from regard.packing import Boundaries, unpack
from tests.model.small import stirred, weights_of
from tests.parity import loops
from tests.parity.tolerances import ANGLES, assert_close

B, H, L, M, K, U, D = 2, 3, 5, 7, 11, 13, 17
SIMILARITIES = ("scaled-dot", "dot", "cosine", "additive", "bilinear")


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype)


def random_mask(*shape: int) -> torch.Tensor:
    """About half may attend, and one query to nothing."""
    may_attend = torch.rand(*shape) < 0.5
    may_attend[..., 1, :] = False
    return may_attend


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", [None, 0.37])
def test_weights_and_output_of_attention_are_those_of_the_loops(dtype, scale):
    q, k, v = randn(B, H, L, K, dtype=dtype), randn(B, H, M, K, dtype=dtype), randn(B, H, M, U, dtype=dtype)
    may_attend = random_mask(B, H, L, M)
    weights = attention_weights(q, k, may_attend, scale)
    output = scaled_dot_product_attention(q, k, v, may_attend, scale)
    for b, h in product(range(B), range(H)):
        one = (q[b, h].numpy(), k[b, h].numpy(), v[b, h].numpy(), may_attend[b, h].numpy())
        expected_weights, expected_output = loops.attention(*one, scale)
        assert_close(weights[b, h], expected_weights)
        assert_close(output[b, h], expected_output)


@pytest.mark.parametrize("masked", [True, False])
def test_fused_attention_on_ordinary_tensors_is_that_of_the_loops(masked):
    q, k, v = randn(B, H, L, K), randn(B, H, M, K), randn(B, H, M, U)
    may_attend = random_mask(B, 1, L, M) if masked else None
    output = dense_attention(q, k, v, may_attend, K**-0.5)
    for b, h in product(range(B), range(H)):
        may = may_attend[b, 0].numpy() if may_attend is not None else loops.everyone(L, M)
        assert_close(output[b, h], loops.attention(q[b, h].numpy(), k[b, h].numpy(), v[b, h].numpy(), may)[1])


@pytest.mark.parametrize("causal", [True, False])
def test_attention_on_packed_tokens_is_that_of_the_loops(causal):
    queries = Boundaries.of_lengths((5, 2, 13, 7))
    keys = queries if causal else Boundaries.of_lengths((11, 3, 1, 17))
    q, k, v = randn(queries.n_tokens, H, K), randn(keys.n_tokens, H, K), randn(keys.n_tokens, H, U)
    output = packed_attention(q, k, v, SameSequence(queries, keys, causal), K**-0.5)
    pieces = zip(unpack(q, queries), unpack(k, keys), unpack(v, keys), unpack(output, queries), strict=True)
    for q_one, k_one, v_one, output_one in pieces:
        may = loops.causal(len(q_one)) if causal else loops.everyone(len(q_one), len(k_one))
        for h in range(H):
            one = (q_one[:, h].numpy(), k_one[:, h].numpy(), v_one[:, h].numpy(), may)
            assert_close(output_one[:, h], loops.attention(*one)[1])


def block(**options) -> MultiHeadAttention:
    """Multi-head attention with d_k and d_v free of d_model / n_heads, which is not even whole."""
    rotary = options.pop("rotary", False)
    widths = {"d_k": 2 * 5 if rotary else K, "d_v": U, "turn": rotate if rotary else None}
    return stirred(MultiHeadAttention(D, H, **widths, **options)).double()


def looped(module: MultiHeadAttention, x, keys, may_attend, *, rotary=False, similarity="scaled-dot"):
    x, keys, may = x.numpy(), keys.numpy(), np.asarray(may_attend)
    return loops.multi_head_attention(weights_of(module), "", x, keys, H, may, rotary, similarity)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rotary", [True, False])
class TestMultiHeadSelfAttention:
    """Every similarity, with and without biases and rotation, in both forms of input."""

    def test_on_ordinary_tensors_it_is_that_of_the_loops(self, similarity, bias, rotary):
        module = block(bias=bias, rotary=rotary, similarity=similarity)
        x, may_attend = randn(B, L, D), random_mask(B, 1, L, L) | torch.eye(L, dtype=torch.bool)
        with torch.no_grad():
            output = module(x, may_attend=may_attend)
        for b in range(B):
            expected = looped(module, x[b], x[b], may_attend[b, 0], rotary=rotary, similarity=similarity)
            assert_close(output[b], expected, ANGLES if rotary else torch.float64)

    @pytest.mark.parametrize("causal", [True, False])
    def test_on_packed_tokens_it_is_that_of_the_loops(self, similarity, bias, rotary, causal):
        module = block(bias=bias, rotary=rotary, similarity=similarity)
        own = Boundaries.of_lengths((5, 2, 13))
        x = randn(own.n_tokens, D)
        with torch.no_grad():
            output = module(x, may_attend=SameSequence(own, own, causal))
        for x_one, output_one in zip(unpack(x, own), unpack(output, own), strict=True):
            n = len(x_one)
            may = loops.causal(n) if causal else loops.everyone(n, n)
            expected = looped(module, x_one, x_one, may, rotary=rotary, similarity=similarity)
            assert_close(output_one, expected, ANGLES if rotary else torch.float64)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("bias", [True, False])
class TestMultiHeadAttentionToAMemory:
    def test_on_ordinary_tensors_it_is_that_of_the_loops(self, similarity, bias):
        module = block(bias=bias, similarity=similarity)
        x, memory, may_attend = randn(B, L, D), randn(B, M, D), random_mask(B, 1, L, M)
        with torch.no_grad():
            output = module(x, memory, may_attend)
        for b in range(B):
            assert_close(output[b], looped(module, x[b], memory[b], may_attend[b, 0], similarity=similarity))

    def test_on_packed_tokens_it_is_that_of_the_loops(self, similarity, bias):
        module = block(bias=bias, similarity=similarity)
        own, of_memory = Boundaries.of_lengths((5, 2, 13)), Boundaries.of_lengths((3, 11, 7))
        x, memory = randn(own.n_tokens, D), randn(of_memory.n_tokens, D)
        with torch.no_grad():
            output = module(x, memory, SameSequence(own, of_memory, causal=False))
        pieces = zip(unpack(x, own), unpack(memory, of_memory), unpack(output, own), strict=True)
        for x_one, memory_one, output_one in pieces:
            may = loops.everyone(len(x_one), len(memory_one))
            assert_close(output_one, looped(module, x_one, memory_one, may, similarity=similarity))


def test_one_mask_for_all_sequences_serves_as_a_mask_for_each():
    module, x = block(), randn(B, L, D)
    with torch.no_grad():
        once, each = (
            module(x, may_attend=causal_mask(L)),
            module(x, may_attend=causal_mask(L).expand(B, H, L, L)),
        )
    assert_close(once, each)
    assert_close(once[1], looped(module, x[1], x[1], loops.causal(L)))
