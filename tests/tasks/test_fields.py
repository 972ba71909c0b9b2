"""Summaries and answers from rows with named fields; and models that start from one that is there."""

import json

import pytest
import torch

import regard
from regard.config import read_config
from regard.errors import RequestError
from regard.tasks.fields import Answer
from regard.training.run import train
from regard.training.starting import Start
from tests.refusals import refused

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
    settings = ["model.vocab_size=300", *SETTINGS]
    return train(file, task="answer", out=folder / "run", preset="tiny", settings=settings, device="cpu")


def test_answers_are_scored_and_long_inputs_are_cut_and_counted(run):
    reported = "\n".join(run.messages)
    assert "1 input was cut after 18 tokens" in reported
    assert "qa.jsonl\n  90 lines; " in reported
    assert "train-0.jsonl" not in reported
    score = run.scores
    assert 0 <= score.exact <= score.f1 <= 100
    assert json.loads((run.folder / "scores.json").read_text())["f1"] == score.f1
    assert str(score) in run.result.text
    assert run.result.example.startswith("who sat on mat")


def test_the_same_answer_may_be_trained_on_and_held_out(run):
    """All rows have one answer: were outputs compared, nothing would be left."""
    assert len(Answer().prepared(run.folder / "data", run.config).lesson.train) > 80


def test_a_model_reads_fields_as_it_did_in_training(run):
    model = regard.load(run.folder, engine="torch")
    row = {"question": "who sat?", "context": "a\ncat"}
    assert model.respond(row, beam_size=1).text == model.translate("who sat? a cat", beam_size=1).text
    with pytest.raises(RequestError, match="no text in context"):
        model.respond({"question": "who sat?"})
    with pytest.raises(RequestError, match="tokens"):
        model.respond({"question": "who sat?", "context": "on the mat " * 30})


def test_its_encoder_seeds_a_classifier_with_its_subwords(run, tmp_path):
    table = tmp_path / "rows.tsv"
    table.write_text("".join(f"{i % 2}\tmat {i}\n" for i in range(100)))
    others = [each for each in SETTINGS if not each.startswith(("data.", "training.max_steps"))]
    settings = [*others, "training.max_steps=1", "training.learning_rate=1e-12"]
    new = train(
        table,
        task="classify",
        out=tmp_path / "run",
        preset="tiny",
        settings=settings,
        start_from=run.folder,
        device="cpu",
    )
    own = dict(Start.of(run.folder).bundle.model.named_parameters(remove_duplicate=False))
    taken = dict(regard.load_bundle(new.folder / "last").model.named_parameters())
    common = [name for name in taken if name.startswith(("encoder.", "input_embedding"))]
    assert len(common) > 5
    for name in common:
        torch.testing.assert_close(taken[name], own[name])


def test_its_decoder_seeds_a_generator(run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat\n" * 100)
    others = [each for each in SETTINGS if not each.startswith(("data.", "training.max_steps"))]
    settings = [*others, "training.max_steps=1", "training.learning_rate=1e-12"]
    new = train(
        text,
        task="generate",
        out=tmp_path / "run",
        preset="tiny",
        settings=settings,
        start_from=run.folder,
        device="cpu",
    )
    own = dict(Start.of(run.folder).bundle.model.named_parameters(remove_duplicate=False))
    for name, weight in regard.load_bundle(new.folder / "last").model.named_parameters():
        torch.testing.assert_close(weight.data, own[name])


def test_one_stack_cannot_become_the_other(run, tmp_path):
    config = read_config(preset="tiny", settings=["model.architecture=decoder", *SETTINGS]).model
    model = regard.LanguageModel(config)
    regard.save_bundle(tmp_path / "decoder", model, subwords=Start.of(run.folder).subwords)
    wanted = read_config(preset="tiny", settings=["model.architecture=encoder", "model.n_labels=2"]).model
    with refused("wrong_architecture", "decoder", "encoder"):
        Start.of(tmp_path / "decoder").shape(wanted)
