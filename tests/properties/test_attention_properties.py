"""Attention on packed tokens, for any lengths, numbers of heads, d_k and d_v."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.model.fast.kernels import dense_attention, packed_attention
from regard.model.masks import SameSequence
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.scaled_dot_product_attention import attention_weights, scaled_dot_product_attention
from regard.packing import Boundaries, unpack
from tests.parity.tolerances import assert_close

pairs = st.lists(st.tuples(st.integers(1, 29), st.integers(1, 29)), min_size=1, max_size=7)
heads = st.integers(1, 5)
widths = st.tuples(st.integers(1, 13), st.integers(1, 13))
seeds = st.integers(0, 2**32)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@given(pairs, heads, widths, st.booleans(), seeds)
def test_packed_attention_is_explicit_attention_on_each_sequence(pairs, n_heads, widths, causal, seed):
    torch.manual_seed(seed)
    queries, keys = (Boundaries.of_lengths(lengths) for lengths in zip(*pairs, strict=True))
    keys = queries if causal else keys
    (d_k, d_v), rule = widths, SameSequence(queries, keys, causal)
    q, k, v = (
        randn(queries.n_tokens, n_heads, d_k),
        randn(keys.n_tokens, n_heads, d_k),
        randn(keys.n_tokens, n_heads, d_v),
    )
    packed = unpack(packed_attention(q, k, v, rule, d_k**-0.5), queries)
    for q_one, k_one, v_one, output in zip(
        unpack(q, queries), unpack(k, keys), unpack(v, keys), packed, strict=True
    ):
        may_attend = torch.ones(len(q_one), len(k_one), dtype=torch.bool)
        alone = (x.transpose(0, 1) for x in (q_one, k_one, v_one))
        expected = scaled_dot_product_attention(*alone, may_attend.tril() if causal else may_attend)
        assert_close(output, expected.transpose(0, 1))


@given(pairs, heads, widths, seeds, st.data())
def test_permuting_the_sequences_permutes_the_outputs(pairs, n_heads, widths, seed, data):
    torch.manual_seed(seed)
    order = data.draw(st.permutations(range(len(pairs))))
    (d_k, d_v), d_model = widths, 7
    module = MultiHeadAttention(d_model, n_heads, d_k=d_k, d_v=d_v).double()

    def run(x: list[torch.Tensor], memory: list[torch.Tensor]) -> list[torch.Tensor]:
        own, source = (Boundaries.of_lengths([len(one) for one in side]) for side in (x, memory))
        output = module(torch.cat(x), torch.cat(memory), SameSequence(own, source, causal=False))
        return unpack(output, own)

    x, memory = ([randn(pair[side], d_model) for pair in pairs] for side in (0, 1))
    with torch.no_grad():
        plain = run(x, memory)
        permuted = run([x[i] for i in order], [memory[i] for i in order])
    for i, output in zip(order, permuted, strict=True):
        assert_close(output, plain[i])


@given(st.integers(1, 5), heads, st.integers(1, 7), st.integers(1, 11), widths, seeds)
def test_whatever_the_mask_weights_are_a_distribution_or_nothing_and_fused_agrees(B, H, L, M, widths, seed):
    torch.manual_seed(seed)
    d_k, d_v = widths
    q, k, v = randn(B, H, L, d_k), randn(B, H, M, d_k), randn(B, H, M, d_v)
    may_attend = torch.rand(B, 1, L, M) < torch.rand(())
    weights = attention_weights(q, k, may_attend)
    assert_close(weights.sum(dim=-1), may_attend.any(dim=-1).expand(B, H, L).double())
    assert (weights[~may_attend.expand_as(weights)] == 0).all()
    assert (weights >= 0).all()
    assert_close(dense_attention(q, k, v, may_attend, d_k**-0.5), weights @ v)


@given(st.integers(1, 5), heads, st.integers(1, 7), st.integers(1, 11), widths, seeds)
def test_permuting_keys_and_values_together_changes_nothing(B, H, L, M, widths, seed):
    torch.manual_seed(seed)
    d_k, d_v = widths
    q, k, v, order = randn(B, H, L, d_k), randn(B, H, M, d_k), randn(B, H, M, d_v), torch.randperm(M)
    expected = scaled_dot_product_attention(q, k, v)
    assert_close(scaled_dot_product_attention(q, k[:, :, order], v[:, :, order]), expected)
