"""Labels and texts from tables of both kinds; a table of another shape is not guessed at."""

import pytest

from regard.data.reading.labelled import labelled_corpus, unlabelled_corpus
from tests.refusals import refused


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
    with refused("unclear_columns", "first.tsv:1: has 3 fields", "--columns"):
        labelled_corpus(first)
    with refused("field_count_mismatch", "later.tsv:2: has 3 fields"):
        list(labelled_corpus(later).rows())
    assert list(labelled_corpus(first, columns=(3, 2)).rows()) == [("5", "I like it")]


@pytest.mark.parametrize(
    ("name", "content", "code", "place"),
    [
        ("a.txt", "good,I like it\n", "unclear_columns", "a.txt:1: has no tab"),
        ("a.jsonl", '\n{"mood": "good", "body": "x"}\n', "unclear_columns", "the fields are mood, body; "),
        ("a.json", '[{"label": "good", "text": "x"}]', "not_json", "a.json:1: "),
    ],
)
def test_a_table_with_other_columns_is_refused(tmp_path, name, content, code, place):
    (tmp_path / name).write_text(content)
    with refused(code, place):
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
    with refused("repeated_file"):
        labelled_corpus(tables[0], tables[0])
    with refused("missing_file", "missing.tsv"):
        labelled_corpus(tmp_path / "missing.tsv")
