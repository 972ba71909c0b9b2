"""`regard train` as a user types it."""

import json
import signal
import subprocess
import sys
import time

import pytest

from regard.config import read_config
from regard.data.numerals import sample
from regard.look.trace.probes import probes
from tests.programs import run_regard

QUICK = [
    *("--preset", "numerals", "--set", "training.max_steps=6", "--set", "training.validate_every=3"),
    *("--set", "model.d_model=32", "--set", "model.d_ff=32", "--set", "training.checkpoint_every=2"),
    *(
        "--set",
        "training.warmup_steps=2",
        "--set",
        "model.vocab_size=600",
        "--set",
        "decoding.extra_length=3",
    ),
]


def regard(folder, *words):
    return run_regard(*words, folder=folder)


@pytest.fixture
def files(tmp_path):
    pairs = sample("train", 800, 1)
    (tmp_path / "train.zh").write_text("".join(f"{pair.chinese}\n" for pair in pairs))
    (tmp_path / "train.en").write_text("".join(f"{pair.english}\n" for pair in pairs))
    return tmp_path


@pytest.mark.slow
def test_two_files_become_a_scored_model_and_the_same_command_finds_it_done(files):
    first = regard(files, "train", "train.zh", "train.en", *QUICK)
    assert first.returncode == 0, first.stderr
    assert "tok:13a" in first.stdout
    assert "exact matches:" in first.stdout
    assert "6 steps are done" in first.stderr
    assert "800 lines" in first.stderr
    run = files / "runs" / "zh-en"
    assert {path.name for path in run.iterdir()} >= {"best", "last", "journal.jsonl", "config.toml", "data"}
    assert [step for step, _ in probes(run)] == [0, 3, 6]
    assert "words are aligned by heads" in first.stderr
    kept = json.loads((run / "best" / "alignment.json").read_text())
    assert 0 <= kept["accuracy"] <= 1
    assert kept["n_pairs"] > 0
    scores = json.loads((run / "scores.json").read_text())
    assert f"BLEU {scores['bleu']:.2f}" in first.stdout
    assert "tok:13a" in scores["bleu_signature"]
    again = regard(files, "train", "train.zh", "train.en", *QUICK)
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    for path in ("train.zh", "train.en"):
        with (files / path).open("a") as file:
            file.write("another line\n")
    changed = regard(files, "train", "train.zh", "train.en", *QUICK)
    assert (changed.returncode, "error[data_changed]" in changed.stderr) == (2, True)
    info = regard(files, "info", "runs/zh-en/best")
    assert info.returncode == 0
    other = regard(files, "train", "train.zh", "train.en", *QUICK, "--set", "training.seed=9")
    assert other.returncode == 2
    assert "training.seed was 1 and is 9" in other.stderr


