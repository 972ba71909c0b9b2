"""Tables of every format in every task, from files to prepared data: columns, bad rows, warnings, splits."""

import csv
import json
from dataclasses import replace

import pyarrow
import pytest
from pyarrow import parquet

from regard.tasks.data_folder import key_of
from regard.tasks.task import DataFiles, Job, Reporter, task_named
from regard.training.arguments import configured, with_dataset
from tests.programs import run_regard
from tests.refusals import refused

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ZAHLEN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
PAIRS = [
    (f"the {a} dogs and the {b} cats are here", f"die {c} Hunde und die {d} Katzen sind hier")
    for a, c in zip(NUMBERS, ZAHLEN, strict=True)
    for b, d in zip(NUMBERS, ZAHLEN, strict=True)
]
LABELLED = [(source, "many" if i % 3 else "few") for i, (source, _) in enumerate(PAIRS)]


def write_csv(path, names, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])


def write_jsonl(path, names, rows):
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
    path.write_text("".join(lines))


def write_parquet(path, names, rows):
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    parquet.write_table(pyarrow.table(columns), path)


WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}
SPOILT = {
    ".csv": lambda path: path.write_text(path.read_text() + "a\n" + '"b" c,d\n'),
    ".jsonl": lambda path: path.write_text(path.read_text() + '{"a": 1\n{"other": 2}\n'),
}
TASKS = {
    "translate": (("en", "de"), PAIRS),
    "classify": (("text", "label"), LABELLED),
    "generate": (("text",), [(source,) for source, _ in PAIRS]),
    "summarise": (("document", "summary"), PAIRS),
}
SIZES = {"translate": "lines", "summarise": "lines"}


def prepare(folder, name, *settings, **files):
    """What was reported while data was prepared, and the job."""
    messages = []
    report = Reporter([lambda event: messages.append(event.get("message", ""))])
    task = task_named(name)()
    settings = [f"training.seed={len(PAIRS)}", *settings]
    given = with_dataset(DataFiles(**files), report)
    job = Job(folder=folder, files=given, report=report, **configured(task, None, None, settings, None))
    job = replace(job, config=task.configured(job, ()), vocab_size=300)
    opened = task.open_files(job)
    task.prepare(folder / "data", task.source(job, opened), report)
    return messages, job


def facts_of(folder):
    (file,) = (folder / "data").glob("*.json")
    return json.loads(file.read_text())


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("task", TASKS)
def test_every_task_reads_every_format(tmp_path, task, suffix):
    names, rows = TASKS[task]
    path = tmp_path / f"rows{suffix}"
    WRITERS[suffix](path, names, rows)
    prepare(tmp_path / "run", task, train=(path,))
    assert key_of(tmp_path / "run" / "data")
    facts = facts_of(tmp_path / "run")
    if task in ("translate", "summarise"):
        assert (facts["lines"], facts["dropped"]) == (len(PAIRS), {})
        assert (facts["validation"], facts["test"]) == (14, 14)
        assert any("has 14 rows" in warning for warning in facts["warnings"])
    if task == "classify":
        assert facts["labels"] == ["few", "many"]


@pytest.mark.parametrize("suffix", SPOILT)
@pytest.mark.parametrize("task", TASKS)
def test_bad_rows_are_refused_or_counted(tmp_path, task, suffix):
    names, rows = TASKS[task]
    names, rows = (*names, "id"), [(*row, "0") for row in rows]
    path = tmp_path / f"rows{suffix}"
    WRITERS[suffix](path, names, rows)
    SPOILT[suffix](path)
    first = len(rows) + (2 if suffix == ".csv" else 1)
    code = "field_count_mismatch" if suffix == ".csv" else "not_json"
    with refused(code, f"rows{suffix}:{first}: "):
        prepare(tmp_path / "run", task, train=(path,))
    messages, _ = prepare(tmp_path / "run", task, "data.skip_bad=true", train=(path,))
    if task in ("translate", "summarise"):
        facts = facts_of(tmp_path / "run")
        bad = (
            {"wrong number of fields": 2}
            if suffix == ".csv"
            else {"not a JSON object": 1, "no text in a column": 1}
        )
        assert {what: entry["lines"] for what, entry in facts["dropped"].items()} == bad
        assert facts["lines"] == len(rows) + 2 == facts["training"] + 28 + 2
        assert facts["dropped"][next(iter(bad))]["first"][0].endswith(f"rows{suffix}:{first}")
    else:
        assert any(f"rows{suffix}:{first}" in message for message in messages)


