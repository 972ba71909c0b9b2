"""Norms: BatchNorm is torch's, knows its batch mates, and says nothing of a token alone."""

import pytest
import torch
from torch import nn

from regard.experiments.claims.norms import COMPANY, NAMES, BatchNorm, _model
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment
from regard.experiments.small_models import copying
from regard.model.add_and_norm import LayerNorm


@pytest.fixture(scope="module")
def rows():
    (table,) = run_experiment(find_experiment("norms"), "short", 2).findings.tables
    return {name: numbers for name, *numbers in table.rows}


def test_batch_norm_is_that_of_torch():
    ours, theirs = BatchNorm(5), nn.BatchNorm1d(5)
    for seed in range(3):
        x_ND = torch.randn(11, 5, generator=torch.Generator().manual_seed(seed)) * 2 + 1
        torch.testing.assert_close(ours(x_ND), theirs(x_ND))
    torch.testing.assert_close(ours.running_mean_D, theirs.running_mean)
    # torch keeps the unbiased variance, 11 / 10 of ours; both start from 1.
    kept = 0.9**3
    torch.testing.assert_close((ours.running_variance_D - kept) * 11 / 10, theirs.running_var - kept)


def test_the_statistics_of_one_token_leave_nothing_of_it():
    norm = BatchNorm(5).eval()
    norm.by_batch = True
    x_ND = torch.randn(1, 5, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(norm(x_ND), torch.zeros(1, 5))
    norm.by_batch = False
    torch.testing.assert_close(norm(x_ND), x_ND, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "norm"), [("layer", LayerNorm), ("batch", BatchNorm), ("none", nn.Identity)]
)
def test_every_norm_is_exchanged(kind, norm):
    model = _model(kind, copying((3, 5)), 1)
    norms = [module.norm for module in model.modules() if hasattr(module, "norm_first")]
    assert len(norms) == 2 * 2 + 2 * 3
    assert {type(each) for each in norms} == {norm}


def test_only_batch_statistics_know_company(rows):
    for name in NAMES:
        company = rows[name][COMPANY]
        assert company.low > 0.1 if name == NAMES[2] else company.high < 1e-3
