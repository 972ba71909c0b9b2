import json

import pytest

from regard.text import Tally, read_table
from regard.text.files import lines
from regard.text.files.tables import table_kind
from tests.refusals import refused


def read(path, columns, **options):
    repairs, rows, unusable = Tally(), [], {}
    for block in read_table(path, columns, repairs, **options):
        unusable |= {block.first + i: why for i, why in block.unusable.items()}
        rows += [(block.first + i, *row) for i, row in enumerate(zip(*block.columns, strict=True))]
    return rows, repairs, unusable


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def test_columns_are_taken_by_name_in_the_order_asked_for(write):
    path = write("t.tsv", 'id\ten\tzh\n7\ta "b\t猫\n8\tc\t狗\n')
    assert read(path, ["zh", "en"])[0] == [(2, "猫", 'a "b'), (3, "狗", "c")]


def test_columns_are_taken_by_number_where_there_is_no_head(write, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK", 7)
    path = write("t.tsv", "World\tsome news\nSports\tmore news\n")
    assert read(path, [2, 1])[0] == [(1, "some news", "World"), (2, "more news", "Sports")]


def test_lines_of_json_are_taken_by_name(write):
    rows = [{"text": "a\tb", "summary": "猫"}, {"summary": 3, "text": None}, {"text": True, "summary": ""}]
    path = write("t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read(path, ["summary", "text"])[0] == [(1, "猫", "a\tb"), (2, "3", ""), (3, "", "true")]


def test_texts_inside_objects_are_taken_by_a_name_with_dots(write):
    rows = [{"pair": {"zh": "猫", "en": "cat"}}, {"pair": {"en": "dog", "zh": "狗"}, "pair.en": "the dog"}]
    path = write("t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read(path, ["pair.zh", "pair.en"])[0] == [(1, "猫", "cat"), (2, "狗", "the dog")]


def test_an_empty_line_of_a_table_is_an_empty_row(write):
    assert read(write("t.tsv", "zh\ten\n一\tone\n\n"), ["zh", "en"])[0] == [(2, "一", "one"), (3, "", "")]
    assert read(write("t.jsonl", '{"zh": "一"}\n\n'), ["zh"])[0] == [(1, "一"), (2, "")]


@pytest.mark.parametrize("columns", [["en"], [2]])
def test_blank_lines_before_a_table_are_no_head(write, monkeypatch, columns):
    monkeypatch.setattr(lines, "_CHUNK", 2)
    path = write("t.tsv", "\n\n \nzh\ten\n猫\tcat\n\n狗\tdog\n")
    rows = [(5, "cat"), (6, ""), (7, "dog")]
    assert read(path, columns)[0] == (rows if columns == ["en"] else [(4, "en"), *rows])


def test_a_line_break_within_a_text_becomes_a_space_and_is_told(write):
    path = write("t.jsonl", json.dumps({"text": "one\ntwo\u2028three"}) + "\n")
    rows, repairs, _ = read(path, ["text"], name="t")
    assert rows == [(1, "one two three")]
    assert repairs.examples == {"line separator": ["t:1"]}


def test_half_a_surrogate_pair_is_a_wrong_encoding(write):
    path = write("t.jsonl", '{"text": "\\ud83d"}\n{"text": "\\ud83d\\ude00"}\n')
    rows, _, unusable = read(path, ["text"])
    assert rows == [(1, ""), (2, "😀")]
    assert unusable == {1: "wrong encoding"}


def test_unusable_lines_keep_their_place(write, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 40)
    tsv = write("t.tsv", "a\tb\n" + "x" * 50 + "\n1\t2\n")
    assert read(tsv, ["b"]) == ([(2, ""), (3, "2")], Tally(), {2: "line of a megabyte"})
    long = json.dumps({"b": "x" * 50})
    rows = read(write("t.jsonl", f'{long}\n{{"b": "2"}}\n'), ["b"])
    assert rows == ([(1, ""), (2, "2")], Tally(), {1: "line of a megabyte"})


@pytest.mark.parametrize(
    ("name", "content", "columns", "code", "place"),
    [
        (
            "t.tsv",
            "en\tzh\n",
            ["de"],
            "unknown_column",
            "t.tsv:1: there is no column de; the columns are en, zh",
        ),
        (
            "t.tsv",
            "english\tzh\n",
            ["englsh"],
            "unknown_column",
            "did you mean english? The columns are english, zh",
        ),
        ("t.tsv", "a\tb\n", [3], "unknown_column", "t.tsv:1: has no column 3"),
        ("t.jsonl", '{"text": "x"}\n', ["txet"], "unknown_column", "did you mean text?"),
        ("t.jsonl", '{"text": "x"}\n', ["zh"], "unknown_column", "t.jsonl:1: there is no column zh"),
        (
            "t.jsonl",
            '{"pair": "x"}\n',
            ["pair.zh"],
            "unknown_column",
            "t.jsonl:1: there is no column pair.zh",
        ),
        (
            "t.jsonl",
            '{"id": 1, "pair": {"zh": "x"}}\n',
            ["pair.de"],
            "unknown_column",
            "columns are id, pair.zh",
        ),
        (
            "t.tsv",
            "en\tzh\na\tb\nc\n",
            ["en"],
            "field_count_mismatch",
            "t.tsv:3: has 1 field, but line 1 has 2",
        ),
        ("t.tsv", "a\tb\nc\td\te\n", [1, 2], "field_count_mismatch", "t.tsv:2: has 3 fields"),
        ("t.tsv", "\n\na\tb\nc\n", [1, 2], "field_count_mismatch", "t.tsv:4: has 1 field, but line 3 has 2"),
        ("t.jsonl", '{"a": "x"}\n{"a": x}\n', ["a"], "not_json", "t.jsonl:2: "),
        ("t.jsonl", '["a"]\n', ["a"], "not_json", "t.jsonl:1: "),
        ("t.json", '[\n {"a": "x"}\n]\n', ["a"], "not_json", "t.json:1: is not an object"),
        ("t.jsonl", '{"a": ' + "1" * 5000 + "}", ["a"], "not_json", "t.jsonl:1: has a number"),
        ("t.jsonl", "[" * 100_000, ["a"], "not_json", "t.jsonl:1: "),
        ("t.jsonl", '{"pair": {"zh": "x"}}\n', ["pair"], "not_text", "t.jsonl:1: pair is an object"),
        ("t.jsonl", '{"a": ["x"]}\n', ["a"], "not_text", "t.jsonl:1: a is a list"),
    ],
)
def test_problems_of_a_table_are_reported_with_their_line(write, name, content, columns, code, place):
    with refused(code, place):
        read(write(name, content), columns)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.tsv", "tsv"), ("a.tsv.gz", "tsv"), ("a.b.jsonl.xz", "jsonl"), ("a.ndjson", "jsonl"), ("a.zh", None)],
)
def test_the_kind_shows_in_the_name(name, kind):
    assert table_kind(name) == kind


def test_otherwise_in_the_first_character(write):
    assert read(write("table", '\ufeff{"a": "x"}\n'), ["a"])[0] == [(1, "x")]
    assert read(write("table", "a\tb\nx\ty\n"), ["a"])[0] == [(2, "x")]
