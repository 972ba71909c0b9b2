"""A run stores what its heads look at, at each validation, and learns the same as if it did not."""

import numpy as np
import pytest
import torch

from regard.look.trace.probes import probe_files, probes
from regard.look.trace.recorder import look
from regard.training import probes as probing
from regard.training.loop import TrainingLoop
from regard.training.probes import Probing
from tests.look import ciphers
from tests.training.copying import stop_at

SHORT = (
    "training.max_steps=7", "training.validate_every=2", "training.checkpoint_every=3",
    "training.batch_tokens=90", "training.ema_decay=0.5",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return ciphers.data(tmp_path_factory.mktemp("data"))


def started(folder, data, sentences=2, **others):
    probing = Probing(folder, data.valid, ciphers.subwords(), sentences=sentences, every=2)
    run = TrainingLoop(folder, ciphers.small(*SHORT), data, probe=probing, **others)
    probing.resume_at(run.progress.step)
    return run


def stored(run):
    return {step: path.read_bytes() for step, path in probe_files(run.folder).items()}


def test_the_same_sentences_are_probed_from_before_the_first_step_to_the_last(tmp_path, data):
    run = started(tmp_path / "run", data)
    run.train()
    found = probes(tmp_path / "run")
    assert [step for step, _ in found] == [0, 2, 4, 6, 7]
    assert all(len(each) == 2 for _, each in found)
    texts = {tuple((probe.inputs.text, probe.outputs.text) for probe in each) for _, each in found}
    assert len(texts) == 1
    with run.learner.published():  # the moving average is what is validated, kept and probed
        last = found[-1].probes[0]
        trace = look(run.model.eval(), ciphers.subwords(), last.inputs.ids[:-1], last.outputs.ids[1:])
    np.testing.assert_allclose(last.log_probs, trace.log_probs, atol=1e-6)
    assert not np.allclose(found[0].probes[0].log_probs, last.log_probs, atol=1e-3)


def test_a_run_learns_the_same_whether_it_is_probed_or_not(tmp_path, data):
    learned = []
    for name, sentences in (("probed", 2), ("alone", 0)):
        run = started(tmp_path / name, data, sentences)
        run.train()
        learned.append([weight.clone() for weight in run.model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*learned, strict=True))
    assert not (tmp_path / "alone" / "probes").exists()


def test_a_run_that_is_stopped_and_goes_on_stores_what_one_that_was_not_does(tmp_path, data):
    whole = started(tmp_path / "whole", data)
    whole.train()
    stopped = started(tmp_path / "stopped", data, listeners=stop_at(5))
    stopped.train()
    later = tmp_path / "stopped" / "probes" / "step-00000006.safetensors"
    later.write_bytes(b"from a process that was killed after its last checkpoint")
    again = started(tmp_path / "stopped", data)
    assert list(stored(again)) == [0, 2, 4]
    again.train()
    assert stored(again) == stored(whole)


def test_of_many_validations_some_stay(tmp_path, data, monkeypatch):
    monkeypatch.setattr(probing, "KEPT", 3)
    run = started(tmp_path / "run", data)
    for step in range(0, 27, 2):
        run.probe(run.model, step)
    run.probe(run.model, 27)  # at the end, between two validations
    assert list(probe_files(run.folder)) == [0, 8, 16, 24, 27]


def test_long_sentences_are_left_alone(tmp_path, data, monkeypatch):
    monkeypatch.setattr(probing, "LONGEST", 3)
    chosen = Probing(tmp_path, data.valid, ciphers.subwords(), sentences=50, every=2)
    assert 0 < len(chosen.pairs) < 50
    assert all(max(map(len, pair)) <= 3 for pair in chosen.pairs)
