import json

import pytest

from regard.errors import CorpusError
from regard.text import Tally, read_table
from regard.text.files import lines
from regard.text.files.tables import table_kind


def read(path, columns, **options):
    repairs, rows, spoilt = Tally(), [], {}
    for block in read_table(path, columns, repairs, **options):
        spoilt |= {block.first + i: why for i, why in block.spoilt.items()}
        rows += [(block.first + i, *row) for i, row in enumerate(zip(*block.columns, strict=True))]
    return rows, repairs, spoilt


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
    rows, _, spoilt = read(path, ["text"])
    assert rows == [(1, ""), (2, "😀")]
    assert spoilt == {1: "wrong encoding"}


def test_spoilt_lines_keep_their_place(write, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 40)
    tsv = write("t.tsv", "a\tb\n" + "x" * 50 + "\n1\t2\n")
    assert read(tsv, ["b"]) == ([(2, ""), (3, "2")], Tally(), {2: "line of a megabyte"})
    long = json.dumps({"b": "x" * 50})
    rows = read(write("t.jsonl", f'{long}\n{{"b": "2"}}\n'), ["b"])
    assert rows == ([(1, ""), (2, "2")], Tally(), {1: "line of a megabyte"})


@pytest.mark.parametrize(
    ("name", "content", "columns", "complaint"),
    [
        ("t.tsv", "en\tzh\n", ["de"], "t.tsv:1: there is no column de; the columns are en, zh"),
        (
            "t.tsv",
            "english\tzh\n",
            ["englsh"],
            r"t.tsv:1: there is no column englsh; did you mean english\? The columns are english, zh",
        ),
        ("t.tsv", "a\tb\n", [3], "t.tsv:1: has no column 3; it has 2 fields"),
        ("t.tsv", "en\tzh\na\tb\nc\n", ["en"], "t.tsv:3: has 1 field, and line 1 has 2"),
        ("t.tsv", "a\tb\nc\td\te\n", [1, 2], "t.tsv:2: has 3 fields, and line 1 has 2"),
        ("t.jsonl", '{"a": "x"}\n{"a": x}\n', ["a"], "t.jsonl:2: is not JSON: .* at character 7"),
        ("t.jsonl", '["a"]\n', ["a"], "t.jsonl:1: is not an object"),
        ("t.json", '[\n {"a": "x"}\n]\n', ["a"], "t.json:1: is not an object.*; jq -c '.\\[\\]' makes lines"),
        ("t.tsv", "\n\na\tb\nc\n", [1, 2], "t.tsv:4: has 1 field, and line 3 has 2"),
        ("t.jsonl", '{"text": "x"}\n', ["txet"], r"t.jsonl:1: there is no column txet; did you mean text\?"),
        ("t.jsonl", '{"text": "x"}\n', ["zh"], "t.jsonl:1: there is no column zh; the columns are text"),
        (
            "t.jsonl",
            '{"id": 1, "pair": {"zh": "x", "en": "y"}}\n',
            ["pair.de"],
            r"there is no column pair.de; did you mean pair.en\? The columns are id, pair.zh, pair.en",
        ),
        (
            "t.jsonl",
            '{"pair": {"zh": "x"}}\n',
            ["pair"],
            "t.jsonl:1: pair is an object, and a text is wanted",
        ),
        ("t.jsonl", '{"pair": "x"}\n', ["pair.zh"], "t.jsonl:1: there is no column pair.zh"),
        ("t.jsonl", '{"a": ["x"]}\n', ["a"], "t.jsonl:1: a is a list, and a text is wanted"),
        ("t.jsonl", '{"a": ' + "1" * 5000 + "}", ["a"], "t.jsonl:1: has a number of thousands of digits"),
        ("t.jsonl", "[" * 100_000, ["a"], "t.jsonl:1: is "),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_its_line(write, name, content, columns, complaint):
    with pytest.raises(CorpusError, match=complaint):
        read(write(name, content), columns)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.tsv", "tsv"), ("a.tsv.gz", "tsv"), ("a.b.jsonl.xz", "jsonl"), ("a.ndjson", "jsonl"), ("a.zh", None)],
)
def test_the_kind_is_told_from_the_name(name, kind):
    assert table_kind(name) == kind


def test_else_from_the_first_sign(write):
    assert read(write("table", '\ufeff{"a": "x"}\n'), ["a"])[0] == [(1, "x")]
    assert read(write("table", "a\tb\nx\ty\n"), ["a"])[0] == [(2, "x")]
