"""Depth: the gradient of an untrained model's last layer, and what all seeds share about it."""

from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment


def test_the_last_of_many_layers_starts_steeper_with_post_norm():
    findings = run_experiment(find_experiment("depth"), "short", 2).findings
    gradients, losses = findings.tables
    (_, _, post), (_, _, pre) = gradients.rows
    assert pre.below(post)
    assert findings.verdict[1].holds
    assert losses.columns[-1].en == "2, no warm-up"
    assert all(loss.low > 0 for _, *row in losses.rows for loss in row)


def test_warm_up_changes_what_is_learned():
    findings = run_experiment(find_experiment("depth"), "short", 1).findings
    for _, *warm, cold in findings.tables[1].rows:
        assert warm[-1] != cold
