"""Several processes learn what one would, whole or sharded, and go on from each other's checkpoints."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from regard.bundle import load_bundle, weights_hash
from regard.training.checkpoints.checkpoint import MOMENTS, checkpoints, read_weights
from regard.training.loop import TrainingLoop
from regard.training.stopping import INTERRUPTED
from tests.architecture.sources import ROOT
from tests.training.copying import config, data, stop_at

SETTINGS = ("model.dropout=0.0", "training.max_steps=14", "training.validate_every=7")
AVERAGED = ("training.ema_decay=0.8", "training.average_checkpoints=3")
RANDOM = ("model.dropout=0.2", "training.max_steps=9", "training.checkpoint_every=3")
pytestmark = pytest.mark.slow


def together(n_processes, *words):
    """The command that lets so many processes train together, here."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n_processes)]
    return [*launcher, "--standalone", "-m", "tests.training.copying", *map(str, words)]


def launch(n_processes, *words):
    """What each process said, line by line."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        together(n_processes, *words), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def alone(folder, *settings, stop=None):
    """The same run in this process."""
    listeners = [] if stop is None else stop_at(stop)
    lesson = data(folder.parent / f"{folder.name}-data")
    run = TrainingLoop(folder, config(*settings), lesson, listeners=listeners)
    run.train()
    return run


def curve(folder, kind="loss"):
    entries = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [(entry["step"], entry[kind]) for entry in entries if kind in entry]


def assert_same_run(folder, other):
    """Step by step the same losses, and the same weights, to rounding."""
    for kind in ("loss", "valid_loss"):
        steps, losses = zip(*curve(folder, kind), strict=True)
        other_steps, other_losses = zip(*curve(other, kind), strict=True)
        assert steps == other_steps
        np.testing.assert_allclose(losses, other_losses, rtol=2e-4)
    assert curve(folder, "tokens") == curve(other, "tokens")
    for name in ("best", "last"):
        theirs = read_weights(other / name)
        for weight, tensor in read_weights(folder / name).items():
            torch.testing.assert_close(tensor, theirs[weight], atol=3e-3, rtol=1e-2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run alone, and others of two and of three processes, some of which went on from each other."""
    place = tmp_path_factory.mktemp("runs")
    alone(place / "alone", *SETTINGS)
    alone(place / "alone-averaged", *SETTINGS, *AVERAGED)
    for name in ("one-then-two", "one-then-sharded"):
        alone(place / name, *SETTINGS, *AVERAGED, stop=5)
    many = {
        "two": SETTINGS,
        "two-sharded": ("sharded", *SETTINGS),
        "two-sharded-averaged": ("sharded", *SETTINGS, *AVERAGED),
        "two-then-one": ("stop=5", *SETTINGS, *AVERAGED),
        "sharded-then-one": ("sharded", "stop=5", *SETTINGS, *AVERAGED),
        "one-then-two": (*SETTINGS, *AVERAGED),
        "one-then-sharded": ("sharded", *SETTINGS, *AVERAGED),
    }
    launch(2, *(word for name, words in many.items() for word in (place / name, *words, ",")))
    launch(3, place / "three", *SETTINGS, ",", place / "three-sharded", "sharded", *SETTINGS)
    for name in ("two-then-one", "sharded-then-one"):
        assert curve(place / name)[-1][0] == 6  # who is asked tells the others in the next step
        alone(place / name, *SETTINGS, *AVERAGED)
    return place


@pytest.mark.parametrize("name", ["two", "two-sharded", "three", "three-sharded"])
def test_processes_together_learn_what_one_alone_would(runs, name):
    assert_same_run(runs / name, runs / "alone")


def test_sharded_weights_have_a_moving_average_too(runs):
    assert_same_run(runs / "two-sharded-averaged", runs / "alone-averaged")
    assert weights_hash(runs / "alone-averaged" / "last") != weights_hash(runs / "alone" / "last")


@pytest.mark.parametrize("name", ["two-then-one", "sharded-then-one", "one-then-two", "one-then-sharded"])
def test_any_number_of_processes_goes_on_from_a_checkpoint_of_any_other(runs, name):
    assert_same_run(runs / name, runs / "alone-averaged")


@pytest.mark.parametrize("name", ["two-sharded-averaged", "one-then-two", "one-then-sharded"])
def test_checkpoints_are_whole_whoever_wrote_them(runs, name):
    def contents(name):
        newest = checkpoints(runs / name / "checkpoints")[-1]
        assert newest.name == "step-00000014"
        saved = {**read_weights(newest), **load_file(newest / MOMENTS)}
        return {key: tensor for key, tensor in saved.items() if not key.startswith("generator.")}

    expected, found = contents("alone-averaged"), contents(name)
    assert found.keys() == expected.keys()
    assert {f"average.{weight}" for weight in read_weights(runs / "alone" / "last")} <= found.keys()
    for key, tensor in found.items():
        near = 0.02 * float(expected[key].abs().max())
        torch.testing.assert_close(tensor, expected[key], atol=near, rtol=0.0, msg=key)
    assert load_bundle(runs / name / "best").metrics["step"] == 14


def test_two_processes_that_were_asked_to_stop_end_like_two_that_were_not(tmp_path):
    """To the bit, with each process drawing its own dropout."""
    words = []
    for kind in ("together", "sharded"):
        parts = tmp_path / f"{kind}-parts"
        for start in ((tmp_path / kind,), (parts, "stop=4"), (parts,)):
            words += [*start, kind, *RANDOM, ","]
    ends = [line.split(": ") for line in launch(2, *words)]
    assert [reason for reason, _ in ends].count(INTERRUPTED) == 4
    for kind in ("together", "sharded"):
        ended = weights_hash(tmp_path / kind / "last")
        assert weights_hash(tmp_path / f"{kind}-parts" / "last") == ended
        # Both processes, of both runs.
        assert ends.count(["9 steps are done", ended]) == 4
        assert curve(tmp_path / f"{kind}-parts") == curve(tmp_path / kind)


def test_a_signal_to_one_ends_all_with_a_checkpoint(tmp_path):
    words = (tmp_path / "run", "model.dropout=0.0", "training.max_steps=100000")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    launcher = subprocess.Popen(
        together(2, *words),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    path, deadline = tmp_path / "run" / "journal.jsonl", time.monotonic() + 120
    while (not path.exists() or path.stat().st_size < 2000) and launcher.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(int((tmp_path / "run.1.pid").read_text()), signal.SIGTERM)
    said, _ = launcher.communicate(timeout=120)
    assert said.count(INTERRUPTED) == 2
    newest = checkpoints(tmp_path / "run" / "checkpoints")[-1]
    assert int(newest.name.removeprefix("step-")) == curve(tmp_path / "run")[-1][0]
