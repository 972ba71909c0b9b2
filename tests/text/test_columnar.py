"""Parquet and Arrow files: rows by name, labels by their names, and files that are damaged or no files."""

import json
import os
import sys
from datetime import date

import pyarrow
import pytest
from pyarrow import parquet

from regard.text import read_table
from regard.text.files.tables import table_head, table_kind
from tests.refusals import refused

ROWS = [
    {"id": 1, "pair": {"de": "Hund", "en": "dog"}, "label": 1, "day": date(2026, 1, 2)},
    {"id": 2, "pair": {"de": None, "en": "cat\nand"}, "label": -1, "day": None},
]
METADATA = {
    b"huggingface": json.dumps(
        {"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}, "id": {}}}}
    ).encode()
}


def write_parquet(path, table):
    parquet.write_table(table, path)


def write_stream(path, table):
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


def write_file(path, table):
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


WRITERS = [(write_parquet, "t.parquet"), (write_stream, "t.arrow"), (write_file, "u.arrow")]


def read(path, columns, **options):
    return [row for block in read_table(path, columns, **options) for row in zip(*block.columns, strict=True)]


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_rows_are_taken_by_name_and_labels_have_theirs(tmp_path, write, name):
    write(tmp_path / name, pyarrow.Table.from_pylist(ROWS).replace_schema_metadata(METADATA))
    assert read(tmp_path / name, ["pair.en", "pair.de"]) == [("dog", "Hund"), ("cat and", "")]
    assert read(tmp_path / name, ["label", "id", "day"]) == [("yes", "1", "2026-01-02"), ("", "2", "")]
    head = table_head(tmp_path / name)
    assert head.names == ["id", "pair.de", "pair.en", "label", "day"]
    assert (head.line, head.has_names) == (1, True)
    with refused("unknown_column", f"{name}:1: there is no column pair.fr", "pair.de, pair.en"):
        read(tmp_path / name, ["pair.fr"])
    with refused("not_text", f"{name}:1: pair is an object"):
        read(tmp_path / name, ["pair"])


def test_labels_may_be_described_beside_the_file(tmp_path):
    write_stream(tmp_path / "t.arrow", pyarrow.table({"label": [[0, 1], [1]]}))
    info = {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    with refused("not_text", "label is a list"):
        read(tmp_path / "t.arrow", ["label"])
    write_stream(tmp_path / "t.arrow", pyarrow.table({"label": [0, 1, 7]}))
    assert read(tmp_path / "t.arrow", ["label"]) == [("no",), ("yes",), ("",)]
    (tmp_path / "dataset_info.json").write_text("{")
    assert read(tmp_path / "t.arrow", ["label"]) == [("0",), ("1",), ("7",)]


@pytest.mark.parametrize(("write", "name"), WRITERS)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_truncated_file_is_refused(tmp_path, write, name, share):
    write(tmp_path / name, pyarrow.Table.from_pylist(ROWS * 50))
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(share * len(content))])
    for on_invalid in ("refuse", "drop"):
        with refused("damaged_file", f"{name}: "):
            read(tmp_path / name, ["id"], on_invalid=on_invalid)


def test_a_field_that_is_no_text_is_dropped_if_bad_rows_are(tmp_path):
    write_parquet(tmp_path / "t.parquet", pyarrow.table({"a": [b"x", None]}))
    with refused("not_text", "t.parquet:1: a is bytes"):
        read(tmp_path / "t.parquet", ["a"])
    (block,) = read_table(tmp_path / "t.parquet", ["a"], on_invalid="drop")
    assert block.unusable == {0: "no text in a column"}


def test_without_pyarrow_a_message_says_what_to_install(tmp_path, monkeypatch):
    write_parquet(tmp_path / "t.parquet", pyarrow.table({"a": ["x"]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused("missing_library", "t.parquet: ", "regard[tables]"):
        read(tmp_path / "t.parquet", ["a"])


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "t.parquet")
    with refused("not_a_file", "t.parquet: "):
        read(tmp_path / "t.parquet", ["a"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"),
        ("a.CSV.gz", "csv"),
        ("a.parquet", "parquet"),
        ("a.arrow", "arrow"),
        ("a.xlf", "xliff"),
    ],
)
def test_the_kind_shows_in_the_name(name, kind):
    assert table_kind(name) == kind
