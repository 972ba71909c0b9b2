"""`regard train --task generate` and `regard generate`, as a user types them."""

import io
import json
import re
import sys

import pytest

from regard.cli import main

TINY = [
    *("--preset", "tiny", "--device", "cpu"),
    *(
        word
        for setting in (
            "model.d_model=32",
            "model.d_ff=32",
            "model.max_length=31",
            "model.vocab_size=300",
            "training.batch_tokens=500",
            "training.max_steps=4",
            "training.validate_every=2",
            "training.checkpoint_every=2",
        )
        for word in ("--set", setting)
    ),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate")
    (folder / "poems.tsv").write_text("".join(f"poem {i}\tthe cat sat on mat {i}\n" for i in range(120)))
    words = ["train", "--task", "generate", str(folder / "poems.tsv"), "--columns", "1,2"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--out", str(folder / "run"), *TINY])
    assert not ended.value.code
    return folder / "run"


def typed(capsys, monkeypatch, *words, stdin=b""):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return ended.value.code or 0, *capsys.readouterr()


def test_a_prompt_is_printed_with_what_follows(run, capsys, monkeypatch):
    words = ["generate", "the cat", "--model", str(run), "--max-tokens", "5"]
    status, out, _ = typed(capsys, monkeypatch, *words)
    assert status == 0
    assert out.startswith("the cat")
    assert typed(capsys, monkeypatch, *words)[1] == out


def test_lines_come_from_standard_input_and_spoilt_ones_are_told(run, capsys, monkeypatch):
    words = ["generate", "--model", str(run), "--max-tokens", "3", "--json"]
    status, out, err = typed(capsys, monkeypatch, *words, stdin=b"the\n\xff\na \xe9\xbe\x98\n")
    first, second, third = map(json.loads, out.splitlines())
    assert status == 2
    assert (first["prompt"], third["prompt"], third["unseen"]) == ("the", "a 龘", ["龘"])
    assert "standard input:2" in second["error"]
    assert "is not UTF-8" in err


def test_a_line_that_is_too_long_does_not_stop_the_others(run, capsys, monkeypatch):
    lines = b"the\n" + b"cat " * 90 + b"\nthe\n"
    words = ["generate", "--model", str(run), "--max-tokens", "3"]
    status, out, err = typed(capsys, monkeypatch, *words, stdin=lines)
    _, alone, _ = typed(capsys, monkeypatch, *words, "the")
    assert (status, out) == (2, f"{alone}\n{alone}")
    assert "standard input:2: the model was trained on texts of 31 tokens" in err


def test_the_next_command_begins_with_a_line_that_has_words(tmp_path, capsys, monkeypatch):
    (tmp_path / "play.txt").write_text("\n\nthe cat\n\n\nsat on a mat\n" * 60)
    words = ["train", "--task", "generate", str(tmp_path / "play.txt"), "--out", str(tmp_path / "run")]
    status, out, _ = typed(capsys, monkeypatch, *words, *TINY)
    assert status == 0
    assert re.search(r"^  regard generate --model \S+ '[^'\n]*\w[^'\n]*'$|\w$", out.rstrip().split("\n")[-1])
    assert out.rstrip().split("\n")[-1].startswith("  regard generate")


def test_too_many_tokens_are_refused_in_words(run, capsys, monkeypatch):
    status, _, err = typed(capsys, monkeypatch, "generate", "a", "--model", str(run), "--max-tokens", "99")
    assert status == 2
    assert "let the window slide (--past-length slide)" in err


def test_a_task_that_there_is_not_and_options_of_another_are_refused(tmp_path, capsys, monkeypatch):
    status, _, err = typed(capsys, monkeypatch, "train", "--task", "generat", "x.txt")
    assert (status, "did you mean generate?" in err) == (2, True)
    status, _, err = typed(capsys, monkeypatch, "train", "--task", "generate", "x.txt", "--target", "en")
    assert (status, "--target: not for the task generate" in err) == (2, True)
    status, _, err = typed(capsys, monkeypatch, "train", "--task", "generate", str(tmp_path / "missing.txt"))
    assert (status, "missing.txt" in err) == (2, True)


def test_a_prompt_that_is_too_long_does_not_cost_the_others_theirs(run, capsys, monkeypatch):
    words = ["generate", "--model", str(run), "--max-tokens", "3", "--json"]
    status, out, err = typed(capsys, monkeypatch, *words, stdin=b"the\n" + b"cat " * 99 + b"\na\n")
    first, second, third = map(json.loads, out.splitlines())
    assert (status, first["prompt"], second["text"], third["prompt"]) == (2, "the", "", "a")
    assert "standard input:2: the model was trained on texts of 31 tokens" in err
