"""Heads: equal cost, and what is left when some are removed."""

import pytest
import torch

from regard.experiments.claims.heads import ABLATED, _Removed, _without
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment
from regard.experiments.small_models import copying, score, small_model


@pytest.fixture(scope="module")
def model():
    return small_model(copying((3, 5)), 1, n_heads=ABLATED, d_model=16).eval()


def test_nothing_changes_where_no_head_is_gone(model):
    pairs = copying((3, 5)).held_out(7)
    assert _without(model, pairs, set()).loss == pytest.approx(score(model, pairs).loss, rel=1e-5)


def test_a_head_that_is_gone_adds_nothing_to_its_block(model):
    """Removing a head from outside, and zeroing its part of W^O, are one."""
    pairs, path, head = copying((3, 5)).held_out(7), "decoder.layers.1.multi_head_attention", 3
    removed = _without(model, pairs, {(path, head)}).loss
    attention = model.get_submodule(path)
    width = attention.d_v
    kept = attention.w_o.weight.detach().clone()
    with torch.no_grad():
        attention.w_o.weight[:, head * width : (head + 1) * width] = 0
    by_weights = score(model, pairs).loss
    with torch.no_grad():
        attention.w_o.weight.copy_(kept)
    assert removed == pytest.approx(by_weights, rel=1e-5)
    assert removed != pytest.approx(score(model, pairs).loss, rel=1e-6)


def test_how_few_suffice_is_the_first_that_keeps_enough():
    assert _Removed([0.1, 0.0], [0.5, 0.99, 1.0], {}).enough == 1
    assert _Removed([0.1, 0.0], [0.5, 0.98, 1.0], {}).enough == 2


def test_all_are_compared_at_equal_cost():
    findings = run_experiment(find_experiment("heads"), "short", 2).findings
    compared, removed, blocks = findings.tables
    assert [heads * d_k for heads, d_k, *_ in compared.rows] == [64, 64]
    most, median, missed, enough = removed.rows[0]
    assert all(a >= b for a, b in zip(most.values, median.values, strict=True))
    assert 0 <= missed.low <= missed.high <= 48
    assert 0 <= enough.low <= enough.high <= 48
    assert len(blocks.rows) * ABLATED == 48
    by_rank = findings.charts[1].lines[0].y
    means = sum(sum(loss.values) for _, loss in blocks.rows) / 6, sum(sum(y.values) for y in by_rank) / 48
    assert means[0] == pytest.approx(means[1]), "every head is in one block"
