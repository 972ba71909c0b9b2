"""`regard evaluate FILE` of models for other tasks: the scores that their runs gave them."""

import json

import pytest

from tests.cli.test_generate import TINY, typed
from tests.serve.single_stack_models import save_single_stack_models

ROWS = [(label, f"it is {word} {i}") for i in range(40) for label, word in (("bad", "poor"), ("ok", "fine"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tasks")


def trained(folder, capsys, monkeypatch, task, file, *more):
    run = folder / task
    if not run.exists():
        words = ["train", "--task", task, str(file), "--test", str(file.with_name(f"test-{file.name}"))]
        status, _, err = typed(capsys, monkeypatch, *words, "--out", str(run), *more, *TINY)
        assert status == 0, err
    return run, json.loads((run / "scores.json").read_text())


def written(folder, name, lines):
    (folder / f"test-{name}").write_text("\n".join(lines[:9]) + "\n")
    (folder / name).write_text("\n".join(lines[9:]) + "\n")
    return folder / name


def evaluated(capsys, monkeypatch, run, file):
    words = ["evaluate", str(file.with_name(f"test-{file.name}")), "--model", str(run)]
    status, out, err = typed(capsys, monkeypatch, *words, "--json")
    assert status == 0, err
    told = typed(capsys, monkeypatch, *words)[1]
    return json.loads(out)[str(run)], told


def test_labels(folder, capsys, monkeypatch):
    file = written(folder, "rows.tsv", [f"{label}\t{text}" for label, text in ROWS])
    run, scores = trained(folder, capsys, monkeypatch, "classify", file)
    found, told = evaluated(capsys, monkeypatch, run, file)
    assert found["accuracy"] == scores["accuracy"]
    assert found["confusion"] == scores["confusion"]
    assert f"accuracy {scores['accuracy']:.2%}" in told
    (folder / "odd.tsv").write_text("odd\tsomething\n")
    status, _, err = typed(capsys, monkeypatch, "evaluate", str(folder / "odd.tsv"), "--model", str(run))
    assert (status, "error[unknown_label]" in err, "'odd'; the model knows bad, ok" in err) == (2, True, True)
    (folder / "none.tsv").write_text("ok\t \n")
    status, _, err = typed(capsys, monkeypatch, "evaluate", str(folder / "none.tsv"), "--model", str(run))
    assert (status, "error[no_usable_rows]" in err) == (2, True)


def test_labels_of_which_a_text_has_several_are_read_as_in_training(folder, capsys, monkeypatch):
    rows = [
        f"{label}||{word}|\tit is {word} {i}"
        for i in range(40)
        for label, word in (("bad", "poor"), ("ok", "fine"))
    ]
    file = written(folder, "tags.tsv", [" | \tnothing", *rows])
    words = ["train", "--task", "classify", str(file), "--test", str(file.with_name("test-tags.tsv"))]
    run, separator = folder / "tags", ["--set", "task.label_separator=|"]
    status, _, err = typed(capsys, monkeypatch, *words, "--out", str(run), *separator, *TINY)
    assert status == 0, err
    scores = json.loads((run / "scores.json").read_text())
    found, _ = evaluated(capsys, monkeypatch, run, file)
    assert [found[name] for name in ("n_texts", "micro_f1")] == [8, scores["micro_f1"]]


def test_several_classifiers_are_scored_together_too(folder, capsys, monkeypatch):
    file = written(folder, "rows.tsv", [f"{label}\t{text}" for label, text in ROWS])
    run, _ = trained(folder, capsys, monkeypatch, "classify", file)
    test = str(file.with_name("test-rows.tsv"))
    words = ["evaluate", test, "--model", str(run), "--model", str(run / "best")]
    status, out, err = typed(capsys, monkeypatch, *words, "--json")
    assert status == 0, err
    one, same, together = json.loads(out).values()
    assert one == same == together
    *_, last = typed(capsys, monkeypatch, *words)[1].split("the mean of their answers\n")
    assert f"accuracy {together['accuracy']:.2%}" in last
    # Those that tell other things apart are scored one by one.
    odd = save_single_stack_models(folder / "odd", ["bad", "ok", "odd"]) / "labeller"
    words = ["evaluate", test, "--model", str(run), "--model", str(odd)]
    status, out, err = typed(capsys, monkeypatch, *words, "--json")
    assert (status, list(json.loads(out))) == (0, [str(run), str(odd)]), err


def test_text(folder, capsys, monkeypatch):
    file = written(folder, "plays.txt", [f"to be or not {i} to be" for i in range(90)])
    run, scores = trained(folder, capsys, monkeypatch, "generate", file)
    found, told = evaluated(capsys, monkeypatch, run, file)
    assert found["n_bytes"] == scores["n_bytes"]
    assert found["bits_per_byte"] == pytest.approx(scores["bits_per_byte"], rel=1e-3)
    assert "bits a byte" in told


def test_answers_of_which_several_are_right(folder, capsys, monkeypatch):
    rows = [{"question": f"who {i}?", "context": f"cat {i}", "answers": [f"x {i}", ""]} for i in range(60)]
    file = written(folder, "qa.jsonl", [json.dumps(row) for row in rows])
    run, scores = trained(folder, capsys, monkeypatch, "answer", file, "--set", "decoding.extra_length=2")
    found, told = evaluated(capsys, monkeypatch, run, file)
    assert (found["exact"], found["f1"]) == (scores["exact"], scores["f1"])
    assert f"of {scores['n_questions']:,} answers" in told


def test_a_translator_wants_two_files_and_options_of_translations_are_refused(folder, capsys, monkeypatch):
    file = written(folder, "rows.tsv", [f"{label}\t{text}" for label, text in ROWS])
    run, _ = trained(folder, capsys, monkeypatch, "classify", file)
    words = ["evaluate", str(file), "--model", str(run)]
    status, _, err = typed(capsys, monkeypatch, *words, "--target", "en")
    assert (status, "error[option_not_for_task]: --target: " in err) == (2, True)
    status, _, err = typed(capsys, monkeypatch, *words[:2], str(file), *words[2:], "--columns", "1,2")
    assert (status, "error[option_not_for_task]: --columns" in err) == (2, True)
