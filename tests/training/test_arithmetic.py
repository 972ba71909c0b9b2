"""The last bits of a resumed run: the same number of threads, and a report of what has changed."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch

import regard
from regard.bundle import weights_hash
from regard.host import usable_cores
from regard.training.arithmetic import Arithmetic, using_threads, usual_threads
from regard.training.checkpoints.checkpoint import STATE, checkpoints
from regard.training.distributed.world import World
from regard.training.loop import TrainingLoop
from regard.training.stopping import INTERRUPTED
from tests.training.copying import config, data, stop_at

STEPS = "training.max_steps=6"


@contextmanager
def torch_threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(folder, threads=None, stop=None):
    """A run in a folder; returns it, why it ended, and its messages."""
    messages = []
    listeners = [lambda event: messages.append(event["message"]) if "message" in event else None]
    listeners += [] if stop is None else stop_at(stop)
    lesson = data(folder / "data")
    run = TrainingLoop(folder / "run", config(STEPS), lesson, listeners=listeners, threads=threads)
    return run, run.train(), messages


def stored(folder):
    """The arithmetic in the newest checkpoint, and its file."""
    file = checkpoints(folder / "run" / "checkpoints")[-1] / STATE
    return json.loads(file.read_text())["arithmetic"], file


def test_a_resumed_run_uses_the_threads_that_it_began_with_and_says_so(tmp_path):
    whole, _, said = train(tmp_path / "whole", threads=3)
    assert not said
    one, _, _ = train(tmp_path / "one", threads=1)
    assert weights_hash(one.model) != weights_hash(whole.model)  # otherwise this test could not fail
    _, reason, _ = train(tmp_path / "parts", threads=3, stop=3)
    assert reason == INTERRUPTED
    assert stored(tmp_path / "parts")[0]["threads"] == 3
    with torch_threads(1):
        resumed, _, said = train(tmp_path / "parts")
        assert torch.get_num_threads() == 1
    assert weights_hash(resumed.model) == weights_hash(whole.model)
    (note,) = said
    assert "computing with 3 threads as before" in note
    assert ("more than the" in note) == (usable_cores() < 3)
    assert train(tmp_path / "parts")[2] == []  # a run that is done computes nothing


def test_a_classifier_that_is_stopped_in_its_pretraining_keeps_its_threads_to_the_end(tmp_path):
    rows = [("ab"[i % 2], f"{'the cat' if i % 2 else 'a dog'} {i} sleeps") for i in range(60)]
    (tmp_path / "plain.txt").write_text("".join(f"{text}, and wakes up\n" for _, text in rows))
    settings = (
        *("model.d_model=24", "model.n_heads=3", "model.d_ff=32", "model.encoder_layers=1"),
        *("model.vocab_size=320", "training.max_steps=2", "training.pretrain_steps=4"),
    )
    options = {"task": "classify", "out": tmp_path / "run", "settings": settings, "device": "cpu"}
    options["pretrain"] = tmp_path / "plain.txt"
    first = regard.train(rows, **options, threads=3, listeners=stop_at(2))
    assert first.interrupted
    with torch_threads(1):
        second = regard.train(rows, **options)
    assert second.scores is not None
    assert any("computing with 3 threads as before" in message for message in second.messages)
    assert stored(tmp_path)[0]["threads"] == 3


def test_other_threads_can_be_chosen_and_are_reported(tmp_path):
    train(tmp_path, threads=3, stop=3)
    run, _, (note,) = train(tmp_path, threads=1)
    assert run.threads == 1
    assert "threads was 3 and is 1: results may differ by rounding" in note
    assert stored(tmp_path)[0]["threads"] == 1


@pytest.mark.parametrize("name", ["torch", "processor", "device", "processes"])
def test_what_cannot_be_kept_is_reported(tmp_path, name):
    train(tmp_path, stop=3)
    arithmetic, file = stored(tmp_path)
    state = json.loads(file.read_text())
    assert arithmetic[name] == getattr(Arithmetic.here(World(torch.device("cpu")), 1), name)
    state["arithmetic"][name] = "another"
    file.write_text(json.dumps(state))
    _, _, (note,) = train(tmp_path)
    assert note.startswith(f"{name} was another and is {arithmetic[name]}: ")


def test_a_checkpoint_that_does_not_say_how_it_was_computed_is_reported(tmp_path):
    train(tmp_path, stop=3)
    _, file = stored(tmp_path)
    state = json.loads(file.read_text())
    del state["arithmetic"]
    file.write_text(json.dumps(state))
    _, reason, (note,) = train(tmp_path)
    assert reason == "6 steps are done"
    assert "does not say how many threads" in note


def test_a_limit_on_threads_is_seen(monkeypatch):
    monkeypatch.setenv("OMP_THREAD_LIMIT", "2")
    with using_threads(3) as count:
        assert count == 2


def test_a_new_run_has_no_more_threads_than_cores():
    with torch_threads(usable_cores() + 3):
        assert usual_threads() == usable_cores()


@pytest.mark.slow
def test_a_run_that_is_resumed_with_another_omp_num_threads_ends_with_the_same_bits(tmp_path):
    cores = usable_cores()
    command = [sys.executable, "-m", "tests.training.copying", "--own-threads"]

    def run(folder, threads, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        words = (*command, str(tmp_path / folder), STEPS, *words)
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    began = min(2, cores)
    whole = run("whole", began)
    assert INTERRUPTED in run("parts", began, "stop=3")
    assert run("parts", 1 if began == 2 else 2) == whole
