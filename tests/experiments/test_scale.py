"""What the root of d_k does: a law, bounds, and what all seeds share."""

from math import log

import pytest

from regard.experiments.claims.scale import KEYS
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment


@pytest.fixture(scope="module")
def findings():
    return run_experiment(find_experiment("scale"), "short", 2).findings


def test_scores_spread_like_the_root_of_d_k(findings):
    for similarity, d_k, spread, *_ in findings.tables[0].rows:
        expected = 1.0 if similarity.en == "scaled-dot" else d_k**0.5
        assert all(value == pytest.approx(expected, rel=0.15) for value in spread.values)


def test_entropy_and_weights_keep_their_bounds(findings):
    for _, _, _, entropy, largest, gradient in findings.tables[0].rows:
        assert 0 < entropy.low <= entropy.high < log(KEYS)
        assert 1 / KEYS < largest.low <= largest.high <= 1
        assert 0 < gradient.low <= gradient.high <= 0.5**0.5


def test_unscaled_the_softmax_saturates_for_every_seed(findings):
    rows = {(similarity.en, d_k): row for similarity, d_k, *row in findings.tables[0].rows}
    _, entropy, largest, gradient = rows["dot", 1024]
    _, entropy_scaled, largest_scaled, gradient_scaled = rows["scaled-dot", 1024]
    assert entropy.below(entropy_scaled)
    assert gradient.below(gradient_scaled)
    assert largest_scaled.below(largest)
    assert findings.verdict[0].holds
