"""A generator from files: a stopped run ends like one that was not, and what is measured is true."""

import json
import math

import pytest
import torch

import regard
from regard.bundle import load_bundle, weights_hash
from regard.config import read_config
from regard.data.reading.documents import open_documents
from regard.errors import CorpusError
from regard.look.trace.probes import probes
from regard.packing import pack
from regard.training.checkpoints.folder import claim
from regard.training.distributed.world import World
from regard.training.generation import GeneratorRun
from regard.training.texts import TextSource
from tests.training.copying import stop_at

SETTINGS = (
    "task.name=generate",
    "model.architecture=decoder",
    "model.d_model=24",
    "model.n_heads=3",
    "model.d_ff=32",
    "model.decoder_layers=1",
    "model.max_length=31",
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
CPU = World(torch.device("cpu"))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "rhymes.txt"
    lines = [f"{a} {b} sat on the {c}." for a in ("the", "a") for b in ("cat", "dog") for c in ("mat", "hat")]
    file.write_text("\n".join(f"{line}\n" if i % 5 == 0 else line for i, line in enumerate(lines * 15)))
    return file


def generator_run(folder, text, *settings):
    config = read_config(preset="tiny", settings=[*SETTINGS, *settings])
    source = TextSource(train=open_documents(text), vocab_size=300, max_tokens=config.model.max_length)
    claim(folder, config)
    return GeneratorRun(folder, config, lambda: source, CPU)


def trained(task, listeners=()):
    from contextlib import nullcontext

    return task.train(lambda _: nullcontext(listeners))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("whole") / "run"
    task = generator_run(folder, text)
    assert trained(task) == "12 steps are done"
    return task


def test_a_run_that_was_asked_to_stop_ends_like_one_that_was_not(whole, tmp_path, text):
    for step in (5, 7):
        assert trained(generator_run(tmp_path / "run", text), stop_at(step)) == "asked to stop"
    again = generator_run(tmp_path / "run", text)
    trained(again)
    assert weights_hash(again.run.model) == weights_hash(whole.run.model)


def test_other_data_is_refused_once_a_run_has_begun(whole, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("something else\n" * 90)
    with pytest.raises(CorpusError, match="the data has changed"):
        generator_run(whole.folder, other)


def test_perplexity_is_that_of_the_held_out_text(whole, text):
    found = whole.test()
    held_out = "\n".join(text.read_text().removesuffix("\n").split("\n")[-2:])
    assert found.n_bytes == len(held_out.encode())
    subwords, model = whole.prepared.subwords, load_bundle(whole.folder / "best").model
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
    with pytest.raises(regard.ConfigError, match="does not translate"):
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
        assert after.outputs.ids[0] == whole.prepared.subwords.bos_id
        assert after.outputs.ids[1] != whole.prepared.subwords.bos_id
        assert set(after.weights) == {"decoder"}
        assert after.log_probs.mean() > before.log_probs.mean()
