"""`regard summarise`, `answer` and `chat`: models of named fields, by lines and in conversations."""

import io
import json
import sys
from dataclasses import replace

import pytest

import regard
from regard.cli import main
from regard.config import TaskConfig
from tests.cli.conftest import Answer
from tests.serve.field_models import save_field_models

ROW = {"question": "who sat?", "context": "the cat sat on the mat"}
TURNS = ["who sat?", "the cat", "on the mat?"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Model folders by the verbs that run them; they know nothing yet."""
    folder = tmp_path_factory.mktemp("fields")
    answers, talks = save_field_models(folder)
    bundle = regard.load_bundle(answers)
    task = TaskConfig(name="summarise")
    summaries = regard.save_bundle(folder / "summaries", bundle.model, subwords=bundle.subwords, task=task)
    short = replace(regard.load_bundle(talks).decoding, extra_length=1)  # so that replies can be read, too
    task = TaskConfig(name="converse")
    chat = regard.save_bundle(
        folder / "chat", bundle.model, subwords=bundle.subwords, task=task, decoding=short
    )
    return {"summarise": summaries, "answer": answers, "chat": chat}


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Type `regard` and some words."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))

    def run(*words, stdin="", terminal=False):
        stream = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        stream.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(SystemExit) as ended:
            main([*map(str, words)])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return run


def test_each_line_is_summarised(run, models):
    texts = ["the cat sat on the mat", '{"document": "a dog sat"}']
    expected = [
        regard.load(models["summarise"]).respond(text).text
        for text in ("the cat sat on the mat", "a dog sat")
    ]
    assert run("summarise", models["summarise"], *texts).out.splitlines() == expected
    piped = run("summarise", "--model", models["summarise"], stdin="\n".join(texts))
    assert (piped.status, piped.out.splitlines()) == (0, expected)
    greedy = run("summarise", models["summarise"], "--beam", 1, "--json", texts[0])
    assert (
        json.loads(greedy.out)["text"] == regard.load(models["summarise"]).respond(texts[0], beam_size=1).text
    )
    long = run("summarise", models["summarise"], stdin=f"{'mat ' * 99}\n{texts[0]}\n")
    assert (long.status, long.out.splitlines()) == (2, ["", expected[0]])
    assert "standard input:1: " in long.err


def test_a_question_is_answered_about_a_context_or_as_an_object(run, models):
    expected = regard.load(models["answer"]).respond(ROW).text
    asked = run("answer", models["answer"], ROW["question"], "--context", ROW["context"])
    assert (asked.status, asked.out) == (0, f"{expected}\n")
    assert run("answer", models["answer"], json.dumps(ROW)).out == asked.out
    lines = run("answer", models["answer"], "--context", ROW["context"], stdin=f"{ROW['question']}\nsat\n")
    assert lines.out.splitlines()[0] == expected
    assert len(lines.out.splitlines()) == 2


def test_samples_differ_with_the_seed_and_need_the_flag(run, models):
    words = ("answer", models["answer"], json.dumps(ROW), "--sample", "--seed")
    assert len({run(*words, seed).out for seed in range(5)}) > 1
    refused = run("answer", models["answer"], "x", "--temperature", "0.5")
    assert (refused.status, "error[missing_option]: --temperature needs --sample" in refused.err) == (2, True)


def test_a_conversation_is_continued(run, models):
    talks = regard.load(models["chat"])
    reply = talks.respond({"turns": TURNS}).text
    assert run("chat", models["chat"], *TURNS).out == f"{reply}\n"
    lines = [
        json.dumps({"id": 7, "turns": TURNS}),
        "",
        "no JSON",
        '{"turns": []}',
        json.dumps({"turns": TURNS[:1]}),
    ]
    piped = run("chat", models["chat"], stdin="\n".join(lines) + "\n")
    first, empty, *wrong, last = piped.out.splitlines()
    assert (piped.status, empty) == (2, "")
    assert json.loads(first) == {"id": 7, "turns": [*TURNS, reply]}
    assert ["error" in json.loads(line) for line in wrong] == [True, True]
    assert json.loads(last)["turns"] == [TURNS[0], talks.respond({"turns": TURNS[:1]}).text]
    assert "standard input:3: is not JSON" in piped.err
    assert "standard input:4: a conversation is a JSON object" in piped.err


def test_the_first_turns_of_a_long_conversation_are_left_out(run, models):
    turns = [f"the cat sat on the mat {i}" for i in range(40)]
    found = run("chat", models["chat"], *turns, "--json")
    assert found.status == 0
    n_left_out = int(found.err.split("the first ")[1].split()[0])
    assert json.loads(found.out)["turns"][:-1] == turns
    talks = regard.load(models["chat"])
    assert json.loads(found.out)["turns"][-1] == talks.respond({"turns": turns[n_left_out:]}).text
    with pytest.raises(regard.RequestError):
        talks.respond({"turns": turns[n_left_out - 1 :]})
    long = run("chat", models["chat"], "the mat " * 99)
    assert (long.status, "error[too_long]" in long.err) == (2, True)


def test_a_conversation_on_a_terminal_remembers_its_turns_until_an_empty_line(run, models):
    talks = regard.load(models["chat"])
    first = talks.respond({"turns": ["who sat?"]}).text
    second = talks.respond({"turns": ["who sat?", first, "on the mat?"]}).text
    typed = run(
        "chat",
        models["chat"],
        stdin="who sat?\non the mat?\n\non the mat?\n" + "mat " * 99 + "\n",
        terminal=True,
    )
    assert typed.status == 0
    alone = talks.respond({"turns": ["on the mat?"]}).text
    assert typed.out == f"> {first}\n> {second}\n> > {alone}\n> > \n"
    assert "Ctrl-D ends" in typed.err
    assert "regard: 'mat mat" in typed.err, (
        "a turn that is too long is reported, and the conversation goes on"
    )


@pytest.mark.parametrize("verb", ["summarise", "answer", "chat", "generate", "classify"])
def test_without_a_model_a_command_that_makes_one_is_named(run, verb):
    missing = run(verb, "a text")
    assert (missing.status, missing.out) == (2, "")
    assert f"error[no_model]: name a model, as in `regard {verb} RUN`; `regard train --task " in missing.err


def test_a_model_for_another_task_is_refused(run, models):
    for verb, other in (("summarise", "answer"), ("answer", "chat"), ("chat", "summarise")):
        wrong = run(verb, models[other], "a text")
        assert (wrong.status, wrong.out) == (2, "")
        assert f"so it cannot {verb}; use {other}" in wrong.err
    assert run("translate", models["answer"], "who sat?").status == 0, "any of them writes a text for a text"
