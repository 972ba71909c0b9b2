"""`regard train --task classify` and `regard classify`, as a user types them."""

import json

import pytest

from regard.cli import main
from regard.cli.shared.data_files import repeat_for_all
from tests.cli.test_generate import TINY, typed
from tests.serve.single_stack_models import save_single_stack_models


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    rows = "".join(
        f"{label}\tit is {word} {i}\n" for i in range(60) for label, word in ((0, "poor"), (1, "fine"))
    )
    (folder / "rows.tsv").write_text(rows)
    with pytest.raises(SystemExit) as ended:
        main(["train", "--task", "classify", str(folder / "rows.tsv"), "--out", str(folder / "run"), *TINY])
    assert not ended.value.code
    return folder / "run"


def test_each_text_gets_a_label_and_a_probability(run, capsys, monkeypatch):
    status, out, _ = typed(capsys, monkeypatch, "classify", "it is fine", "poor", "--model", str(run))
    assert status == 0
    labels, probabilities = zip(*(line.split("\t") for line in out.splitlines()), strict=True)
    assert set(labels) <= {"0", "1"}
    assert all(0.5 <= float(each) <= 1 for each in probabilities)


def test_several_models_answer_together(run, tmp_path, capsys, monkeypatch):
    words = ["classify", "it is fine", "--model", str(run), "--json"]
    one = json.loads(typed(capsys, monkeypatch, *words)[1])
    other = save_single_stack_models(tmp_path, ["0", "1"]) / "labeller"
    status, out, err = typed(capsys, monkeypatch, *words, "--model", str(other))
    assert status == 0, err
    two = json.loads(typed(capsys, monkeypatch, "classify", "it is fine", "--model", str(other), "--json")[1])
    for label, probability in json.loads(out)["probabilities"].items():
        assert probability == pytest.approx((one["probabilities"][label] + two["probabilities"][label]) / 2)
    odd = save_single_stack_models(tmp_path / "odd", ["ham", "spam"]) / "labeller"
    status, out, err = typed(capsys, monkeypatch, *words, "--model", str(odd))
    assert (status, out, "has other labels than" in err) == (2, "", True)


def test_lines_that_cannot_be_labelled_stay_in_step(run, capsys, monkeypatch):
    lines = b"fine\n\n" + b"it is poor " * 40 + b"\nfine\n"
    status, out, err = typed(capsys, monkeypatch, "classify", "--model", str(run), "--json", stdin=lines)
    first, empty, long, last = map(json.loads, out.splitlines())
    assert status == 2
    assert first == last
    assert empty["error"] == "standard input:2: the text is empty: there is nothing to label"
    assert "--too-long cut" in long["error"]
    assert "standard input:3" in err
    words = ["classify", "--model", str(run), "--too-long", "cut"]
    status, out, err = typed(capsys, monkeypatch, *words, stdin=b"it is poor " * 40)
    assert status == 0
    assert "tokens were not read" in err


def test_a_model_for_another_task_says_so(run, capsys, monkeypatch):
    status, _, err = typed(capsys, monkeypatch, "generate", "it", "--model", str(run))
    assert (status, "error[wrong_task]" in err, "use classify" in err) == (2, True, True)


def test_a_model_that_labels_nothing_is_refused_once_and_not_for_each_line(tmp_path, capsys, monkeypatch):
    folder = save_single_stack_models(tmp_path, ["good", "bad"]) / "writer"
    words = ["classify", "--model", str(folder)]
    status, out, err = typed(capsys, monkeypatch, *words, stdin=b"one\ntwo\n")
    assert (status, out, err.count("error[wrong_task]")) == (2, "", 1)


def test_texts_to_guess_tokens_of_are_many_words():
    words = ["t.tsv", "--pretrain", "a", "b", "--out", "run", "c"]
    assert repeat_for_all(words) == ["t.tsv", "--pretrain", "a", "--pretrain", "b", "--out", "run", "c"]


def test_a_translator_is_refused_once_and_not_at_each_line(talker, capsys, monkeypatch):
    words = ["classify", "--model", str(talker)]
    status, out, err = typed(capsys, monkeypatch, *words, stdin=b"fine\n" * 3)
    assert (status, out) == (2, "")
    assert err.count("error[wrong_task]") == 1
