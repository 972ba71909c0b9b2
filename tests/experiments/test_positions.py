"""Order and its absence: an identity to rounding, and that positions break it."""

import pytest

from regard.experiments.claims.positions import KINDS, SETUP, _shuffled
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment


@pytest.mark.parametrize("kind", KINDS)
def test_only_without_positions_shuffled_inputs_give_shuffled_outputs(kind):
    difference = _shuffled(kind, seed=5)
    assert difference < 1e-5 if kind == "none" else difference > 0.1


def test_models_are_tested_at_each_length():
    findings = run_experiment(find_experiment("positions"), "short", 2).findings
    assert findings.verdict[0].holds
    _, accuracy = findings.tables
    assert [column.en for column in accuracy.columns[1:]] == [f"{n} symbols" for n in SETUP["short"].lengths]
    for _, *shares in accuracy.rows:
        assert all(0 <= value <= 1 for share in shares for value in share.values)
