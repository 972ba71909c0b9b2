"""Similarities: what each is at the start, and how hard each can look."""

from math import e

import pytest
import torch

from regard.experiments.claims.similarity import KINDS, LENGTHS, largest_weights, make_model, sharpest_cosine
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment
from regard.experiments.small_models import reversing, score

PAIRS = reversing(LENGTHS).held_out(11)


def test_a_bilinear_one_starts_as_the_scaled_dot_product():
    bilinear, scaled = (make_model(kind, 8, seed=3) for kind in ("bilinear", "scaled-dot"))
    bilinear.load_state_dict(scaled.state_dict(), strict=False)
    assert score(bilinear, PAIRS).loss == pytest.approx(score(scaled, PAIRS).loss, rel=1e-6)


def test_plain_dot_products_look_harder_than_scaled_ones():
    plain, scaled = (make_model(kind, 128, seed=3) for kind in ("dot", "scaled-dot"))
    plain.load_state_dict(scaled.state_dict())
    assert largest_weights(plain, PAIRS).mean() > largest_weights(scaled, PAIRS).mean()


def test_no_cosine_looks_harder_than_it_can():
    keys = LENGTHS[0] + 1
    scores = torch.tensor([1.0] + [-1.0] * (keys - 1))
    assert sharpest_cosine(keys) == pytest.approx(scores.softmax(dim=-1)[0].item())
    assert sharpest_cosine(2) == pytest.approx(e**2 / (e**2 + 1))
    model = make_model("cosine", 8, seed=3)
    for pair in PAIRS:
        bound = sharpest_cosine(len(pair[0]) + 1)
        largest = largest_weights(model, [pair])
        assert largest.shape == (len(pair[1]) + 1, 2)
        assert 1 / (len(pair[0]) + 1) <= largest.min() <= largest.max() <= bound


def test_all_five_are_compared():
    findings = run_experiment(find_experiment("similarity"), "short", 2).findings
    (table,) = findings.tables
    assert [row[0].en for row in table.rows] == list(KINDS)
    parameters = {row[0].en: row[2] for row in table.rows}
    assert parameters["dot"] == parameters["cosine"] == parameters["scaled-dot"]
    heads, blocks = 2, 3
    assert parameters["bilinear"] - parameters["dot"] == blocks * heads * 8 * 8
    assert parameters["additive"] - parameters["dot"] == blocks * heads * (2 * 8 * 8 + 8)
    assert all(0 < row[4].low <= row[4].high <= 1 for row in table.rows)
