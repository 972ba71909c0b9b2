"""Deletion curves by every measure: where they begin, what they follow, and a folder of one's own."""

import numpy as np
import pytest
import torch

from regard.bundle import save_bundle
from regard.errors import RequestError
from regard.experiments.claims.attention_is_it_explanation import (
    ATTENTION,
    MEASURES,
    POINTS,
    RANDOM,
    ROLLOUT,
    TEXTS,
    ZEROING,
    explained,
    measures,
    on,
)
from regard.experiments.experiment import run_experiment
from regard.experiments.registry import find_experiment
from regard.look.influence.attribution import deletion_curve
from tests.look.traced import model_of, subwords, trace_of


@pytest.fixture(scope="module")
def model():
    return model_of()


@pytest.fixture(scope="module")
def trace(model):
    return trace_of(model)


def test_what_is_looked_at_and_what_arrives_are_shares(model, trace):
    found = measures(model, trace, np.random.default_rng(1))
    looked = found[ATTENTION](2)
    heads = np.ndindex(trace.config.decoder_layers, trace.config.n_heads)
    assert looked == pytest.approx(np.mean([trace.attention("cross", *head)[2] for head in heads], axis=0))
    assert looked.sum() == pytest.approx(1)
    assert 0 < found[ROLLOUT](2).sum() < 1  # the rest set out from the outputs
    assert {len(of_row(2)) for of_row in found.values()} == {len(trace.inputs)}


def test_a_curve_is_read_off_at_shares_of_the_input(model, trace):
    curves, agreements = explained(model, [trace], rows=1, seed=4)
    (row,) = [
        row for row in range(len(trace.targets) - 1)
        if curves[ATTENTION] == pytest.approx(curve_of(model, trace, row))
    ]  # fmt: skip
    assert row < len(trace.targets) - 1
    assert all(curve[0] == 0 and curve.shape == POINTS.shape for curve in curves.values())
    assert agreements[ZEROING] == pytest.approx(1)
    assert all(-1 <= agreements[name] <= 1 for name in MEASURES)


def curve_of(model, trace, row):
    """Of attention, one row: taken at whole tokens, then between them."""
    influence = measures(model, trace, np.random.default_rng(1))[ATTENTION](row)
    curve = deletion_curve(model, trace, row, influence)
    return [np.interp(share * (len(curve) - 1), range(len(curve)), curve) - curve[0] for share in POINTS]


def test_a_seed_draws_the_same_again(model, trace):
    (first, _), (again, _), (other, _) = (explained(model, [trace], 2, seed) for seed in (1, 1, 2))
    assert np.array_equal(first[RANDOM], again[RANDOM])
    assert not np.array_equal(first[RANDOM], other[RANDOM])


def test_a_folder_of_ones_own_is_explained(tmp_path):
    model = model_of(torch.float32)
    folder = save_bundle(tmp_path / "model", model, subwords=subwords().model)
    experiment = on(folder)
    usual = find_experiment("attention-is-it-explanation")
    assert (experiment.name, experiment.claim) == (usual.name, usual.claim)
    findings = run_experiment(experiment, "short", 2).findings
    assert [row[0] for row in findings.tables[0].rows] == list(MEASURES)
    assert len(findings.verdict) == 3


def test_only_a_translator_is_explained(tmp_path):
    model = model_of(torch.float32, architecture="decoder")
    folder = save_bundle(tmp_path / "model", model, subwords=subwords().model)
    with pytest.raises(RequestError, match="is not a translator"):
        run_experiment(on(folder), "short", 1)


def test_texts_are_in_both_languages():
    assert {any("\u4e00" <= letter <= "\u9fff" for letter in text) for text in TEXTS[:2]} == {True, False}
    assert len({*TEXTS}) == len(TEXTS)