@pytest.mark.slow
def test_an_interrupted_run_has_its_own_exit_status_and_is_resumed(files):
    settings = ("training.max_steps=200", "training.validate_every=100", "training.checkpoint_every=100")
    words = ["train", "train.zh", "train.en", *QUICK, *(w for s in settings for w in ("--set", s))]
    command = [sys.executable, "-m", "regard", *words]
    child = subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, text=True)
    journal, deadline = files / "runs" / "zh-en" / "journal.jsonl", time.monotonic() + 120
    while not (journal.exists() and journal.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    _, told = child.communicate(timeout=120)
    assert child.returncode == 130, told
    assert "the same command resumes the run" in told
    for words_of_a_verb in (("info",), ("translate", "一")):
        verb, *texts = words_of_a_verb
        answer = regard(files, verb, "runs/zh-en", *texts)
        assert answer.returncode == 0, answer.stderr
        note = "regard: runs/zh-en has no validated model yet: using the model of step "
        assert answer.stderr.count(note) == 1, answer.stderr
    quick = ["train", "train.zh", "train.en", *QUICK, "--out", "new", "--max-steps", "1"]
    started = regard(files, *quick, "--from", "runs/zh-en")
    assert started.returncode == 0, started.stderr
    assert "starting from runs/zh-en/last" in started.stderr
    again = regard(files, *words)
    assert again.returncode == 0, again.stderr
    assert "resuming at step " in again.stderr
    assert "200 steps are done" in again.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["train.zh"], "[bad_files]"),
        ([], "[bad_files]"),
        (["--builtin", "poems"], "[bad_builtin]"),
        (["train.zh", "train.en", "--builtin", "numerals"], "[bad_builtin]"),
        (["--builtin", "numerals", "--valid", "train.zh", "train.en"], "leave out --valid"),
        (["train.zh", "train.en", "--out", "plain"], "[folder_in_use]"),
        (["train.zh", "missing.en"], "missing.en"),
        (["train.zh", "train.zh", "--target", "en"], "same file"),
        (["train.zh", "plain"], "[unknown_language]: plain: "),
        (["train.zh", "short.en"], "800"),
        (["train.zh", "train.en", "--out", "taken"], "[folder_in_use]"),
        (["train.zh", "train.en", "--set", "model.n_head=3"], "did you mean model.n_heads?"),
        (["train.zh", "train.en", "--valid", "train.zh", "train.en"], "training and for validation"),
    ],
)
def test_mistakes_are_answered_in_a_line_and_leave_nothing_behind(files, words, complaint):
    (files / "plain").write_text("one\n" * 800)
    (files / "short.en").write_text("one\n" * 10)
    (files / "taken").mkdir()
    (files / "taken" / "thesis.tex").write_text("mine")
    answer = regard(files, "train", *words)
    assert answer.returncode == 2, answer.stderr
    assert complaint in answer.stderr
    assert "Traceback" not in answer.stderr
    assert [path.name for path in (files / "taken").iterdir()] == ["thesis.tex"]
    assert not list(files.glob("runs/*/checkpoints"))


def test_a_task_in_the_file_of_settings_gets_its_files_as_with_the_option(tmp_path):
    rows = [f"{'ab'[i % 2]}\tthe {'cat' if i % 2 else 'dog'} {i} sleeps\n" for i in range(60)]
    (tmp_path / "t.tsv").write_text("".join(rows))
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("".join(f"a {name} line {i}\n" for i in range(60)))
    (tmp_path / "task.toml").write_text(
        'preset = "classifier"\n[task]\nname = "classify"\n[model]\nd_model = 12\nn_heads = 3\nd_ff = 16\n'
        "encoder_layers = 1\nvocab_size = 320\n[training]\nmax_steps = 2\npretrain_steps = 2\n"
    )
    words = ["train", "t.tsv", "--config", "task.toml", "--out", "run", "--pretrain", "one.txt", "two.txt"]
    done = regard(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "reading t.tsv\n" in done.stderr
    assert "pretraining on hidden tokens" in done.stderr
    assert json.loads((tmp_path / "run/data/labels.json").read_text())["labels"] == ["a", "b"]


def test_a_setting_in_a_file_wins_over_what_its_task_usually_has(tmp_path):
    rows = [{"document": f"the cat {i} sat " * 3, "summary": f"cat {i}"} for i in range(60)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "task.toml").write_text(
        'preset = "tiny"\n[task]\nname = "summarise"\n[data]\nmax_ratio = 3.0\n[model]\nd_model = 12\n'
        "n_heads = 3\nd_ff = 16\nencoder_layers = 1\nvocab_size = 320\n[training]\nmax_steps = 1\n"
    )
    done = regard(tmp_path, "train", "s.jsonl", "--config", "task.toml", "--out", "run")
    assert done.returncode == 0, done.stderr
    used = read_config(file=tmp_path / "run" / "config.toml")
    assert (used.data.max_ratio, used.data.cut_inputs, used.task.name) == (3.0, True, "summarise")
    wrong = regard(tmp_path, "train", "s.jsonl", "--task", "answer", "--set", "task.name=summarise")
    assert (wrong.returncode, "error[conflicting_tasks]" in wrong.stderr) == (2, True)
    both = regard(tmp_path, "train", "s.jsonl", "--config", "task.toml", "--set", "task.both_directions=true")
    assert (both.returncode, "error[option_not_for_task]" in both.stderr) == (2, True)
