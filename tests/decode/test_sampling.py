"""Draws follow the model's distribution, and a seed brings them back."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.sampling import Sampling, sampler
from regard.decode.walk import walk
from regard.errors import ConfigError
from tests.decode.rigged import EOS, constraints, log, random_rig, start, stepping
from tests.refusals import refused

PROBS = [0.4, 0.05, 0.25, 0.1, 0.2]


def shares(sampling: Sampling, n: int = 20_000) -> list[float]:
    """How often each token is drawn."""
    log_probs = torch.tensor([log(p) for p in PROBS], dtype=torch.float64).expand(n, -1)
    uniform = torch.rand(n, dtype=torch.float64)
    return (torch.bincount(sampling.draw(log_probs, uniform), minlength=len(PROBS)) / n).tolist()


def chi_square(found: list[float], expected: list[float], n: int = 20_000) -> float:
    return sum(n * (f - e) ** 2 / e for f, e in zip(found, expected, strict=True) if e)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), PROBS),
        (Sampling(temperature=0.5), [p**2 for p in PROBS]),
        (Sampling(temperature=2.0), [p**0.5 for p in PROBS]),
        (Sampling(top_k=2), [0.4, 0, 0.25, 0, 0]),
        (Sampling(top_k=99), PROBS),
        (Sampling(top_p=0.6), [0.4, 0, 0.25, 0, 0]),
        (Sampling(top_p=0.7), [0.4, 0, 0.25, 0, 0.2]),
        (Sampling(min_p=0.5), [0.4, 0, 0.25, 0, 0.2]),
        (Sampling(top_k=3, top_p=0.7), [0.4, 0, 0.25, 0, 0]),  # 0.4 and 0.25 are 0.76 of what top_k left
        (Sampling(top_p=0.01), [1.0, 0, 0, 0, 0]),
    ],
)
def test_tokens_are_drawn_as_often_as_they_are_likely(sampling, expected):
    expected = [share / sum(expected) for share in expected]
    found = shares(sampling)
    assert all(f == 0 for f, e in zip(found, expected, strict=True) if e == 0)
    assert chi_square(found, expected) < 18.5  # 4 degrees of freedom: passed once in a thousand by chance


def test_the_measure_tells_a_wrong_distribution():
    assert chi_square(shares(Sampling(temperature=0.9)), PROBS) > 18.5


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.3, 3), (1.0 - 2**-53, 3)])
def test_what_has_no_probability_is_not_drawn_by_any_number(uniform, token):
    log_probs = torch.tensor([[log(p) for p in (0.0, 0.25, 0.0, 0.75, 0.0)]], dtype=torch.float64)
    assert Sampling().draw(log_probs, torch.tensor([uniform], dtype=torch.float64)).tolist() == [token]


def test_whole_outputs_are_drawn_as_often_as_they_are_likely():
    n, rig = 4000, random_rig(seed=5, n_tokens=3, sharpness=1.0)
    found = walk(
        stepping(lambda _source, ids: rig(0, ids)), start(n), constraints(*[2] * n),
        sampler(Sampling(), range(n), 2, "cpu"), 0.0,
    )  # fmt: skip
    outputs = [(*one.ids, *[EOS] * one.finished) for one in found]
    likely = {(a, b): math.exp(rig(0, ())[a] + rig(0, (a,))[b]) for a in (1, 2) for b in (0, 1, 2)}
    likely[EOS,] = math.exp(rig(0, ())[EOS])
    assert chi_square([outputs.count(output) / n for output in likely], list(likely.values()), n) < 22.5


@given(st.permutations(range(5)), st.integers(0, 2**32))
def test_a_draw_depends_on_its_seed_and_not_on_batch_mates(order, seed):
    rig = random_rig(seed, n_tokens=7)

    def draw(sources):
        step = stepping(lambda source, ids: rig(sources[source], ids))
        choose = sampler(Sampling(top_p=0.9), [100 + source for source in sources], 11, "cpu")
        return walk(step, start(len(sources)), constraints(*[5 + source for source in sources]), choose, 0.0)

    together = draw(list(order))
    for place, source in enumerate(order):
        assert draw([source]) == [together[place]]


def test_another_seed_draws_another_output():
    rig = random_rig(seed=1, n_tokens=11)
    outputs = walk(
        stepping(lambda _source, ids: rig(0, ids)), start(9), constraints(*[9] * 9),
        sampler(Sampling(), range(9), 9, "cpu"), 0.0,
    )  # fmt: skip
    assert len({one.ids for one in outputs}) > 5


def test_log_probabilities_are_the_models_whatever_is_cut():
    rig = random_rig(seed=2, n_tokens=5)
    choose = sampler(Sampling(temperature=0.3, top_k=2), [1], 9, "cpu")
    (found,) = walk(stepping(rig), start(1), constraints(9), choose, 0.0)
    told = [rig(0, found.ids[:t])[token] for t, token in enumerate(found.ids)]
    assert found.token_log_probs[: len(told)] == pytest.approx(told, rel=1e-5)


def test_everything_out_of_range_is_named_at_once():
    with refused("bad_sampling", "temperature", "top_k", "top_p", "min_p", error=ConfigError) as caught:
        Sampling(temperature=0.0, top_k=-1, top_p=0.0, min_p=1.5)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-38, 1e-5])
@pytest.mark.parametrize("rules", [{}, {"top_k": 3}, {"top_p": 0.9}])
def test_the_lowest_temperatures_choose_the_most_probable_token(temperature, rules):
    log_probs_RV = torch.tensor([[-7.0, -0.1, -3.0, -5.0], [-2.0, -200.0, -0.5, -1.0]])
    for uniform in (0.0, 0.5, 0.999999):
        drawn = Sampling(temperature=temperature, **rules).draw(log_probs_RV, torch.full((2,), uniform))
        assert drawn.tolist() == [1, 2]
