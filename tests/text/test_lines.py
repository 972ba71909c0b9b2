"""Bad input in files of text: each kind is a clear error, or a repair that is counted and told."""

import tracemalloc

import pytest

from regard.text import Tally, read_lines
from regard.text.files import lines as module
from tests.refusals import refused


def read(path, **options):
    """All lines of a file, the repairs, and which lines are unusable (by number)."""
    repairs, texts, unusable = Tally(), [], {}
    for block in read_lines(path, repairs, **options):
        assert block.first == len(texts) + 1
        unusable |= {block.first + i: why for i, why in block.unusable.items()}
        texts += block.columns[0]
    return texts, repairs, unusable


@pytest.fixture
def write(tmp_path):
    def write(content: bytes):
        path = tmp_path / "train.zh"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\n\na", ["", "", "a"]),
        ("猫\n狗".encode(), ["猫", "狗"]),
    ],
)
def test_lines_end_at_newlines(write, content, lines):
    assert read(write(content)) == (lines, Tally(), {})


@pytest.mark.parametrize(
    ("text", "lines", "what"),
    [
        ("\ufeffa\nb\n", ["a", "b"], "byte order mark"),
        ("b\n\ufeffa\n", ["b", "a"], "byte order mark"),
        ("a\r\nb\r\n", ["a", "b"], "carriage return"),
        ("a\r\nb\r", ["a", "b"], "carriage return"),
        ("a\r\r\nb\n", ["a", "b"], "carriage return"),
        ("a\0b\n", ["ab"], "NUL"),
        ("a\rb\n", ["a b"], "line separator"),
        *((f"a{sign}b\n", ["a b"], "line separator") for sign in "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"),
    ],
)
def test_what_breaks_lines_is_repaired_and_told(write, text, lines, what):
    got, repairs, unusable = read(write(text.encode()))
    assert got == lines
    assert what in repairs.counts
    assert not unusable


@pytest.mark.parametrize("chunk", [3, 1 << 20])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"aa\rbb\r\rcc\r", ["aa", "bb", "", "cc"]),
        (b"aa\rbb\rcc", ["aa", "bb", "cc"]),
        ("\ufeff猫\r狗\r".encode(), ["猫", "狗"]),
    ],
)
def test_old_mac_line_ends_end_lines_where_there_are_no_others(write, monkeypatch, content, lines, chunk):
    monkeypatch.setattr(module, "_CHUNK", max(chunk, content.index(b"\r") + 2))
    texts, repairs, _ = read(write(content), name="train.zh")
    assert texts == lines
    assert repairs.counts["old Mac line end"] == content.count(b"\r")
    (note,) = repairs.notes
    assert note.startswith("train.zh: lines end with CR only")


def test_repairs_are_counted_by_line_with_the_first_places(write):
    _, repairs, _ = read(write("a\nb\r\nc\r\n\0d\ne\u2028\u2028f\n\0g\0\n".encode()), name="train.zh")
    assert repairs.as_dict() == {
        "carriage return": {"lines": 2, "first": ["train.zh:2"]},
        "NUL": {"lines": 2, "first": ["train.zh:4", "train.zh:6"]},
        "line separator": {"lines": 1, "first": ["train.zh:5"]},
    }


def test_no_more_lines_than_newlines_whatever_signs_there_are(write):
    """Python would split this into more; then two files in step would part."""
    text = "a\u2028b\nc\x85d\ne\x0bf\n"
    assert len(text.splitlines()) == 6
    assert len(read(write(text.encode()))[0]) == 3


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"good\nbad \xff here\n", ":2: byte 5 (0xff) is not UTF-8"),
        (b"\xc3", ":1: byte 1 (0xc3) is not UTF-8"),
        ("好\n".encode() * 3 + "好好".encode()[:-1] + b"\nx", ":4: byte 4 (0xe5) is not UTF-8"),
        ("Grüße\n".encode("latin-1"), ":1: byte 3 (0xfc) is not UTF-8"),
    ],
)
def test_a_byte_that_is_not_utf_8_is_reported_with_its_place(write, content, place):
    path = write(content)
    with refused("not_utf_8", f"{path}{place}"):
        read(path)


def test_a_wrong_byte_far_into_the_file_has_the_right_line(write, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 64)
    with refused("not_utf_8", ":1001: byte 3 "):
        read(write("行 of text\n".encode() * 1000 + b"ab\xfe\n"))


def test_chinese_in_its_old_encoding_is_recognised(write):
    with refused("not_utf_8", "iconv -f gb18030"):
        read(write("猫坐在垫子上。\n".encode("gb18030")))


@pytest.mark.parametrize(
    "text", ["Eine große Straße in München", "l’été à la forêt, ça va", "Straße", "schöne Grüße"]
)
def test_accents_in_their_old_encoding_are_not_taken_for_chinese(write, text):
    with refused("not_utf_8", "iconv -f windows-1252"):
        read(write(f"{text}\n".encode("windows-1252")))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_recognised(write, encoding):
    with refused("utf_16", ":1: ", "iconv -f UTF-16"):
        read(write("A line of plain text\n".encode(encoding) * 3))


def test_lines_that_are_not_utf_8_can_be_dropped_instead(write):
    texts, _, unusable = read(write(b"a\n\xff\nb\r\n"), on_invalid="drop")
    assert texts == ["a", "", "b"]
    assert unusable == {2: "wrong encoding"}


@pytest.mark.parametrize("size", [1_000_000, 1 << 20, 5_000_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nlast\n"])
def test_a_line_of_a_megabyte_is_skipped_and_the_others_keep_their_numbers(write, size, end):
    texts, _, unusable = read(write(b"first\n" + b"x" * size + end))
    assert texts == ["first", "", *(["last"] if b"last" in end else [])]
    assert unusable == {2: "line of a megabyte"}


def test_the_limit_is_in_bytes_wherever_chunks_end(write, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE", 12)
    content = "猫猫猫\n猫猫猫猫\nabcdefghijk\nabcdefghijkl\n".encode()
    for chunk in range(1, 50):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        texts, _, unusable = read(write(content))
        assert texts == ["猫猫猫", "", "abcdefghijk", ""], chunk
        assert list(unusable) == [2, 4]


def test_a_line_longer_than_memory_would_be_is_never_held(write):
    path = write(b"x" * 20_000_000 + b"\nend\n")
    tracemalloc.start()
    try:
        texts, _, unusable = read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (texts, list(unusable)) == (["", "end"], [1])
    assert peak < 8_000_000


def test_chunks_make_no_difference(write, monkeypatch):
    path = write("\ufeff猫\r\nb\u2028c\n\n\0d".encode())
    whole = read(path)
    for chunk in range(1, 30):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        texts, repairs, unusable = read(path)
        assert (texts, repairs.counts, unusable) == (whole[0], whole[1].counts, whole[2])
