"""The columns that a table most likely means, and tables whose columns are unclear."""

import json

import pytest

from regard.data.reading.columns import document_columns, label_columns, language_of_column, pair_columns
from tests.refusals import refused


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content) + "\n")
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *(("en", "en"), ("translation.de", "de"), ("text_zh", "zh"), ("de-AT", "de"), ("sr-Latn-RS", "sr")),
        *(("German", None), ("en_de", None), ("label", None), ("text", None), ("pt-BR", "pt-BR")),
    ],
)
def test_a_column_may_name_a_language(name, code):
    assert language_of_column(name) == code


PAIR = {"id": 1, "translation": {"de": "a", "en": "b"}}


@pytest.mark.parametrize(
    ("content", "languages", "columns"),
    [
        (PAIR, (None, None), ("translation.de", "translation.en")),
        (PAIR, ("en", None), ("translation.en", "translation.de")),
        (PAIR, (None, "deu"), ("translation.en", "translation.de")),
        ({"en": "a", "fr": "b", "de": "c"}, ("de", "en"), ("de", "en")),
        ({"id": "a", "en": "b", "de": "c"}, ("id", "en"), ("id", "en")),
        ({"no": 1, "en": "b", "de": "c"}, (None, None), ("en", "de")),
        ({"source": "a", "id": 1, "target": "b"}, ("de", "en"), ("source", "target")),
        ({"zh-TW": "a", "zh-CN": "b", "en": "c"}, ("zh-CN", "en"), ("zh-CN", "en")),
    ],
)
def test_columns_of_pairs_are_found_by_their_names(write, content, languages, columns):
    assert pair_columns(write("t.jsonl", content), languages) == columns


def test_a_table_of_two_columns_without_names_has_these(write):
    assert pair_columns(write("t.csv", "Hund,dog\n")) == (1, 2)
    assert pair_columns(write("u.csv", "de;en\nHund;dog\n")) == ("de", "en")


@pytest.mark.parametrize(
    ("name", "content", "languages"),
    [
        ("t.jsonl", {"en": "a", "fr": "b", "de": "c"}, (None, None)),
        ("t.jsonl", {"en": "a", "fr": "b", "de": "c"}, ("en", None)),
        ("t.jsonl", {"en": "a", "fr": "b", "de": "c"}, ("en", "es")),
        ("t.jsonl", {"zh-TW": "a", "zh-CN": "b", "en": "c"}, ("zh", "en")),
        ("t.tsv", "a\tb\tc\n", (None, None)),
        ("t.tsv", "", (None, None)),
    ],
)
def test_unclear_columns_of_pairs_are_listed(write, name, content, languages):
    listed = ", ".join(content) if isinstance(content, dict) else content.strip().replace("\t", ", ")
    with refused("missing_columns", f"{name}: ", listed):
        pair_columns(write(name, content), languages)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("t.jsonl", {"sentence": "a", "label": "b", "idx": 3}, ("label", "sentence")),
        ("t.jsonl", {"review": "a", "sentiment": "b"}, ("sentiment", "review")),
        ("t.csv", "Text,Label\nx,y\n", ("Label", "Text")),
        ("t.csv", "good,I like it\n", (1, 2)),
    ],
)
def test_columns_of_labels_are_found_by_their_names(write, name, content, columns):
    assert label_columns(write(name, content)) == columns


def test_unclear_columns_of_labels_are_listed(write):
    with refused("unclear_columns", "t.jsonl:1: ", "text, body, label"):
        label_columns(write("t.jsonl", {"text": "a", "body": "b", "label": "c"}))


def test_the_column_of_documents_is_found(write):
    assert document_columns(write("t.jsonl", {"title": "a", "text": "b"})) == ("text",)
    assert document_columns(write("u.jsonl", {"story": "a"})) == ("story",)
    assert document_columns(write("t.csv", "a\nb\n")) == (1,)
    with refused("missing_columns", "v.jsonl: ", "title, story"):
        document_columns(write("v.jsonl", {"title": "a", "story": "b"}))


def test_a_file_that_is_missing_is_named(tmp_path):
    for columns in (label_columns, document_columns, pair_columns):
        with refused("missing_file", "t.csv"):
            columns(tmp_path / "t.csv")
