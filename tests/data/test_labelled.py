"""Labels and texts from tables of both kinds; a table of another shape is not guessed at."""

import pytest

from regard.data.reading.labelled import labelled_corpus, unlabelled_corpus
from regard.errors import CorpusError


@pytest.fixture
def tables(tmp_path):
    tsv, jsonl = tmp_path / "a.tsv", tmp_path / "b.jsonl"
    tsv.write_text("good\tI like it\nbad\tI do not\n")
    jsonl.write_text('{"text": "fine", "label": "good", "id": 7}\n')
    return tsv, jsonl


def test_tables_of_both_kinds_are_one_corpus(tables):
    assert list(labelled_corpus(*tables).rows()) == [
        ("good", "I like it"),
        ("bad", "I do not"),
        ("good", "fine"),
    ]


def test_texts_alone_come_from_tables_and_from_lines(tables, tmp_path):
    plain = tmp_path / "c.txt"
    plain.write_text("one\ntwo\n")
    assert [row[0] for row in unlabelled_corpus(tables[0], plain).rows()] == [
        "I like it",
        "I do not",
        "one",
        "two",
    ]


def test_a_row_of_three_columns_is_refused_with_its_place(tmp_path):
    first, later = tmp_path / "first.tsv", tmp_path / "later.tsv"
    first.write_text("good\tI like it\t5\n")
    later.write_text("good\tI like it\nbad\tI do\tnot\n")
    with pytest.raises(CorpusError, match=r"first\.tsv:1: has 3 fields.*--columns"):
        labelled_corpus(first)
    with pytest.raises(CorpusError, match=r"later\.tsv:2: has 3 fields"):
        list(labelled_corpus(later).rows())
    assert list(labelled_corpus(first, columns=(3, 2)).rows()) == [("5", "I like it")]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", "good,I like it\n", "a.csv:1: has no tab; fields are parted by tabs, and not by commas"),
        (
            "a.jsonl",
            '\n{"mood": "good", "body": "x"}\n',
            "a.jsonl:2: .* the fields are mood, body; .*--columns",
        ),
        ("a.json", '[{"label": "good", "text": "x"}]', "a.json:1: is not an object.*; jq -c"),
    ],
)
def test_a_table_of_another_kind_is_told_what_is_wanted(tmp_path, name, content, complaint):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=complaint):
        labelled_corpus(tmp_path / name)


def test_blank_lines_come_before_a_table_and_objects_under_any_name(tmp_path):
    blank, objects = tmp_path / "blank.tsv", tmp_path / "objects.json"
    blank.write_text("\n\ngood\tI like it\n")
    objects.write_text('{"label": "bad", "text": "I do not"}\n')
    assert list(labelled_corpus(blank, objects).rows()) == [("good", "I like it"), ("bad", "I do not")]


@pytest.mark.parametrize("head", ["label\ttext", "text\tlabel", "id\ttext\tlabel"])
def test_a_head_that_names_label_and_text_is_no_row(tmp_path, head):
    path = tmp_path / "head.tsv"
    row = {"id": "7", "label": "good", "text": "I like it"}
    path.write_text(f"{head}\n" + "\t".join(row[name] for name in head.split("\t")) + "\n")
    assert list(labelled_corpus(path).rows()) == [("good", "I like it")]


def test_a_file_that_is_missing_or_given_twice_is_named(tables, tmp_path):
    with pytest.raises(CorpusError, match="twice"):
        labelled_corpus(tables[0], tables[0])
    with pytest.raises(CorpusError, match="missing"):
        labelled_corpus(tmp_path / "missing.tsv")
