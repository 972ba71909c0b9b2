"""Gradients in float64 against finite differences, for what has a gradient of its own and for the blocks."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from regard.loss import label_smoothed_cross_entropy
from regard.model.decoder import DecoderLayer
from regard.model.kernels import _ShortAttention, packed_attention
from regard.model.masks import SameSequence, causal_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.packing import Boundaries, pack
from tests.model.small import small_config, small_model, stirred

B, H, L, M, K, U, D = 2, 3, 5, 7, 2, 11, 13


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_of_attention_written_out_with_its_gradient(mask):
    n_keys = L if mask == "causal" else M
    q, k, v = randn(B, H, L, K), randn(B, H, n_keys, K), randn(B, H, n_keys, U)
    exists = torch.tensor([[True] * n_keys, [True] * 3 + [False] * (n_keys - 3)])[:, None, None]
    may_attend = {"none": None, "causal": causal_mask(L)[None, None], "padding": exists}[mask]
    assert gradcheck(lambda *x: _ShortAttention.apply(*x, may_attend, 0.7), (q, k, v))


@pytest.mark.parametrize("causal", [True, False])
def test_of_attention_on_packed_tokens(causal):
    queries = Boundaries.of_lengths((3, 1, 11))
    keys = queries if causal else Boundaries.of_lengths((2, 5, 1))
    rule = SameSequence(queries, keys, causal)
    q, k, v = randn(queries.n_tokens, 2, K), randn(keys.n_tokens, 2, K), randn(keys.n_tokens, 2, 3)
    assert gradcheck(lambda *x: packed_attention(*x, rule, 0.7), (q, k, v))


@pytest.mark.parametrize("similarity", ["scaled-dot", "cosine", "bilinear", "additive"])
@pytest.mark.parametrize("rotary", [True, False])
def test_of_a_packed_block_by_its_inputs_and_all_its_weights(similarity, rotary):
    options = {"d_k": 2, "d_v": 3, "bias": True, "similarity": similarity, "rotary": rotary}
    module = stirred(MultiHeadAttention(5, 2, **options)).double()
    own = Boundaries.of_lengths((3, 1, 2))
    rule = SameSequence(own, own, causal=True)
    names, weights = zip(*module.named_parameters(), strict=True)

    def run(x: Tensor, *weights: Tensor) -> Tensor:
        return functional_call(module, dict(zip(names, weights, strict=True)), (x,), {"may_attend": rule})

    assert gradcheck(run, (randn(own.n_tokens, 5), *weights))


@pytest.mark.parametrize("position", ["post", "pre"])
@pytest.mark.parametrize("feed_forward", ["relu", "swiglu"])
def test_of_a_packed_decoder_layer_by_its_inputs_and_its_memory(position, feed_forward):
    config = small_config(
        d_model=5, n_heads=2, d_k=2, d_v=3, d_ff=7, norm_position=position, feed_forward=feed_forward,
        positions="none",
    )  # fmt: skip
    layer = stirred(DecoderLayer(config)).double()
    own, source = Boundaries.of_lengths((3, 1)), Boundaries.of_lengths((2, 5))
    rules = SameSequence(own, own, causal=True), SameSequence(own, source, causal=False)
    assert gradcheck(lambda x, memory: layer(x, memory, *rules), (randn(4, 5), randn(7, 5)))


def test_of_the_loss_of_a_whole_model_by_its_embeddings():
    """One direction through everything at once: embeddings shared three ways get all three gradients."""
    model = small_model()
    inputs, outputs, targets = (
        pack([[1, 2, 3], [4]]),
        pack([[5, 6], [7, 8, 9]]),
        torch.tensor([6, 0, 8, 9, 1]),
    )

    def loss() -> Tensor:
        states = model.decode(outputs, model.encode(inputs))
        return label_smoothed_cross_entropy(states, model.output_probabilities.weight, targets, 0.1).smoothed

    weight = model.input_embedding.weight
    (gradient,) = torch.autograd.grad(loss(), weight)
    direction, h = torch.randn_like(weight), 1e-6
    with torch.no_grad():
        weight += h * direction
        above = loss()
        weight -= 2 * h * direction
        below = loss()
    slope = float((above - below) / (2 * h))
    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-6)
