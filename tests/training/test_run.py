"""A run ends the same however often it is interrupted, and refuses to go on as something else."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from regard.bundle import load_bundle, weights_hash
from regard.data.store.writing import write_store
from regard.errors import ConfigError, CorpusError
from regard.training.checkpoints.checkpoint import checkpoints
from regard.training.loop import TrainingLoop
from regard.training.stopping import INTERRUPTED
from tests.architecture.sources import ROOT
from tests.refusals import refused
from tests.training.copying import backwards, config, data, stop_at


def train(folder, *settings, **changes):
    run = TrainingLoop(folder / "run", config(*settings), replace(data(folder / "data"), **changes))
    return run, run.train()


def journal(folder):
    return [json.loads(line) for line in (folder / "run" / "journal.jsonl").read_text().splitlines()]


def test_a_run_leaves_its_model_its_journal_and_its_newest_checkpoints(tmp_path):
    run, reason = train(tmp_path)
    assert reason == "30 steps are done"
    assert [entry["step"] for entry in journal(tmp_path) if "loss" in entry] == list(range(1, 31))
    assert [entry["step"] for entry in journal(tmp_path) if "valid_loss" in entry] == [10, 20, 30]
    assert [place.name[-2:] for place in checkpoints(tmp_path / "run" / "checkpoints")] == ["24", "28", "30"]
    assert weights_hash(tmp_path / "run" / "last") == weights_hash(run.model)
    best = load_bundle(tmp_path / "run" / "best").metrics
    assert best["valid_loss"] == min(
        entry["valid_loss"] for entry in journal(tmp_path) if "valid_loss" in entry
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_that_was_asked_to_stop_ends_like_one_that_was_not(tmp_path, precision):
    settings = f"training.precision={precision}"
    whole, _ = train(tmp_path / "whole", settings)
    for step in (7, 13, 14):
        run = TrainingLoop(
            tmp_path / "parts" / "run",
            config(settings),
            data(tmp_path / "parts" / "data"),
            listeners=stop_at(step),
        )
        assert run.train() == INTERRUPTED
        assert run.progress.step == step
    resumed, reason = train(tmp_path / "parts", settings)
    assert reason == "30 steps are done"
    assert weights_hash(resumed.model) == weights_hash(whole.model)

    def facts(folder):
        return [{k: v for k, v in entry.items() if k != "seconds"} for entry in journal(folder)]

    assert facts(tmp_path / "parts") == facts(tmp_path / "whole")


@pytest.mark.parametrize("schedule", ["cosine", "warmup-stable-decay"])
def test_a_run_of_epochs_ends_its_schedule_and_ends_like_one_that_was_stopped(tmp_path, schedule):
    settings = ("training.max_epochs=6", "training.max_steps=9999", f"training.schedule={schedule}")
    whole, reason = train(tmp_path / "whole", *settings)
    assert reason == "6 epochs are done"
    rates = [entry["learning_rate"] for entry in journal(tmp_path / "whole") if "loss" in entry]
    assert max(rates) > 0.005
    assert 0 < rates[-1] < 0.25 * max(rates)
    parts = tmp_path / "parts"
    stopped = TrainingLoop(parts / "run", config(*settings), data(parts / "data"), listeners=stop_at(11))
    assert stopped.train() == INTERRUPTED
    resumed, _ = train(parts, *settings)
    assert weights_hash(resumed.model) == weights_hash(whole.model)
    assert rates == [entry["learning_rate"] for entry in journal(parts) if "loss" in entry]


def test_a_run_of_minutes_follows_the_clock(tmp_path, monkeypatch):
    """A clock of our own: each look at it is a second later, so each step takes one."""
    seconds = count()
    monkeypatch.setattr("regard.training.loop.time.perf_counter", lambda: float(next(seconds)))
    settings = ("training.max_minutes=0.5", "training.max_steps=9999")
    run = TrainingLoop(tmp_path / "run", config(*settings), data(tmp_path / "data"), listeners=stop_at(19))
    assert run.train() == INTERRUPTED
    _, reason = train(tmp_path, *settings)
    assert reason == "0.5 minutes are over"
    rates = [entry["learning_rate"] for entry in journal(tmp_path) if "loss" in entry]
    assert 29 <= len(rates) <= 33
    assert 0 < rates[-1] < 0.02 * max(rates)
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_weights(tmp_path):
    """SIGKILL at random moments, also in the middle of writing a checkpoint."""
    settings = ("training.max_steps=120", "training.checkpoint_every=3")
    whole, _ = train(tmp_path / "whole", *settings)
    moments, kills = random.Random(5), 0
    command = [sys.executable, "-m", "tests.training.copying", str(tmp_path / "killed"), *settings]
    path = tmp_path / "killed" / "journal.jsonl"
    while True:
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        goal, deadline = moments.randrange(10, 60) + path_length(path), time.monotonic() + 60
        while child.poll() is None and path_length(path) < goal and time.monotonic() < deadline:
            time.sleep(moments.random() * 0.02)
        if child.poll() is None:
            child.kill()
            kills += 1
        output, _ = child.communicate()
        if child.returncode == 0:
            break
        assert kills < 30
    assert kills >= 2
    assert output.splitlines()[-1] == f"120 steps are done: {weights_hash(whole.model)}"
    steps = [entry["step"] for entry in map(json.loads, path.read_text().splitlines()) if "loss" in entry]
    assert steps == list(range(1, 121))


def path_length(path):
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def test_a_full_disk_loses_nothing_that_was_there(tmp_path, monkeypatch):
    whole, _ = train(tmp_path / "whole")

    def no_space(_):
        raise OSError(28, "No space left on device")

    run = TrainingLoop(
        tmp_path / "full" / "run",
        config(),
        data(tmp_path / "full" / "data"),
        listeners=[lambda event: event["step"] == 11 and monkeypatch.setattr(os, "fsync", no_space)],
    )
    with pytest.raises(OSError, match="No space left"):
        run.train()
    monkeypatch.undo()
    assert [place.name[-2:] for place in checkpoints(tmp_path / "full" / "run" / "checkpoints")] == [
        "04",
        "08",
    ]
    resumed, _ = train(tmp_path / "full")
    assert weights_hash(resumed.model) == weights_hash(whole.model)


@pytest.mark.parametrize("name", ["weights.safetensors", "moments.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_refused_and_without_it_the_run_resumes(tmp_path, name):
    whole, _ = train(tmp_path, "training.max_steps=7")
    newest = checkpoints(tmp_path / "run" / "checkpoints")[-1]
    os.truncate(newest / name, 5)
    with refused("damaged_checkpoint", str(newest), "delete its folder"):
        train(tmp_path, "training.max_steps=7")
    shutil.rmtree(newest)
    resumed, _ = train(tmp_path, "training.max_steps=7")
    assert weights_hash(resumed.model) == weights_hash(whole.model)


def test_another_configuration_is_named_and_refused(tmp_path):
    train(tmp_path, "training.max_steps=4")
    before = (tmp_path / "run" / "config.toml").read_text()
    with pytest.raises(ConfigError) as caught:
        train(tmp_path, "training.max_steps=4", "training.seed=7", "model.d_ff=48")
    assert (tmp_path / "run" / "config.toml").read_text() == before
    assert {"model.d_ff was 32 and is 48", "training.seed was 1 and is 7"} <= set(caught.value.problems)


def test_a_run_of_an_older_version_without_a_setting_is_resumed(tmp_path):
    run = TrainingLoop(tmp_path / "run", config(), data(tmp_path / "data"), listeners=stop_at(7))
    assert run.train() == INTERRUPTED
    file = tmp_path / "run" / "config.toml"
    assert config().training.selection == "best"  # not the default, which a missing line would mean
    file.write_text(re.sub("selection = .*\n", "", file.read_text()))
    _, reason = train(tmp_path)
    assert reason == "30 steps are done"


def test_other_data_is_named_and_refused(tmp_path):
    train(tmp_path, "training.max_steps=4")
    with pytest.raises(CorpusError, match="the data has changed"):
        train(tmp_path, "training.max_steps=4", train=backwards(tmp_path / "other", 400, 9))


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    with refused("folder_in_use"):
        train(tmp_path)
    assert (tmp_path / "run" / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["training.max_epochs=1"], "1 epoch is done"),
        (["training.max_minutes=1e-9"], "1e-09 minutes are over"),
        (
            ["training.patience=2", "training.learning_rate=1e-12", "training.validate_every=1"],
            "no better loss",
        ),
    ],
)
def test_other_limits_end_a_run_too(tmp_path, settings, reason):
    assert reason in train(tmp_path, *settings)[1]


def test_a_run_keeps_the_precision_that_it_began_with(tmp_path):
    """What auto means may be another machine's choice by then."""
    train(tmp_path, "training.max_steps=4", "training.precision=auto")
    state = tmp_path / "run" / "checkpoints" / "step-00000004" / "state.json"
    began = json.loads(state.read_text())["precision"]
    other = {"float32": "bfloat16", "bfloat16": "float32"}[began]
    state.write_text(state.read_text().replace(began, other))
    run, _ = train(tmp_path, "training.max_steps=4", "training.precision=auto")
    assert str(run.model.compute_dtype) == f"torch.{other}"