def test_a_bad_row_of_a_given_test_set_is_counted_too(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    write_csv(train, ("en", "de"), PAIRS)
    write_csv(test, ("en", "de"), [("a house", "ein Haus")])
    SPOILT[".csv"](test)
    messages, _ = prepare(tmp_path / "run", "translate", "data.skip_bad=true", train=(train,), test=(test,))
    assert any("2 rows of the test set left out" in each and "test.csv:3" in each for each in messages)


def test_sets_may_be_of_several_formats_and_a_table_of_several_files(tmp_path):
    parts = tmp_path / "a.csv", tmp_path / "b.csv"
    for i, path in enumerate(parts):
        write_csv(path, ("en", "de"), PAIRS[i::2])
    write_jsonl(tmp_path / "valid.jsonl", ("id", "de", "en"), [("1", "ein Haus", "a house")])
    units = '<tu><tuv xml:lang="DE"><seg>ein Baum</seg></tuv><tuv xml:lang="en"><seg>a tree</seg></tuv></tu>'
    (tmp_path / "test.tmx").write_text(f"<tmx><body>{units}</body></tmx>")
    sets = {"valid": (tmp_path / "valid.jsonl",), "test": (tmp_path / "test.tmx",)}
    _, job = prepare(tmp_path / "run", "translate", train=parts, **sets)
    assert (job.config.task.source, job.config.task.target) == ("en", "de")
    assert json.loads((tmp_path / "run" / "data" / "test.jsonl").read_text()) == ["a tree", "ein Baum"]
    assert facts_of(tmp_path / "run")["training"] == len(PAIRS)


def save_split(folder, texts, labels):
    """A split as `save_to_disk` of Hugging Face writes it."""
    feature = {"label": {"names": ["few", "many"], "_type": "ClassLabel"}}
    table = pyarrow.table({"text": texts, "label": labels}).replace_schema_metadata(
        {b"huggingface": json.dumps({"info": {"features": feature}}).encode()}
    )
    folder.mkdir(parents=True)
    place = str(folder / "data.arrow")
    with pyarrow.OSFile(place, "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))


@pytest.mark.parametrize("has_labels", [True, False])
def test_the_splits_of_a_data_set_are_the_sets(tmp_path, has_labels):
    texts, labels = [text for text, _ in LABELLED], [int(label == "many") for _, label in LABELLED]
    folder = tmp_path / "reviews"
    save_split(folder / "train", texts[:101], labels[:101])
    save_split(folder / "validation", texts[101:118], labels[101:118])
    save_split(folder / "test", texts[118:], labels[118:] if has_labels else [-1] * len(texts[118:]))
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    messages, job = prepare(tmp_path / "run", "classify", train=(folder,))
    assert task_named("classify")().default_folder(job).name == "reviews"
    assert facts_of(tmp_path / "run")["labels"] == ["few", "many"]
    sizes = "train: 101 texts, valid: 17 texts, test: 26 texts"
    assert (sizes in messages) == has_labels
    if not has_labels:  # the test set is split off
        assert "train: 91 texts, valid: 17 texts, test: 10 texts" in messages


def test_a_data_set_without_training_data_is_refused(tmp_path):
    save_split(tmp_path / "x" / "test", ["a"], [0])
    (tmp_path / "x" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    with refused("missing_split", "x: ", "test"):
        prepare(tmp_path / "run", "classify", train=(tmp_path / "x",))


def test_german_in_an_english_file_is_a_warning_of_the_report(tmp_path):
    for name, side in (("train.en", 1), ("train.de", 0)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    messages, _ = prepare(tmp_path / "run", "translate", train=(tmp_path / "train.en", tmp_path / "train.de"))
    (warning,) = (each for each in facts_of(tmp_path / "run")["warnings"] if "swapped" in each)
    assert f"warning: {warning}" in messages


def test_a_corpus_of_duplicates_is_a_warning_of_the_report(tmp_path):
    write_csv(tmp_path / "t.csv", ("en", "de"), PAIRS * 7)
    messages, _ = prepare(tmp_path / "run", "translate", train=(tmp_path / "t.csv",))
    assert any("(86%) were dropped, all as 'duplicate'" in each and PAIRS[0][0] in each for each in messages)


def test_the_message_about_a_bad_row_names_the_option_that_leaves_it_out(tmp_path):
    write_csv(tmp_path / "t.csv", ("en", "de"), PAIRS)
    SPOILT[".csv"](tmp_path / "t.csv")
    found = run_regard("train", tmp_path / "t.csv", "--out", tmp_path / "run")
    assert found.returncode == 2
    assert f"t.csv:{len(PAIRS) + 2}: has 1 field" in found.stderr
    assert "--skip-bad leaves out such rows" in found.stderr
    (tmp_path / "train.en").write_bytes("a\n".encode("utf-16"))
    (tmp_path / "train.de").write_text("b\n")
    found = run_regard("train", tmp_path / "train.en", tmp_path / "train.de", "--out", tmp_path / "run")
    assert "iconv" in found.stderr
    assert "--skip-bad" not in found.stderr
