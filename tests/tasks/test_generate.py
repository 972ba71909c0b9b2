"""The task `generate`: an interrupted run ends like one that was not, and the perplexity is right."""

import json
import math

import pytest
import torch

import regard
from regard.bundle import load_bundle, weights_hash
from regard.look.trace.probes import probes
from regard.packing import pack
from regard.training.run import train
from tests.refusals import refused
from tests.training.copying import stop_at

SETTINGS = (
    "model.vocab_size=300",
    "model.d_model=24",
    "model.n_heads=3",
    "model.d_ff=32",
    "model.decoder_layers=1",
    "model.max_length=31",
    "data.valid_lines=2",
    "training.batch_tokens=200",
    "training.schedule=cosine",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.max_steps=12",
    "training.validate_every=6",
    "training.checkpoint_every=4",
    "training.precision=float32",
    "training.label_smoothing=0.0",
    "training.average_checkpoints=1",
)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "rhymes.txt"
    lines = [f"{a} {b} sat on the {c}." for a in ("the", "a") for b in ("cat", "dog") for c in ("mat", "hat")]
    file.write_text("\n".join(f"{line}\n" if i % 5 == 0 else line for i, line in enumerate(lines * 15)))
    return file


def trained(folder, text, **others):
    return train(text, task="generate", out=folder, preset="tiny", settings=SETTINGS, device="cpu", **others)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, text):
    run = trained(tmp_path_factory.mktemp("whole") / "run", text)
    assert run.reason == "12 steps are done"
    return run


def test_an_interrupted_run_ends_like_one_that_was_not(whole, tmp_path, text):
    for step in (5, 7):
        assert trained(tmp_path / "run", text, listeners=stop_at(step)).interrupted
    again = trained(tmp_path / "run", text)
    ends = (load_bundle(run.folder / "last").model for run in (again, whole))
    assert len(set(map(weights_hash, ends))) == 1


def test_other_data_is_refused_once_a_run_has_begun(whole, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("something else\n" * 90)
    with refused("data_changed", str(whole.folder)):
        trained(whole.folder, other)


def test_perplexity_is_that_of_the_held_out_text(whole, text):
    found = whole.scores
    held_out = "\n".join(text.read_text().removesuffix("\n").split("\n")[-2:])
    assert found.n_bytes == len(held_out.encode())
    subwords, model = whole.model.subwords, load_bundle(whole.folder / "best").model
    ids = subwords.encode_one(held_out).tolist()
    assert len(ids) < 31, "the text is one window"
    with torch.no_grad():
        log_probs = model(pack([[subwords.bos_id, *ids]])).log_softmax(-1)
    nll = -sum(float(log_probs[i, token]) for i, token in enumerate([*ids, subwords.eos_id]))
    assert found.nll == pytest.approx(nll, rel=1e-4)
    assert found.n_tokens == len(ids) + 1
    assert found.per_byte == pytest.approx(math.exp(nll / found.n_bytes), rel=1e-4)
    kept = json.loads((whole.folder / "scores.json").read_text())
    assert kept["bits_per_byte"] == pytest.approx(nll / math.log(2) / found.n_bytes, rel=1e-4)
    assert kept["held_out"] == "validation"


def test_the_model_folder_continues_texts_and_can_be_looked_into(whole):
    model = regard.load(whole.folder)
    one, other = model.generate(["the cat", ""], max_tokens=5, temperature=0)
    assert len(one.tokens) <= 5
    assert other.prompt == ""
    assert "".join(model.continue_text("the cat", max_tokens=5, temperature=0)) == one.text
    trace = model.look("the cat sat")
    assert trace.attention("decoder", layer=0, head=1).sum(-1) == pytest.approx(1.0)
    with pytest.raises(regard.RequestError, match="the options are"):
        model.generate("the", beams=3)
    with refused("wrong_task", "generate"):
        model.translate("the cat")


def test_the_journal_tells_bits_a_byte_and_a_continuation(whole):
    events = [json.loads(line) for line in (whole.folder / "journal.jsonl").read_text().splitlines()]
    validations = [event for event in events if "valid_loss" in event]
    assert all(event["valid_bits_per_byte"] > 0 for event in validations)
    assert {"source", "output", "reference"} == set(validations[0]["sample"])


def test_where_its_heads_look_in_the_beginnings_of_windows_is_stored(whole):
    first, *_, last = probes(whole.folder)
    assert first.step == 0
    for before, after in zip(first.probes, last.probes, strict=True):
        assert after.inputs is None
        assert after.outputs.ids == before.outputs.ids
        assert after.outputs.ids[0] == whole.model.subwords.bos_id
        assert after.outputs.ids[1] != whole.model.subwords.bos_id
        assert set(after.weights) == {"decoder"}
        assert after.log_probs.mean() > before.log_probs.mean()