def test_sharded_weights_and_muon_are_refused_before_anything_is_written(tmp_path):
    settings = config("training.optimizer=muon")
    with refused("cannot_shard", "training.optimizer = muon"):
        TrainingLoop(tmp_path / "run", settings, data(tmp_path / "data"), sharded=True)
    assert not (tmp_path / "run").exists()


def test_until_there_is_a_checkpoint_a_mistake_can_be_mended(tmp_path):
    with pytest.raises(CorpusError, match="budget of tokens"):
        train(tmp_path, "training.batch_tokens=5")
    assert train(tmp_path, "training.max_steps=2")[1] == "2 steps are done"


def test_the_last_step_is_validated_so_there_is_always_a_best_model(tmp_path):
    train(tmp_path, "training.max_steps=3", "training.validate_every=1000")
    assert load_bundle(tmp_path / "run" / "best").metrics["step"] == 3


def test_what_a_killed_process_left_is_cleared_away_and_a_model_set_aside_comes_back(tmp_path):
    train(tmp_path, "training.max_steps=4")
    run = tmp_path / "run"
    (run / "best").rename(run / ".best.12ab.old")
    (run / "checkpoints" / ".step-00000008.34cd.new").mkdir()
    train(tmp_path, "training.max_steps=4")
    assert (run / "best").is_dir()
    assert not [*run.glob(".*.*"), *run.glob("checkpoints/.*")]


def test_signals_go_where_they_went_before(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    train(tmp_path, "training.max_steps=2")
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_a_model_learns_to_write_backwards(tmp_path):
    settings = ("model.d_model=64", "model.n_heads=4", "model.d_ff=128", "training.batch_tokens=2000")
    schedule = ("training.max_steps=500", "training.learning_rate=0.004", "training.validate_every=500")
    torch.manual_seed(0)
    store = backwards(tmp_path / "more", 6000, 11)
    _, _ = train(tmp_path, *settings, *schedule, "training.checkpoint_every=500", train=store)
    assert journal(tmp_path)[-1]["valid_accuracy"] > 0.9


def test_a_validation_sentence_longer_than_a_step_is_measured_all_the_same(tmp_path):
    ids = np.arange(100, dtype=np.uint16) % 10 + 3
    long = write_store(
        tmp_path / "long", [(ids, ids)], sides=("inputs", "outputs"), key="long", vocab_size=13
    )
    run, _ = train(tmp_path, "training.max_steps=2", "training.batch_tokens=60", valid=long)
    assert 0 < run.progress.best_loss < float("inf")
