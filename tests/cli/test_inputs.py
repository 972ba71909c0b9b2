"""Tables, packed files and standard input, from the command line to a scored model."""

import gzip
import json
import lzma
import sys

import pytest

from regard.training.checkpoints.run_folder import locked

pytestmark = pytest.mark.slow


def tsv(pairs, head="zh\ten\tid\n"):
    rows = (f"{zh}\t{en}\t{i}\n" for i, (zh, en) in enumerate(pairs))
    return (head + "".join(rows)).encode()


def jsonl(pairs):
    rows = ({"id": i, "translation": {"en": en, "zh": zh}} for i, (zh, en) in enumerate(pairs))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def losses(run):
    with (run / "journal.jsonl").open() as lines:
        return [entry.get("loss", entry.get("valid_loss")) for entry in map(json.loads, lines)]


def report(run):
    return json.loads((run / "data" / "report.json").read_text(encoding="utf-8"))


def test_tables_and_standard_input_train_as_two_files_do(train, files, pairs):
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    (files / "pairs.tsv.xz").write_bytes(lzma.compress(tsv(pairs)))
    (files / "pairs.tsv.zst").write_bytes(zstd.compress(tsv(pairs)))
    (files / "pairs.jsonl.gz").write_bytes(gzip.compress(jsonl(pairs)))
    (files / "pairs").write_bytes(jsonl(pairs))
    nested = ("--columns", "translation.zh,translation.en")
    roads = {
        "files": train("train.zh", "train.en", "--out", "files"),
        "xz": train("pairs.tsv.xz", "--columns", "zh,en", "--out", "xz"),
        "zst": train("pairs.tsv.zst", "--columns", "zh,en", "--out", "zst"),
        "gz": train("pairs.jsonl.gz", *nested, "--out", "gz"),
        "unnamed": train("pairs", *nested, "--out", "unnamed"),
        "pipe": train(
            *("-", "--columns", "1,2", "--source", "zh", "--target", "en", "--out", "pipe"),
            stdin=gzip.compress(tsv(pairs, head="")),
        ),
        "objects": train("-", *nested, "--out", "objects", stdin=jsonl(pairs)),
    }
    for name, answer in roads.items():
        assert answer.status == 0, answer.err
        assert losses(files / name) == losses(files / "files"), name
        told = answer.out.replace(f"{name}/", "files/").replace(f"--model {name} ", "--model files ")
        assert told == roads["files"].out, name


def test_the_names_of_columns_name_the_run(train, files, pairs):
    (files / "pairs.tsv").write_bytes(tsv(pairs))
    assert train("pairs.tsv", "--columns", "en,zh").status == 0
    assert (files / "runs" / "en-zh" / "best").is_dir()


def test_sets_may_be_tables_or_files_in_step_and_what_they_share_is_told(train, files, pairs):
    (files / "train.tsv").write_bytes(tsv(pairs[60:]))
    for side, language in enumerate(("zh", "en")):
        (files / f"test.{language}").write_text("".join(pair[side] + "\n" for pair in pairs[35:60]))
    (files / "valid.tsv").write_bytes(tsv(pairs[:40]))
    sets = ("--valid", "valid.tsv", "--test", "test.zh", "test.en")
    answer = train("train.tsv", "--columns", "zh,en", *sets)
    assert answer.status == 0, answer.err
    made = report(files / "runs" / "zh-en")
    assert (made["validation"], made["test"], made["split_off"]) == (35, 25, 0)
    assert made["left_out_of_validation"]["in the test set"]["lines"] == 5
    assert "left out of validation" in answer.err
    assert "valid.tsv:37, 38, 39" in answer.err
    reversed_sets = ("--valid", "test.zh", "test.en", "--test", "valid.tsv", "--columns", "zh,en")
    assert train("train.zh", "train.en", *reversed_sets, "--out", "other").status == 0
    assert report(files / "other")["test"] == 40


def test_standard_input_is_needed_once(train, pairs):
    words = ("-", "--columns", "zh,en", "--out", "run")
    first = train(*words, stdin=tsv(pairs))
    assert first.status == 0, first.err
    for again in (
        train(*words),
        train(*words, stdin=tsv(pairs)),
        train(*words, stdin=gzip.compress(tsv(pairs))),
    ):
        assert (again.status, again.out) == (0, first.out), again.err
    other = train(*words, stdin=tsv(pairs[1:]))
    assert (other.status, "is not what the run began with" in other.err) == (2, True)
    turned = train("-", "--columns", "en,zh", "--source", "zh", "--target", "en", "--out", "run")
    assert (turned.status, "error[data_changed]" in turned.err) == (2, True)
    assert train(*words).out == first.out


def test_settings_of_the_data_reach_it_and_may_not_change_when_a_run_goes_on(train, files):
    words = ("train.zh", "train.en", "--set", "data.valid_lines=7", "--set", "data.test_lines=11")
    assert train(*words).status == 0
    made = report(files / "runs" / "zh-en")
    assert (made["validation"], made["test"]) == (7, 11)
    other = train(*words, "--set", "data.max_ratio=none")
    assert (other.status, "data.max_ratio was 4.0 and is None" in other.err) == (2, True)


def test_what_can_be_repaired_is_repaired_and_told(train, files, pairs):
    rows = [list(pair) for pair in pairs]
    rows[0][0] = "\ufeff" + rows[0][0]
    rows[3][1] = rows[3][1].replace(" ", "\u2028", 1)
    rows[4][0] += "\0"
    rows[5][1] = "x" * 1_000_000
    (files / "train.zh").write_bytes("".join(zh + "\r\n" for zh, _ in rows).encode())
    (files / "train.en").write_bytes("".join(en + "\n" for _, en in rows).encode())
    answer = train("train.zh", "train.en")
    assert answer.status == 0, answer.err
    made = report(files / "runs" / "zh-en")
    assert made["repaired"] == {
        "carriage return": {"lines": 400, "first": ["train.zh:1"]},
        "byte order mark": {"lines": 1, "first": ["train.zh:1"]},
        "NUL": {"lines": 1, "first": ["train.zh:5"]},
        "line separator": {"lines": 1, "first": ["train.en:4"]},
    }
    assert made["dropped"] == {"line of a megabyte": {"lines": 1, "first": ["train.zh:6"]}}
    assert made["lines"] == 400


def test_a_folder_in_use_is_left_alone(train, files):
    with locked(files / "runs" / "zh-en"):
        answer = train("train.zh", "train.en")
    assert answer.status == 2
    assert "error[folder_locked]" in answer.err
    assert "with --out" in answer.err
    assert [path.name for path in (files / "runs" / "zh-en").iterdir()] == [".lock"]
    assert train("train.zh", "train.en").status == 0
