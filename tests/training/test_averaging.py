"""Averages of weights: the formula, what is published of them, and that they go on after a stop."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

from regard.bundle import load_bundle, weights_hash
from regard.errors import BundleError
from regard.training.checkpoints.averaging import MovingAverage, mean_of, with_weights
from regard.training.checkpoints.checkpoint import checkpoints, read_weights
from regard.training.loop import TrainingLoop
from regard.training.stopping import INTERRUPTED
from tests.training.copying import config, data, stop_at

EMA = "training.ema_decay=0.8"


def train(folder, *settings, listeners=()):
    run = TrainingLoop(folder / "run", config(*settings), data(folder / "data"), listeners=listeners)
    return run, run.train()


def journal(folder):
    return [json.loads(line) for line in (folder / "run" / "journal.jsonl").read_text().splitlines()]


def test_a_moving_average_follows_its_formula():
    model, decay = nn.Linear(5, 3), 0.7
    average = MovingAverage(model, decay)
    expected = model.weight.detach().double().numpy().copy()
    for step in range(1, 60):
        with torch.no_grad():
            model.weight.add_(torch.randn(3, 5))
        average.update(model, step)
        keep = min(decay, step / (step + 9))
        expected = keep * expected + (1 - keep) * model.weight.detach().double().numpy()
    np.testing.assert_allclose(average.weights["weight"].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_moving_average_forgets_the_random_start_within_a_few_steps():
    model = nn.Linear(2, 2)
    average = MovingAverage(model, 0.9999)
    with torch.no_grad():
        model.weight.fill_(7.0)
    for step in range(1, 40):
        average.update(model, step)
    torch.testing.assert_close(average.weights["weight"], model.weight.detach(), atol=1e-3, rtol=0.0)


def test_the_model_has_its_own_weights_back_even_after_an_error():
    model = nn.Linear(3, 2)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    with pytest.raises(ZeroDivisionError), with_weights(model, {n: w * 0 for n, w in before.items()}):  # noqa: PT012
        assert not model.weight.any()
        1 / 0  # noqa: B018
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
        assert weight.requires_grad


def test_the_moving_average_is_what_is_validated_and_kept(tmp_path):
    run, _ = train(tmp_path, EMA)
    kept = read_weights(tmp_path / "run" / "last")
    for name, weight in run.learner.average.weights.items():
        assert torch.equal(kept[name], weight)
    assert weights_hash(tmp_path / "run" / "last") != weights_hash(run.model)
    score = [entry["valid_loss"] for entry in journal(tmp_path) if "valid_loss" in entry][-1]
    with with_weights(run.model, kept):
        assert run._measure()["valid_loss"] == score
    assert run._measure()["valid_loss"] != score


def test_a_moving_average_goes_on_after_a_stop_as_if_there_had_been_none(tmp_path):
    whole, _ = train(tmp_path / "whole", EMA)
    for step in (7, 18):
        _, reason = train(tmp_path / "parts", EMA, listeners=stop_at(step))
        assert reason == INTERRUPTED
    parts, _ = train(tmp_path / "parts", EMA)
    assert weights_hash(parts.model) == weights_hash(whole.model)
    for name in ("best", "last"):
        assert weights_hash(tmp_path / "parts" / "run" / name) == weights_hash(
            tmp_path / "whole" / "run" / name
        )


def test_the_mean_of_checkpoints_is_the_mean(tmp_path):
    train(tmp_path)
    places = checkpoints(tmp_path / "run" / "checkpoints")
    assert len(places) == 3
    each = [load_file(place / "weights.safetensors") for place in places]
    for name, weight in mean_of(places).items():
        assert weight.dtype == torch.float32
        expected = np.mean([one[name] for one in each], axis=0, dtype=np.float64)
        np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_the_mean_of_model_folders_is_the_mean_too(tmp_path):
    train(tmp_path)
    best, last = (
        load_bundle(tmp_path / "run" / name).model.output_embedding.weight for name in ("best", "last")
    )
    mean = mean_of([tmp_path / "run" / "best", tmp_path / "run" / "last"])
    torch.testing.assert_close(mean["input_embedding.weight"], (best + last).detach() / 2)


def test_a_place_without_weights_is_named(tmp_path):
    with pytest.raises(BundleError, match="cannot be read"):
        mean_of([tmp_path])


@pytest.mark.parametrize(
    ("settings", "wins"),
    [
        # A high rate leaves noise behind, which the mean takes away; a steady fall is ahead of its mean.
        (["training.learning_rate=0.5", "training.max_steps=60", "training.schedule=paper"], True),
        (["training.learning_rate=0.002", "training.warmup_steps=1"], False),
    ],
)
def test_the_mean_of_the_last_checkpoints_is_kept_exactly_if_it_is_better(tmp_path, settings, wins):
    train(tmp_path, "training.average_checkpoints=3", "training.validate_every=10", *settings)
    *before, last = journal(tmp_path)
    assert last["averaged"] == 3
    best = min(entry["valid_loss"] for entry in before if "valid_loss" in entry)
    assert (last["valid_loss"] < best) == wins
    kept = load_bundle(tmp_path / "run" / "best")
    assert kept.metrics["valid_loss"] == min(best, last["valid_loss"])
    assert kept.metrics.get("averaged") == (3 if wins else None)
    mean = mean_of(checkpoints(tmp_path / "run" / "checkpoints"))
    same = all(torch.equal(mean[name], weight) for name, weight in kept.model.named_parameters())
    assert same == wins


def test_as_many_checkpoints_stay_as_are_averaged(tmp_path):
    train(tmp_path, "training.average_checkpoints=5")
    assert len(checkpoints(tmp_path / "run" / "checkpoints")) == 5
    assert journal(tmp_path)[-1]["averaged"] == 5


def test_a_run_that_is_over_says_the_mean_once_however_often_it_is_started(tmp_path):
    for _ in range(3):
        train(tmp_path, "training.average_checkpoints=3")
    assert sum("averaged" in entry for entry in journal(tmp_path)) == 1


def test_stops_on_the_way_do_not_change_what_is_averaged(tmp_path):
    """Checkpoints that somebody asked for are not averaged, and push none of the others out."""
    settings = ("training.average_checkpoints=3", "training.max_steps=30")

    def facts(folder):
        entries = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
        return [entry for entry in entries if "averaged" in entry]

    TrainingLoop(tmp_path / "whole", config(*settings), data(tmp_path / "data")).train()
    for step in (25, 26, 27, 29):
        place, lesson = tmp_path / "parts", data(tmp_path / "data")
        run = TrainingLoop(place, config(*settings), lesson, listeners=stop_at(step))
        assert run.train() == INTERRUPTED
    TrainingLoop(tmp_path / "parts", config(*settings), data(tmp_path / "data")).train()
    assert facts(tmp_path / "parts") == facts(tmp_path / "whole")
    assert facts(tmp_path / "whole")[0]["averaged"] == 3


LAST = "training.selection=last"


@pytest.mark.parametrize("rate", ["0.5", "0.002"])
def test_as_in_the_paper_the_mean_of_the_last_checkpoints_is_kept_whatever_its_loss(tmp_path, rate):
    settings = (LAST, "training.average_checkpoints=3", f"training.learning_rate={rate}")
    train(tmp_path, *settings, "training.warmup_steps=1", "training.validate_every=5")
    kept, mean = (
        load_bundle(tmp_path / "run" / "best"),
        mean_of(checkpoints(tmp_path / "run" / "checkpoints")),
    )
    assert kept.metrics["averaged"] == 3
    for name, weight in kept.model.named_parameters():
        assert torch.equal(mean[name], weight)


def test_as_in_table_3_the_last_step_is_kept_without_averaging(tmp_path):
    settings = (LAST, "training.average_checkpoints=1", "training.learning_rate=0.5")
    run, _ = train(tmp_path, *settings, "training.validate_every=5")
    losses = [entry["valid_loss"] for entry in journal(tmp_path) if "valid_loss" in entry]
    assert min(losses) < losses[-1]  # a choice by loss would keep another one
    assert weights_hash(tmp_path / "run" / "best") == weights_hash(tmp_path / "run" / "last")
    assert weights_hash(tmp_path / "run" / "best") == weights_hash(run.model)


def test_with_a_moving_average_the_last_of_it_is_kept(tmp_path):
    run, _ = train(tmp_path, LAST, EMA, "training.average_checkpoints=3")
    kept = read_weights(tmp_path / "run" / "best")
    for name, weight in run.learner.average.weights.items():
        assert torch.equal(kept[name], weight)


def test_a_run_that_keeps_the_last_model_ends_the_same_after_stops(tmp_path):
    settings = (LAST, "training.average_checkpoints=3")
    train(tmp_path / "whole", *settings)
    for step in (7, 18):
        assert train(tmp_path / "parts", *settings, listeners=stop_at(step))[1] == INTERRUPTED
    train(tmp_path / "parts", *settings)
    hashes = [weights_hash(tmp_path / name / "run" / "best") for name in ("whole", "parts")]
    assert hashes[0] == hashes[1]
