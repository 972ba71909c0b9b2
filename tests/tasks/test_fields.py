"""Summaries and answers from rows with named fields; and models that start from one that is there."""

import json
import re

import pytest
import torch
from hypothesis import given as for_all
from hypothesis import strategies as st

import regard
from regard.config import read_config
from regard.data.reading.templates import model_input
from regard.errors import RequestError
from regard.tasks.fields import Answer
from regard.tasks.pairs import right_outputs
from regard.tasks.task import DataFiles, Job
from regard.text.normalisation import composed
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
    assert len(Answer().prepared(run.folder / "data", run.config).lesson.train) > 70


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


ODD = [
    *("\ufeff", "\0", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\n", "\t"),
    *("\u200e", "\u200f", "\u202b", "\u202e", "\u2066", "\u00a0", "\u3000", "\u200b", "\u00ad", "\x7f"),
    *("\u0301", "e\u0301", "\u00e9", "\u212b", "\u2000", "\u1100\u1161", "\ud800", "\udfff", "\U0001f600"),
    *("\ufffd", "a", "b", " ", '"', "\\", "{", "}", "中"),
]  # fmt: skip
odd_texts = st.lists(st.sampled_from(ODD) | st.characters(exclude_categories=()), max_size=9).map("".join)


@for_all(rows=st.lists(st.tuples(odd_texts, odd_texts, odd_texts), min_size=1, max_size=7), raw=st.booleans())
def test_a_text_of_any_characters_is_the_same_where_it_is_prepared_and_where_it_is_scored(
    tmp_path_factory, rows, raw
):
    """What a corpus reads from the derived table is what the correct outputs are looked up by."""
    folder = tmp_path_factory.mktemp("odd")
    objects = [{"question": one, "context": two, "answers": [right, "b"]} for one, two, right in rows]
    lines = [json.dumps(each, ensure_ascii=not raw) for each in objects]
    (folder / "qa.jsonl").write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")
    job = Job(
        folder=folder,
        config=read_config(preset="tiny", settings=["task.name=answer"]),
        files=DataFiles(train=(folder / "qa.jsonl",)),
    )
    task = Answer()
    source = task.source(job, task.open_files(job))
    right = right_outputs(folder / "data" / "text")
    read = list(source.train.rows())
    assert len(read) == len(rows)
    for text, output in read:
        assert composed(output) in right[composed(text)]
    for (text, _), line in zip(read, lines, strict=True):
        asked = model_input("{question} {context}", json.loads(line))
        assert text == re.sub("[\ud800-\udfff]", "\ufffd", asked)  # a request with half a pair is refused


@pytest.mark.parametrize("task", ["answer", "summarise", "converse"])
def test_odd_characters_end_in_scores_and_are_counted(tmp_path, task):
    odd = ["\ufeff", "\0", "\u2028", "\x85", "\u200f", "e\u0301", "\ud800", " \ufeff ", "", "\r\n"]
    texts = [f"the {odd[i % 10]} cat {i}{odd[i % 10]}" for i in range(90)]
    shapes = {
        "answer": lambda text: {"question": text, "context": text, "answers": [text, "cat"]},
        "summarise": lambda text: {"document": text + text, "summary": text},
        "converse": lambda text: {"turns": [text, text[4:], text]},
    }
    file = tmp_path / "odd.jsonl"
    file.write_text("".join(json.dumps(shapes[task](text)) + "\n" for text in texts))
    settings = ["model.vocab_size=300", *SETTINGS, "model.max_length=97", "decoding.extra_length=0"]
    run = train(file, task=task, out=tmp_path / "run", preset="tiny", settings=settings, device="cpu")
    assert run.scores is not None
    reported = "\n".join(run.messages)
    assert "byte order mark" in reported
    assert "NUL" in reported
    assert "odd.jsonl:2" in reported
    other = tmp_path / "other.jsonl"
    other.write_text(file.read_text().replace("cat", "dog"))
    out = tmp_path / "given"
    given = train(file, test=other, task=task, out=out, preset="tiny", settings=settings, device="cpu")
    assert given.scores is not None
    assert regard.evaluate(run.folder, file) is not None
