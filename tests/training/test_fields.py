"""Summaries and answers from rows with named fields; and models that start from one that is there."""

import json
from contextlib import nullcontext

import pytest
import torch

import regard
from regard.config import read_config
from regard.data.reading.documents import open_documents
from regard.data.reading.labelled import labelled_corpus
from regard.errors import ConfigError, RequestError
from regard.training.checkpoints.folder import claim
from regard.training.classification import ClassifierRun
from regard.training.distributed.world import World
from regard.training.fields import FieldsRun, fields_source
from regard.training.generation import GeneratorRun
from regard.training.starting import Start
from regard.training.tables import TableSource
from regard.training.texts import TextSource

CPU = World(torch.device("cpu"))
SETTINGS = (
    "model.d_model=24",
    "model.n_heads=3",
    "model.d_ff=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.max_length=19",
    "training.batch_tokens=400",
    "training.max_steps=3",
    "training.validate_every=3",
    "training.checkpoint_every=3",
    "training.precision=float32",
    "data.max_ratio=none",
    "data.cut_inputs=true",
    "decoding.extra_length=2",
    "decoding.beam_size=1",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fields")
    file = folder / "qa.jsonl"
    rows = [
        {
            "question": f"who sat on mat {i}?",
            "context": f"the cat sat on mat {i}. " * (9 if i == 1 else 1),
            "answers": ["cat"],
        }
        for i in range(90)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = read_config(preset="tiny", settings=["task.name=answer", *SETTINGS])
    told = []
    claim(folder / "run", config)
    sets = {"train": [file], "valid": [], "test": []}
    task = FieldsRun(
        folder / "run",
        config,
        lambda: fields_source(folder / "run", sets, config, vocab_size=300, subwords=None),
        CPU,
        tell=told.append,
    )
    task.train(lambda _: nullcontext(()))
    return task, "\n".join(told)


def test_answers_are_scored_and_long_inputs_are_cut_and_counted(run):
    task, told = run
    assert "1 input was cut after 18 tokens" in told
    assert "qa.jsonl\n  90 lines; " in told
    assert "train-0.jsonl" not in told
    score, examples = task.score()
    assert 0 <= score.exact <= score.f1 <= 100
    assert len(examples) == score.n_questions
    assert json.loads((task.folder / "scores.json").read_text())["f1"] == score.f1


def test_the_same_answer_may_be_trained_on_and_held_out(run):
    """All rows have one answer: were outputs compared, nothing would be left."""
    assert len(run[0].prepared.data.train) > 80


def test_a_model_reads_fields_as_it_did_in_training(run):
    model = regard.load(run[0].folder, engine="torch")
    row = {"question": "who sat?", "context": "a\ncat"}
    assert model.respond(row, beam_size=1).text == model.translate("who sat? a cat", beam_size=1).text
    with pytest.raises(RequestError, match="no text in context"):
        model.respond({"question": "who sat?"})
    with pytest.raises(RequestError, match="tokens"):
        model.respond({"question": "who sat?", "context": "on the mat " * 30})


def test_its_encoder_seeds_a_classifier_with_its_subwords(run, tmp_path):
    start = Start.of(run[0].folder)
    config = read_config(
        preset="tiny", settings=["model.architecture=encoder", "model.n_labels=2", *SETTINGS]
    )
    shape = start.shape(config.model)
    assert (shape.architecture, shape.d_model) == ("encoder", 24)
    table = tmp_path / "rows.tsv"
    table.write_text("".join(f"{i % 2}\tmat {i}\n" for i in range(100)))
    config = regard.RunConfig(model=shape, training=config.training, data=config.data)
    source = TableSource(train=labelled_corpus(table), subwords=start.subwords, max_tokens=19)
    claim(tmp_path / "run", config)
    task = ClassifierRun(tmp_path / "run", config, lambda: source, CPU, start=start)
    seen = {}
    task.train(lambda each: nullcontext(seen.update(first=_copy(each.model)) or ()))
    own = dict(start.bundle.model.named_parameters(remove_duplicate=False))
    common = [name for name in seen["first"] if name.startswith(("encoder.", "input_embedding"))]
    assert len(common) > 5
    for name in common:
        torch.testing.assert_close(seen["first"][name], own[name])


def test_its_decoder_seeds_a_generator(run, tmp_path):
    start = Start.of(run[0].folder)
    config = read_config(preset="tiny", settings=["model.architecture=decoder", *SETTINGS])
    text = tmp_path / "text.txt"
    text.write_text("the cat sat\n" * 100)
    config = regard.RunConfig(model=start.shape(config.model), training=config.training)
    source = TextSource(train=open_documents(text), subwords=start.subwords, max_tokens=19)
    claim(tmp_path / "run", config)
    task = GeneratorRun(tmp_path / "run", config, lambda: source, CPU, start=start)
    own = dict(start.bundle.model.named_parameters(remove_duplicate=False))
    for name, weight in task.run.model.named_parameters():
        torch.testing.assert_close(weight.data, own[name])


def test_one_stack_cannot_become_the_other(run, tmp_path):
    config = read_config(preset="tiny", settings=["model.architecture=decoder", *SETTINGS]).model
    model = regard.LanguageModel(config)
    regard.save_bundle(tmp_path / "decoder", model, subwords=run[0].prepared.subwords.model)
    wanted = read_config(preset="tiny", settings=["model.architecture=encoder", "model.n_labels=2"]).model
    with pytest.raises(ConfigError, match="is a model of the decoder alone, and encoder is to be trained"):
        Start.of(tmp_path / "decoder").shape(wanted)


def _copy(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}
