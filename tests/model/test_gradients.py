"""Gradients in float64 against finite differences, for what has a gradient of its own and for the blocks."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, stack_module_state, vmap

from regard.errors import RequestError
from regard.loss import label_smoothed_cross_entropy
from regard.model.add_and_norm import Dropout
from regard.model.decoder import DecoderLayer
from regard.model.fast.kernels import _ShortAttention, packed_attention
from regard.model.masks import SameSequence, causal_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.positional_encoding import rotate
from regard.model.taps import recording
from regard.packing import Boundaries, pack
from tests.model.small import small_config, small_model, stirred
from tests.parity.tolerances import assert_close
from tests.refusals import refused

B, H, L, M, K, U, D = 2, 3, 5, 7, 2, 11, 13


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_of_attention_written_out_with_its_gradient(mask):
    n_keys = L if mask == "causal" else M
    q, k, v = randn(B, H, L, K), randn(B, H, n_keys, K), randn(B, H, n_keys, U)
    exists = torch.tensor([[True] * n_keys, [True] * 3 + [False] * (n_keys - 3)])[:, None, None]
    may_attend = {"none": None, "causal": causal_mask(L)[None, None], "padding": exists}[mask]
    bias = randn(H, L, n_keys)
    assert gradcheck(lambda *x: _ShortAttention.apply(*x[:3], may_attend, 0.7, *x[3:]), (q, k, v, bias))


@pytest.mark.parametrize("causal", [True, False])
def test_of_attention_on_packed_tokens(causal):
    queries = Boundaries.of_lengths((3, 1, 11))
    keys = queries if causal else Boundaries.of_lengths((2, 5, 1))
    rule = SameSequence(queries, keys, causal)
    q, k, v = randn(queries.n_tokens, 2, K), randn(keys.n_tokens, 2, K), randn(keys.n_tokens, 2, 3)
    for inputs in ((q, k, v), (q, k, v, randn(2, 11, 11))):
        assert gradcheck(lambda *x: packed_attention(*x[:3], rule, 0.7, *x[3:]), inputs)
        assert gradgradcheck(lambda *x: packed_attention(*x[:3], rule, 0.7, *x[3:]), inputs)


@pytest.mark.parametrize("similarity", ["scaled-dot", "cosine", "bilinear", "additive"])
@pytest.mark.parametrize("rotary", [True, False])
def test_of_a_packed_block_by_its_inputs_and_all_its_weights(similarity, rotary):
    options = {"d_k": 2, "d_v": 3, "bias": True, "similarity": similarity, "turn": rotate if rotary else None}
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


def pair_of_packs():
    return pack([[1, 2, 3], [4]]), pack([[5, 6], [7, 8, 9]])


def test_second_derivatives_are_those_of_what_is_written_out():
    """Asked for some inputs only, torch does not notice a gradient without a graph: numbers must tell."""
    model = small_model(feed_forward="gelu")
    weights = list(model.parameters())

    def second(seen: bool) -> list[Tensor]:
        with recording(model) if seen else nullcontext():
            log_probs = model(*pair_of_packs()).log_softmax(-1)
        first = torch.autograd.grad(log_probs[:, 3].sum(), weights, create_graph=True)
        return list(torch.autograd.grad(sum((each**2).sum() for each in first), weights))

    for one, other in zip(second(seen=False), second(seen=True), strict=True):
        assert_close(one, other)


def test_dropout_has_a_second_derivative():
    x, added_to = randn(7, 3), randn(7, 3)

    def dropped(x: Tensor, added_to: Tensor) -> Tensor:
        torch.manual_seed(5)
        return Dropout(0.3).train()(x**2, added_to**2)

    assert gradgradcheck(dropped, (x, added_to))


def test_the_loss_refuses_a_second_derivative_that_it_does_not_have():
    states, weight = randn(5, 3), randn(7, 3)
    loss = label_smoothed_cross_entropy(states, weight, torch.arange(5)).smoothed
    with refused("no_second_derivative", "F.cross_entropy", error=RequestError):
        torch.autograd.grad(loss, (states, weight), create_graph=True)


class TestWithTorchFunc:
    def test_gradients_are_those_of_autograd(self):
        model = small_model(feed_forward="gelu")
        weights = dict(model.named_parameters())

        def loss(weights: dict[str, Tensor]) -> Tensor:
            return functional_call(model, weights, pair_of_packs()).log_softmax(-1)[:, 3].sum()

        found = grad(loss)(weights)
        expected = torch.autograd.grad(loss(weights), list(weights.values()))
        for one, other in zip(found.values(), expected, strict=True):
            assert_close(one, other)

    # torch's own forward mode does what torch warns of.
    @pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
    def test_a_hessian(self):
        model = small_model(feed_forward="gelu", encoder_layers=1, decoder_layers=1)
        name = "encoder.layers.0.add_and_norm.0.norm.bias"
        bias = model.get_parameter(name)

        def loss(bias: Tensor) -> Tensor:
            return functional_call(model, {name: bias}, pair_of_packs()).log_softmax(-1)[:, 3].sum()

        expected = torch.autograd.functional.hessian(loss, bias.detach())
        assert_close(hessian(loss)(bias.detach()), expected)

    def test_dropout_in_training(self):
        model = small_model(dropout=0.3).train()
        weights = dict(model.named_parameters())
        found = grad(lambda weights: functional_call(model, weights, pair_of_packs()).sum())(weights)
        assert all(each.isfinite().all() for each in found.values())

    def test_several_models_at_once(self):
        models = [small_model() for _ in range(3)]
        weights, buffers = stack_module_state(models)
        found = vmap(lambda *state: functional_call(models[0], state, pair_of_packs()))(weights, buffers)
        for one, model in zip(found, models, strict=True):
            assert_close(one, model(*pair_of_packs()))
