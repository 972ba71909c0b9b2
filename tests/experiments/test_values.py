"""Widths of keys and values: what they cost is a formula."""

from regard.experiments.claims.values import HEADS
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment


def test_weights_follow_from_the_widths():
    (table,) = run_experiment(find_experiment("values"), "short", 1).findings.tables
    assert {(8, 1), (8, 8), (8, 32), (1, 8), (32, 8)} == {row[:2] for row in table.rows}
    for d_k, d_v, weights, loss in table.rows:
        assert weights == HEADS * 64 * (2 * d_k + 2 * d_v)
        assert loss.low > 0
