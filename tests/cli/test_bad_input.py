"""Bad input, from the command line: an answer that says what and where, and never a traceback."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import QUICK

TABLE = ("--columns", "zh,en")


def write(folder, name, *lines):
    (folder / name).write_bytes(
        b"".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    )


def refused(answer, *complaints):
    assert answer.status == 2, answer.err
    for complaint in complaints:
        assert complaint in answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_a_file_that_lost_a_line_is_told_with_the_place_where_they_part(train, files, pairs):
    write(files, "train.en", *(f"{en}\n" for _, en in (*pairs[:200], *pairs[201:])))
    refused(
        train("train.zh", "train.en"),
        "train.en:399: the file ends here, while train.zh has 400 lines",
        "they seem to stop matching near line 2",
    )


def test_bytes_that_are_not_utf_8_are_told_with_file_line_and_byte(train, files, pairs):
    write(files, "train.en", *(f"{en}\n" for _, en in pairs[:6]), b"ab\xffc\n", *("x\n" for _ in pairs[7:]))
    refused(train("train.zh", "train.en"), "train.en:7: byte 3 (0xff) is not UTF-8; iconv")
    write(files, "pairs.tsv", "zh\ten\n", "一\tone\n", b"\xff\ttwo\n")
    refused(train("pairs.tsv", *TABLE), "pairs.tsv:3: byte 1 (0xff) is not UTF-8")
    refused(train("-", *TABLE, stdin=b"zh\ten\n\xff\ttwo\n"), "stdin.gz:2: byte 1 (0xff) is not UTF-8")


def test_what_cannot_be_done_is_told_before_a_file_is_read(train, files):
    refused(train("train.zh", "train.en", "--from", "nowhere"), "nowhere", "there is no such folder")
    refused(train("train.zh", "train.en", "--log-to", "tensorbord"), "did you mean tensorboard?")
    assert not (files / "runs").exists()


@pytest.mark.usefixtures("files")
def test_weights_cannot_be_shared_by_one_process(train):
    refused(train("train.zh", "train.en", "--shard"), "[cannot_shard]")


def test_an_empty_file_is_told(train, files):
    write(files, "empty.en")
    refused(train("train.zh", "empty.en"), "empty.en: the file is empty, while train.zh has 400 lines")
    write(files, "empty.zh")
    refused(train("empty.zh", "empty.en"), "empty.zh: the file is empty")
    write(files, "empty.tsv")
    refused(train("empty.tsv", *TABLE), "empty.tsv: the file has no rows")
    refused(train("-", *TABLE), "[empty_file]: standard input: ")
    refused(train("train.zh", "train.en", "--test", "empty.zh", "empty.en"), "empty.zh: the file is empty")


def test_a_folder_that_is_no_file_is_told_before_its_language_is_asked_for(train, files):
    (files / "folder").mkdir()
    refused(train("folder", "train.en"), "folder: is a directory; name a file in it")


def test_files_of_named_fields_are_given_once(train, files):
    write(files, "a.jsonl", '{"document": "a", "summary": "b"}\n')
    summarise = ("--task", "summarise", "a.jsonl")
    refused(train(*summarise, "a.jsonl"), "a.jsonl: is given twice")
    refused(train(*summarise, "--valid", "a.jsonl"), "a.jsonl: is given for training and for validation")


def test_who_stops_it_early_is_told_how_to_go_on(train, files, monkeypatch):  # noqa: ARG001 - they are there
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.tasks.data_folder.learn_subwords", stop)
    answer = train("train.zh", "train.en")
    assert answer.status == 130
    assert "the same command resumes the run" in answer.err


def test_files_that_cannot_be_what_was_meant_are_told_all_at_once(train, files):
    (files / "folder.en").mkdir()
    refused(
        train("trian.zh", "folder.en"),
        "trian.zh: there is no such file; did you mean train.zh?",
        "folder.en: is a directory; name a file in it",
    )
    (files / "link.en").symlink_to("train.zh")
    refused(train("train.zh", "link.en"), "link.en: is the same file as train.zh")
    refused(
        train("train.zh", "train.en", "--test", "train.zh", "train.en"),
        "train.zh: is given for training and for the test",
        "train.en: is given for training and for the test",
    )
    assert not (files / "runs").exists()


@pytest.mark.parametrize(
    ("name", "content", "columns", "complaint"),
    [
        ("t.tsv", "zh\ten\n一\tone\n二\n", "zh,en", "t.tsv:3: has 1 field, but line 1 has 2"),
        ("t.tsv", "一\tone\n二\ttwo\n", "1,3", "t.tsv:1: has no column 3; it has 2 fields"),
        ("t.tsv", "zh\ten\n一\tone\n", "zh,de", "t.tsv:1: there is no column de; the columns are zh, en"),
        ("t.tsv", "zh\ten\n", "zh,en", "t.tsv: the file has no rows"),
        ("t.csv", "zh,en\n一,one\n", "zh,de", "t.csv:1: there is no column de; the columns are zh, en"),
        ("t.jsonl", '{"zh": "一", "en": "one"}\n{"zh": "二"}\n', "zh,en", "t.jsonl:2: there is no column en"),
        ("t.jsonl", '{"zh": "一", "en": "one"}\n{"zh": "二", "en"\n', "zh,en", "t.jsonl:2: is not JSON"),
        ("t.jsonl", '{"t": {"zh": "一"}}\n', "t.zh,t.en", "t.jsonl:1: there is no column t.en"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_its_line(train, tmp_path, name, content, columns, complaint):
    write(tmp_path, name, content)
    refused(train(name, "--columns", columns, "--source", "zh", "--target", "en"), complaint)


def test_a_validation_table_without_the_columns_is_told(train, files, pairs):
    write(files, "pairs.tsv", "zh\ten\n", *(f"{zh}\t{en}\n" for zh, en in pairs))
    write(files, "valid.tsv", "chinese\tenglish\n", "一\tone\n")
    refused(train("pairs.tsv", *TABLE, "--valid", "valid.tsv"), "valid.tsv:1: there is no column zh")


def test_a_packed_file_that_was_cut_short_is_told(train, files):
    write(files, "pairs.tsv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b")
    refused(train("pairs.tsv.gz", *TABLE), "pairs.tsv.gz: is damaged or truncated")


def test_a_folder_that_holds_something_else_is_told_and_left_alone(train, files):
    (files / "taken").mkdir()
    write(files / "taken", "thesis.tex", "mine")
    for words in (("train.zh", "train.en"), ("-", *TABLE)):
        refused(train(*words, "--out", "taken"), "[folder_in_use]", "taken")
        assert [path.name for path in (files / "taken").iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_a_folder_that_holds_another_run_is_told_and_left_alone(train, files, pairs):
    assert train("train.zh", "train.en", "--out", "run").status == 0
    before = {path: path.read_bytes() for path in (files / "run").rglob("*") if path.is_file()}
    refused(
        train("train.zh", "train.en", "--out", "run", "--set", "model.d_ff=16"),
        "[settings_changed]",
        "--from run --out NEW",
        "model.d_ff was 32 and is 16",
    )
    write(files, "pairs.tsv", "zh\ten\n", *(f"{zh}\t{en}\n" for zh, en in pairs))
    refused(train("pairs.tsv", *TABLE, "--out", "run"), "[data_changed]", "run: ")
    after = {path: path.read_bytes() for path in (files / "run").rglob("*") if path.is_file()}
    assert {path.name for path in before if before[path] != after.get(path)} <= {".lock"}


@pytest.mark.skipif(not Path("/sys").is_dir(), reason="a folder that not even root may write to")
@pytest.mark.usefixtures("files")
def test_a_folder_that_cannot_be_written_to_is_told(train):
    refused(train("train.zh", "train.en", "--out", "/sys/run"), "/sys/run: ")
    refused(train("train.zh", "train.en", "--out", "train.zh/run"), "train.zh: Not a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_so_is_one_without_permission(train, files):
    (files / "mine").mkdir(mode=0o500)
    refused(train("train.zh", "train.en", "--out", "mine"), "mine/.lock: Permission denied")


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [4, 64])
def test_a_full_disk_is_told_and_the_same_command_goes_on_when_there_is_room(train, files, kilobytes):
    """Too small for what cleaning needs, and for a checkpoint. A limit on files stands in for the disk."""
    words = ["train", "train.zh", "train.en", *QUICK]
    done = subprocess.run(
        [sys.executable, "-m", "regard", *words],
        cwd=files,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, kilobytes << 10)),
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert train("train.zh", "train.en").status == 0


@pytest.mark.usefixtures("files")
def test_a_run_that_ends_before_its_full_rate_says_so(train):
    words = ("train.zh", "train.en", "--set", "data.valid_lines=5", "--set", "data.test_lines=5")
    short = train(*words, "--set", "training.warmup_steps=7", "--out", "short")
    assert "training.warmup_steps is 7, and the run had 6 steps" in short.err
    assert "warmup_steps" not in train(*words, "--out", "long").err


@pytest.mark.usefixtures("files")
def test_what_a_model_to_start_from_does_not_take_is_told(train):
    assert train("train.zh", "train.en", "--out", "first").status == 0
    wider = train("train.zh", "train.en", "--from", "first", "--set", "model.d_ff=64", "--out", "second")
    assert wider.status == 0, wider.err
    assert "starting from first/best" in wider.err
    assert "ignored: model.d_ff=64\n" in wider.err
    both = train("train.zh", "train.en", "--from", "first", "--both-directions", "--out", "third")
    refused(both, "[missing_language_token]", "first/best: ", "zh and en")
    turned = train("train.zh", "train.en", "--source", "en", "--target", "zh", "--out", "fourth")
    assert "sampled pairs seem to go from zh to en, not from en to zh" in turned.err
