"""Self-attention worked out by hand, on the example that many notes print wrongly.

Five inputs: x1 = (½, ½, ½, ½), and x2 … x5 the unit vectors of R⁴. W_Q = I, every entry of W_K is ½ and every
entry of W_V is ¼; one head, d_k = d_v = 4; q = x W_Q, k = x W_K, v = x W_V.

    q    is x itself.
    k    is ½ · (sum of x) in every place: the sum is 2 for x1 and 1 for the others, so k1 = (1, 1, 1, 1) and
         k2 = … = k5 = (½, ½, ½, ½). K is not the same in every row.
    v    is ¼ · (sum of x) in every place: v1 = (½, ½, ½, ½), the others (¼, ¼, ¼, ¼).

The scores q · k / √4. x1 against k1: (4 · ½) / 2 = 1; against the others (4 · ¼) / 2 = ½. A unit vector picks
one place of k: against k1 it gets 1 / 2 = ½, against the others ½ / 2 = ¼.

The softmax of (1, ½, ½, ½, ½), above and below divided by e^½, is

    (e^½, 1, 1, 1, 1) / (e^½ + 4)              = 0.29188, 0.17703 four times

and that of (½, ¼, ¼, ¼, ¼), divided by e^¼,

    (e^¼, 1, 1, 1, 1) / (e^¼ + 4)              = 0.24300, 0.18925 four times.

With a weight w on v1 and 1 - w on all the others, each place of the output is ½ w + ¼ (1 - w) = ¼ (1 + w):

    0.32297 for x1, and 0.31075 for x2 … x5.
"""

from fractions import Fraction
from math import exp
from pathlib import Path

import pytest
import torch

from regard.model.masks import SameSequence
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.scaled_dot_product_attention import (
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
)
from regard.model.taps import recording
from regard.packing import Boundaries
from tests.parity import loops
from tests.parity.tolerances import assert_close, differ

PAGE = Path(__file__).parents[2] / "docs" / "worked-example.md"
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
SCORES = [[Fraction(1), HALF, HALF, HALF, HALF]] + [[HALF, QUARTER, QUARTER, QUARTER, QUARTER]] * 4

ON_FIRST = [exp(1 / 2) / (exp(1 / 2) + 4)] + [exp(1 / 4) / (exp(1 / 4) + 4)] * 4
ON_OTHERS = [1 / (exp(1 / 2) + 4)] + [1 / (exp(1 / 4) + 4)] * 4
WEIGHTS = torch.tensor(
    [[a, b, b, b, b] for a, b in zip(ON_FIRST, ON_OTHERS, strict=True)], dtype=torch.float64
)
OUTPUT = torch.tensor([[(1 + a) / 4] * 4 for a in ON_FIRST], dtype=torch.float64)

X = torch.cat([torch.full((1, 4), 0.5), torch.eye(4)]).double()
W_Q, W_K, W_V = torch.eye(4).double(), torch.full((4, 4), 0.5).double(), torch.full((4, 4), 0.25).double()
Q, K, V = ((X @ w)[None, None] for w in (W_Q, W_K, W_V))


@pytest.fixture
def module() -> MultiHeadAttention:
    """One head, W^O = I. A linear map keeps its matrix the other way up: y = x Wᵀ."""
    module = MultiHeadAttention(d_model=4, n_heads=1).double()
    with torch.no_grad():
        for linear, matrix in zip(
            (module.w_q, module.w_k, module.w_v, module.w_o), (W_Q, W_K, W_V, torch.eye(4)), strict=True
        ):
            linear.weight.copy_(matrix.t())
    return module


def test_the_docs_show_these_numbers():
    page = PAGE.read_text(encoding="utf-8")
    twice = WEIGHTS[0].softmax(dim=0)
    for number in (*WEIGHTS[0, :2], *WEIGHTS[1, :2], *OUTPUT[:2, 0], *twice[:2]):
        assert f"{number:.5f}" in page


def test_the_closed_form_is_a_distribution_and_an_average():
    assert_close(WEIGHTS.sum(dim=1), torch.ones(5))
    assert_close(WEIGHTS @ V[0, 0], OUTPUT)


def test_our_functions_give_the_scores_the_weights_and_the_output():
    assert_close(attention_scores(Q, K)[0, 0], [[float(score) for score in row] for row in SCORES])
    assert_close(attention_weights(Q, K)[0, 0], WEIGHTS)
    assert_close(scaled_dot_product_attention(Q, K, V)[0, 0], OUTPUT)


def test_the_loops_give_them_too():
    weights, output = loops.attention(*(x[0, 0].numpy() for x in (Q, K, V)), loops.everyone(5, 5))
    assert_close(WEIGHTS, weights)
    assert_close(OUTPUT, output)


def test_our_module_gives_them_watched_and_unwatched_on_ordinary_tensors_and_packed(module):
    own = Boundaries.of_lengths([5])
    packed = SameSequence(own, own, causal=False)
    with torch.no_grad():
        assert_close(module(X[None])[0], OUTPUT)
        assert_close(module(X, may_attend=packed), OUTPUT)
        for arguments, may_attend in ((X[None], None), (X, packed)):
            with recording(module) as seen:
                module(arguments, may_attend=may_attend)
            assert_close(seen["scores"][0, 0], [[float(score) for score in row] for row in SCORES])
            assert_close(seen["weights"][0, 0], WEIGHTS)
            assert_close(seen["output"].view(5, 4), OUTPUT)


def test_a_softmax_applied_twice_gives_other_numbers(module):
    twice = attention_weights(Q, K).softmax(dim=-1)
    assert differ(twice[0, 0], WEIGHTS)
    assert differ((twice @ V)[0, 0], OUTPUT)
    with torch.no_grad():
        assert differ(module(X[None]), twice @ V)


def test_a_k_that_is_the_same_for_every_row_gives_other_numbers(module):
    """Equal keys get equal weights, a fifth each, and then every output is ¼ (1 + ⅕) = 0.3."""
    same = K[:, :, 1:2].expand_as(K)
    assert_close(attention_weights(Q, same), torch.full((1, 1, 5, 5), 0.2, dtype=torch.float64))
    output = scaled_dot_product_attention(Q, same, V)
    assert_close(output, torch.full((1, 1, 5, 4), 0.3, dtype=torch.float64))
    assert differ(output[0, 0], OUTPUT)
    with torch.no_grad():
        assert differ(module(X[None]), output)
