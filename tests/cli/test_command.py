"""How words are read: where a model may stand, what is no text, and what may not be repeated."""

import contextlib
import json
from pathlib import Path

import pytest
import typer
from typer.core import TyperOption

from regard.bundle.manifest import MANIFEST
from regard.cli.program import app
from tests.programs import run_regard
from tests.refusals import refused

VERBS = typer.main.get_command(app).commands
LONG = "猫" * 5000
"""Longer than the name of a file can be."""


def read(verb, *words):
    """The parameters of a verb for some words."""
    return VERBS[verb].make_context(verb, list(words)).params


def plain(value):
    """A value with its paths as they were typed."""
    if isinstance(value, list | tuple) or value is None:
        return [plain(each) for each in value or ()]
    return str(value) if isinstance(value, Path) else value


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with two models in `runs`, a file and a folder."""
    for model in ("runs/one/best", "runs/two"):
        (tmp_path / model).mkdir(parents=True)
        (tmp_path / model / MANIFEST).touch()
    (tmp_path / "notes").write_text("one\ntwo\n")
    (tmp_path / "hello.en").touch()
    (tmp_path / "v1.1").touch()
    (tmp_path / "my first notes.txt").touch()
    (tmp_path / "cat").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("verb", "words", "models", "rest"),
    [
        ("translate", ["--beam", "1", "runs/one", "A dog runs."], ["runs/one"], {"texts": ["A dog runs."]}),
        ("translate", ["--beam=1", "runs/one"], ["runs/one"], {"texts": [], "beam": 1}),
        ("translate", ["runs/one/best", "x", "--beam", "1", "y"], ["runs/one/best"], {"texts": ["x", "y"]}),
        ("translate", ["A dog runs."], ["zh-en"], {"texts": ["A dog runs."]}),
        ("translate", ["zh-en", "A dog runs."], ["zh-en"], {"texts": ["A dog runs."]}),
        ("translate", ["-m", "runs/one", "-m", "runs/two", "x"], ["runs/one", "runs/two"], {"texts": ["x"]}),
        ("translate", ["--prefix", "runs/one", "runs/two"], ["runs/two"], {"prefix": "runs/one"}),
        ("translate", ["runs/two", "--prefix", "runs/two"], ["runs/two"], {"prefix": "runs/two"}),
        ("translate", ["runs/one", "--", "notes", "-x"], ["runs/one"], {"texts": ["notes", "-x"]}),
        ("translate", ["--", "zh-en", "--json"], ["zh-en"], {"texts": ["zh-en", "--json"]}),
        ("classify", ["--json", "runs/one", "a film"], ["runs/one"], {"texts": ["a film"]}),
        ("generate", ["--temperature", "0.8", "runs/one", "To be"], "runs/one", {"prompts": ["To be"]}),
        ("look", ["--view", "alignment", "runs/one", "a cat"], "runs/one", {"source": "a cat"}),
        ("look", ["nowhere", "a cat"], "nowhere", {"source": "a cat"}),
        ("score", ["--json", "runs/one", "a.zh", "a.en"], ["runs/one"], {"sources": "a.zh"}),
        ("score", ["a.zh", "a.en"], ["zh-en"], {"targets": "a.en"}),
        ("score", ["runs/nowhere", "a.zh", "a.en"], ["runs/nowhere"], {"sources": "a.zh"}),
        ("evaluate", ["--beam", "2", "runs/one", "a.tsv"], ["runs/one"], {"source": "a.tsv"}),
        ("evaluate", ["a.zh", "a.en", "--model", "runs/two"], ["runs/two"], {"reference": "a.en"}),
        ("summarise", ["--json", "runs/one", "x"], ["runs/one"], {"texts": ["x"]}),
        ("answer", ["--context", "runs/two", "runs/one", "Who?"], ["runs/one"], {"texts": ["Who?"]}),
        ("chat", ["--seed", "2", "runs/one", "Hi."], ["runs/one"], {"turns": ["Hi."]}),
        ("serve", ["--port", "1", "runs/one", "runs/two"], ["runs/one"], {"more": ["runs/two"]}),
        ("serve", ["-m", "runs/one", "-m", "runs/two"], ["runs/one", "runs/two"], {"more": []}),
        ("info", ["--json", "nowhere"], "nowhere", {"as_json": True}),
        ("export", ["--to", "onnx", "runs/one", "out"], "runs/one", {"out": "out"}),
        ("export", ["out", "-m", "runs/one", "--to", "onnx"], "runs/one", {"out": "out"}),
    ],
)
def test_the_model_is_the_first_word_wherever_options_stand(verb, words, models, rest):
    found = read(verb, *words)
    assert plain(found["models"] if "models" in found else found["model"]) == models
    assert {name: plain(found[name]) for name in rest} == rest


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("translate", ["runs/one", "--model", "runs/two"]),
        ("translate", ["-m", "runs/one", "zh-en"]),
        ("evaluate", ["--model", "runs/one", "runs/two", "a.tsv"]),
        ("info", ["runs/one", "-m", "runs/two"]),
    ],
)
def test_a_model_is_named_in_one_way(verb, words):
    with refused("two_models"):
        read(verb, *words)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["notes"], "`regard translate < notes` reads its lines"),
        (["runs/one", "notes"], "`regard translate runs/one < notes`"),
        (["-m", "runs/one", "a cat", "notes"], "`regard translate --model runs/one < notes`"),
        (["cat"], "`regard translate -- cat` takes it as a text"),
        (["cat"], f"cat: is not a model folder: {MANIFEST} is missing"),
        (["runs"], "is not a model folder"),
        (["a cat", "runs/one"], "runs/one: is a model; name it first, or with --model"),
        (["a cat", "zh-en"], "zh-en: is a model"),
        (["runs/onee", "a cat"], "runs/onee: there is no such file; did you mean runs/one?"),
        (["models/zh-en"], "models/zh-en: there is no such file"),
        (["rnus/one", "a cat"], "rnus/one: there is no such file"),
        (["notse.txt"], "notse.txt: there is no such file"),
        (["./nowhere"], "there is no such file"),
        (["/nowhere/run"], "/nowhere/run: there is no such file"),
        (["~/run"], "there is no such file"),
        (["./rnu"], "./rnu: there is no such file"),
        (["./our notes.txt"], "./our notes.txt: there is no such file"),
        (["first notes.txt"], "did you mean my first notes.txt?"),
        (["zh_en", "a cat"], "zh_en: is no model; did you mean zh-en?"),
        (["en-zh", "a cat"], "did you mean zh-en?"),
        (["runs/one", "-"], "`regard translate runs/one` reads standard input"),
    ],
)
def test_a_text_that_is_a_path_is_refused_and_what_to_type_is_said(words, advice):
    with refused("path_as_text", advice):
        read("translate", *words)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "text",
    [
        *("and/or", "1/2", "km/h", "http://example.org/a.txt", "https://a.org", "this/that or runs/one"),
        *("see notes.txt", "请打开说明.txt", "Node.js", "e.g.", "3.14", "猫/狗", "/ˈwɔːtə/", "…", "", " "),
        *("a\0b", LONG, f"cat/{LONG}"[::-1], '{"question":"a/b"}', "amazon.de", "\\frac{1}{2}"),
        *("Hello.", "hello.", "v1.2", "/help", "/kæt/", "notes/cats", "www.example.org/a.html", "as-is"),
    ],
)
def test_texts_with_slashes_and_dots_are_texts(text):
    for verb, name in (("translate", "texts"), ("look", "source")):
        found = read(verb, text)[name]
        assert found == ([text] if verb == "translate" else text)


@pytest.mark.usefixtures("here")
def test_a_verb_without_standard_input_does_not_offer_it():
    with refused("path_as_text", "`regard look -- notes`") as caught:
        read("look", "notes")
    assert "<" not in str(caught.value)


def test_help_is_printed_whatever_else_is_there():
    done = run_regard("translate", "README.md", "--help", "--beam", "1", "--beam", "2")
    assert (done.returncode, "[MODEL] [TEXT|FILE]" in done.stdout) == (0, True)


def test_the_model_that_is_named_answers(talker, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    named = run_regard("translate", "--model", talker, "三月", "--beam", "1", "--json")
    assert (
        json.loads(named.stdout)["text"]
        != json.loads(run_regard("translate", "三月", "--json").stdout)["text"]
    )
    for words in (
        ["--beam", "1", talker, "三月"],
        [talker, "--beam", "1", "三月"],
        ["-m", talker, "三月", "--beam=1"],
    ):
        done = run_regard("translate", *words, "--json")
        assert (done.returncode, done.stdout) == (0, named.stdout), done.stderr
    wrong = run_regard("translate", talker / "nowhere", "三月")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "error[path_as_text]" in wrong.stderr


ONCE = [
    (verb, param)
    for verb, command in VERBS.items()
    for param in command.params
    if isinstance(param, TyperOption) and not param.multiple
]


@pytest.mark.parametrize(("verb", "option"), ONCE, ids=[f"{verb} {option.name}" for verb, option in ONCE])
def test_an_option_of_one_value_is_given_once(verb, option):
    flag = max(option.opts, key=len)
    words = [flag] if option.is_flag else [flag, "1"]
    with refused("repeated_option", f"{flag} is given 2 times"):
        read(verb, *words, *words)


def test_an_option_of_several_values_is_repeated_as_often_as_needed():
    assert read("translate", "x", "--keep", "a", "--keep", "b")["keep"] == ["a", "b"]
    with contextlib.suppress(typer.Exit):
        assert read("train", "--set", "a=1", "--set", "b=2")["settings"] == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("verb", "words", "flag"),
    [
        ("translate", ["--from", "zh", "x"], "--source CODE"),
        ("translate", ["x", "--to", "en"], "--target CODE"),
        ("train", ["a.zh", "a.en", "--to=en"], "--target CODE"),
        ("evaluate", ["a.zh", "a.en", "--to", "en"], "--target CODE"),
    ],
)
def test_a_language_has_one_flag_in_every_verb(verb, words, flag):
    with refused("unknown_option", flag):
        read(verb, *words)
