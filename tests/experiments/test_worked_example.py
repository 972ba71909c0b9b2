"""The worked example: a pencil's numbers, and where two mistakes lead."""

import pytest
import torch

from regard.experiments.claims.worked_example import EQUAL, RIGHT, TWICE, all_weights, by_hand
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment


def test_pencil_and_package_agree():
    weights, outputs = by_hand()
    torch.testing.assert_close(all_weights()[RIGHT], weights)
    assert outputs[0, 0].item() == pytest.approx(0.32297, abs=1e-5)
    assert outputs[1, 0].item() == pytest.approx(0.31075, abs=1e-5)


def test_weights_sum_to_one_with_mistakes_too():
    for weights in all_weights().values():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(5, dtype=torch.float64))


def test_mistakes_are_those_of_the_page():
    weights = all_weights()
    assert weights[TWICE][0, :2].tolist() == pytest.approx([0.21901, 0.19525], abs=1e-5)
    torch.testing.assert_close(weights[EQUAL], torch.full((5, 5), 0.2, dtype=torch.float64))


def test_all_of_it_holds():
    verdict = run_experiment(find_experiment("worked-example"), "short", 1).findings.verdict
    assert [judgement.holds for judgement in verdict] == [True, True, True]
