"""CSV, and TSV with and without the quotation of CSV; rows that are wrong, and what comes after them."""

import pytest

from regard.text import Tally, read_table
from regard.text.files.formats.delimited import find_delimiter, find_quotation
from regard.text.files.formats.format import Reading
from regard.text.files.tables import read_objects, table_head
from tests.refusals import refused

PLAIN = [
    '"Hello" he said\tHallo\nfoo\tbar\n',
    'a\tHe said "hello"\n"b"\tc\n',
    '"Oh no\tOh nein\nshe said"\tsagte sie\nx\ty\n',
    'one\teins\n"Hello."\t"Hallo."\ntwo\tzwei\n',  # speech: nothing needs quotation
    'a, b\tc\n"Hello."\td\n"Bye, you."\te\nNo.\tf\n',  # nor do commas here
    '""Hi"" he said\ta\n',
    '5" nail\tNagel\n"x"\ty\n',
    '"a\tb\nc\td\n',  # never closed
    'a\tb\n"c\nd"\te\tf\n',  # a row with quotation has fewer fields than the others
]
QUOTED = [
    ('"He said ""hi"""\ta\nb\tc\n', [('He said "hi"', "a"), ("b", "c")]),
    ('"a\tb"\tc\nd\te\n', [("a\tb", "c"), ("d", "e")]),
    ('"a\nb"\tc\nd\te\n', [("a b", "c"), ("d", "e")]),
    ('x\ty\n"a"\t1\n"b"\t2\n', [("x", "y"), ("a", "1"), ("b", "2")]),
    ('"x"\t"y"\n"a"\t""\n', [("x", "y"), ("a", "")]),
    ('"Yes, I do"\tJa\nNo\t"Nein, nie"\n', [("Yes, I do", "Ja"), ("No", "Nein, nie")]),
    ('\ufeff"a ""b"""\tc\r\n', [('a "b"', "c")]),
]


def read(path, columns=(1, 2), **options):
    rows, places, unusable = [], [], {}
    for block in read_table(path, columns, **options):
        unusable |= {block.line(i): why for i, why in block.unusable.items()}
        rows += zip(*block.columns, strict=True)
        places += [block.line(i) for i in range(len(block))]
    return rows, places, unusable


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content.encode())
        return tmp_path / name

    return write


@pytest.mark.parametrize("content", PLAIN)
def test_a_quotation_mark_of_a_plain_tsv_is_a_quotation_mark(write, content):
    path = write("t.tsv", content)
    assert not find_quotation(path).is_used
    rows = [tuple(line.split("\t")) for line in content.splitlines()]
    if all(len(row) == 2 for row in rows):
        repairs = Tally()
        assert read(path, repairs=repairs)[0] == rows
        (note,) = repairs.notes
        assert "quotation marks are part of the text" in note


@pytest.mark.parametrize(("content", "rows"), QUOTED)
def test_a_tsv_of_a_spreadsheet_is_read_as_csv(write, content, rows):
    repairs = Tally()
    assert read(write("t.tsv", content), repairs=repairs)[0] == rows
    (note,) = repairs.notes
    assert "are read as CSV does" in note


def test_a_tsv_without_quotation_marks_has_no_note(write):
    repairs = Tally()
    assert read(write("t.tsv", 'a\tb\nHe said "x"\tc\n'), repairs=repairs)[0][0] == ("a", "b")
    assert repairs.notes == []


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("en,de\na,b\n", ","),
        ("en;de\na, b;c\n", ";"),
        ("en\tde\na, b\tc, d, e\n", "\t"),
        ('"a;b","c;d"\n"e;f;g","h"\n', ","),
        ("one\ntwo\n", ","),
        ("", ","),
    ],
)
def test_the_delimiter_of_a_csv_shows_in_its_rows(write, content, delimiter):
    assert find_delimiter(write("t.csv", content)) == delimiter


def test_a_csv_has_a_header_or_not_and_lines_keep_their_numbers(write):
    path = write("t.csv", '\ufeffen,de\r\n"a\r\nb, ""c""",d\r\n\r\ne,f "g"\r\n')
    rows, places, unusable = read(path, ["de", "en"])
    assert rows == [("d", 'a b, "c"'), ("", ""), ('f "g"', "e")]
    assert (places, unusable) == ([2, 4, 5], {})
    assert read(path)[0][0] == ("en", "de")
    assert table_head(path).names == ["en", "de"]
    assert [row for _, row, _ in read_objects(path, Reading("t"))] == [
        {"en": 'a\nb, "c"', "de": "d"},
        {"en": "e", "de": 'f "g"'},
    ]


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        ("a,b\nc\n", "field_count_mismatch", "t.csv:2: has 1 field, but line 1 has 2; commas"),
        ('a,b\n"c" d,e\n', "bad_quotation", "t.csv:2: a quoted field is followed by ' d,e'"),
        ('a,b\nc,"d\n', "bad_quotation", "t.csv:2: a quotation mark opens a field"),
        ('"a,b\n', "bad_quotation", "t.csv:1: a quotation mark opens a field"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(write, content, code, place):
    with refused(code, place):
        read(write("t.csv", content))


def test_wrong_rows_are_dropped_and_the_rows_after_them_are_not_lost(write):
    path = write("t.csv", 'a,b\n"open,1\nc,d\n"e" x,f\n"g\nh",i\nj\nk,l,m\nn,o\n')
    rows, places, unusable = read(path, on_invalid="drop")
    good = {place: row for row, place in zip(rows, places, strict=True) if place not in unusable}
    assert good == {1: ("a", "b"), 3: ("c", "d"), 5: ("g h", "i"), 9: ("n", "o")}
    assert unusable == dict.fromkeys((2, 4, 7, 8), "wrong number of fields")


def test_a_first_row_that_cannot_be_read_is_refused_in_any_case(write):
    with refused("bad_quotation", "t.csv:1: "):
        read(write("t.csv", '"a" b,c\nd,e\n'), on_invalid="drop")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_bad_rows_of_a_table_are_dropped_with_wrong_encodings(tmp_path, name):
    sign = "," if name == "t.csv" else "\t"
    lines = ["a,b", "c", "\xff,d", "e,f,g", "h,i"]
    path = tmp_path / name
    path.write_bytes("\n".join(lines).replace(",", sign).encode("latin-1"))
    rows, places, unusable = read(path, on_invalid="drop")
    assert unusable == {2: "wrong number of fields", 3: "wrong encoding", 4: "wrong number of fields"}
    assert [row for row, place in zip(rows, places, strict=True) if place not in unusable] == [
        ("a", "b"),
        ("h", "i"),
    ]
