"""Residual dropout (5.4): the right share, the right scale, and never outside training."""

import math

import pytest
import torch
import torch.nn.functional as F

from regard.model.add_and_norm import AddAndNorm, Dropout, keep_mask
from regard.model.positional_encoding import Positions
from tests.model.small import INPUT_LENGTHS, OUTPUT_LENGTHS, D, random_pack, small_config, small_model
from tests.parity.tolerances import assert_close, differ

SHARES = [0.1, 0.3, 0.5]
N = 100_003  # prime, so no multiple of the four elements that one draw serves


def training(p: float) -> Dropout:
    return Dropout(p).train()


@pytest.mark.parametrize("p", SHARES)
class TestTheMask:
    def test_the_share_dropped_is_p(self, p):
        dropped = (keep_mask(torch.empty(N), p) == 0).sum().item()
        assert abs(dropped - p * N) < 5 * math.sqrt(N * p * (1 - p))

    def test_what_is_kept_is_scaled_so_that_the_expectation_stays(self, p):
        mask = keep_mask(torch.empty(N, dtype=torch.float64), p)
        values = mask.unique().tolist()
        assert values[0] == 0
        # The share is a whole number of 65,536ths, and the scale is made for that share.
        assert values[1:] == [65536 / (65536 - round(p * 65536))]
        deviation = math.sqrt(p / (1 - p) / N)
        assert abs(mask.mean().item() - 1) < 5 * deviation

    def test_neighbours_are_dropped_independently(self, p):
        """One draw serves four elements: none of them may lean on another."""
        dropped = keep_mask(torch.empty(4 * 25_000), p) == 0
        for distance in (1, 2, 3, 4):
            both = (dropped[distance:] & dropped[:-distance]).float().mean().item()
            n = len(dropped) - distance
            assert abs(both - p * p) < 5 * math.sqrt(p * p * (1 - p * p) / n) + 1e-5
        for lane in range(4):
            assert abs(dropped[lane::4].float().mean().item() - p) < 5 * math.sqrt(p * (1 - p) / 25_000)

    def test_a_seed_repeats_it_and_another_does_not(self, p):
        masks = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            masks.append(keep_mask(torch.empty(7, 11, 13), p))
        assert torch.equal(masks[0], masks[1])
        assert not torch.equal(masks[0], masks[2])

    @pytest.mark.parametrize("shape", [(1,), (3,), (7, 11), (2, 3, 5)])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_it_has_the_shape_and_dtype_of_what_it_is_for(self, p, shape, dtype):
        mask = keep_mask(torch.empty(shape, dtype=dtype), p)
        assert mask.shape == shape
        assert mask.dtype == dtype


def test_in_the_mean_over_many_draws_nothing_changes():
    x, dropout = torch.linspace(1, 2, 5, dtype=torch.float64), training(0.3)
    mean = sum(dropout(x) for _ in range(4000)) / 4000
    assert (mean / x - 1).abs().max() < 5 * math.sqrt(0.3 / 0.7 / 4000)


def test_added_to_the_residual_it_is_the_same_as_added_afterwards():
    x, residual = torch.randn(7, 11), torch.randn(7, 11)
    torch.manual_seed(5)
    at_once = training(0.3)(x, added_to=residual)
    torch.manual_seed(5)
    assert_close(at_once, residual + training(0.3)(x))


def test_its_gradient_is_the_mask_and_that_of_the_residual_is_one():
    x = torch.randn(7, 11, dtype=torch.float64, requires_grad=True)
    residual = torch.randn(7, 11, dtype=torch.float64, requires_grad=True)
    along = torch.randn(7, 11, dtype=torch.float64)
    output = training(0.3)(x, added_to=residual)
    mask = (output - residual) / x
    of_x, of_residual = torch.autograd.grad((output * along).sum(), (x, residual))
    assert_close(of_x, mask * along)
    assert torch.equal(of_residual, along)
    assert (of_x == 0).any()


@pytest.mark.parametrize("with_residual", [True, False])
def test_gradients_in_float64_are_those_of_finite_differences(with_residual):
    def dropped(*x):
        torch.manual_seed(11)
        return training(0.3)(*x)

    inputs = [torch.randn(3, 5, dtype=torch.float64, requires_grad=True) for _ in range(1 + with_residual)]
    assert torch.autograd.gradcheck(dropped, inputs)


@pytest.mark.parametrize("module", [Dropout(0.5).eval(), Dropout(0.0).train()], ids=["eval", "p = 0"])
def test_in_evaluation_and_at_p_zero_it_does_nothing(module):
    x, residual = torch.randn(7, 11), torch.randn(7, 11)
    assert torch.equal(module(x), x)
    assert torch.equal(module(x, added_to=residual), residual + x)


@pytest.mark.parametrize("p", [0.9999999, 1 - 2**-20])
def test_a_share_that_rounds_to_everything_is_finite_all_the_same(p):
    """A configuration may ask for any share below 1."""
    assert training(p)(torch.ones(101)).isfinite().all()


@pytest.mark.parametrize("position", ["post", "pre"])
def test_add_and_norm_drops_the_sub_layer_s_output_and_never_the_residual(position):
    block = AddAndNorm(small_config(dropout=0.5, norm_position=position)).train()
    x = torch.randn(7, D)
    torch.manual_seed(5)
    ours = block(x, torch.sin)
    torch.manual_seed(5)
    mask = keep_mask(x, 0.5)

    def norm(y: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(y, (D,))

    expected = norm(x + torch.sin(x) * mask) if position == "post" else x + torch.sin(norm(x)) * mask
    assert_close(ours, expected)


def test_a_model_in_evaluation_gives_the_same_answer_twice_and_in_training_does_not():
    model = small_model(dropout=0.3)
    inputs, outputs = random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS)
    with torch.no_grad():
        assert torch.equal(model(inputs, outputs), model(inputs, outputs))
        model.train()
        assert differ(model(inputs, outputs), model(inputs, outputs))
        torch.manual_seed(1)
        first = model(inputs, outputs)
        torch.manual_seed(1)
        assert torch.equal(first, model(inputs, outputs))


def test_the_embedded_inputs_and_outputs_are_dropped_too():
    """Section 5.4: also the sums of embeddings and positions, on both sides."""
    model = small_model(dropout=0.5).train()
    x = model.embed(random_pack((97,)), model.input_embedding, Positions(model.config, causal=False))
    assert 0.4 < (x == 0).double().mean() < 0.6
