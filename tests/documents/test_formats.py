"""The choice of a format, and plain text."""

import sys

import pytest

from regard.documents import text
from regard.documents.formats import FORMATS, format_of
from regard.text.marked import Marked
from tests.refusals import refused


def test_every_suffix_has_one_format():
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert format_of("A.HTM").module == "html"
    for name in ("a.pdf", "a"):
        with refused("unknown_format", name):
            format_of(name)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mdit_py_plugins.footnote", None)
    monkeypatch.delitem(sys.modules, "regard.documents.markdown", raising=False)
    with refused("missing_library", "regard[documents]"):
        format_of("a.md").read(b"x")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_text_keeps_layout_code_and_encoding(encoding):
    source = "Dear all,\r\n\r\n  - one **two**\r\n\r\n```\ncode line\n```\n42\n".encode(encoding)
    document = text.read(source)
    assert [each.text for each in document.segments] == ["Dear all,", "- one two"]
    assert document.written(document.segments) == source
    capitals = document.written([Marked(each.text.upper(), each.tags) for each in document.segments])
    assert capitals.decode(encoding) == source.decode(encoding).replace("Dear all", "DEAR ALL").replace(
        "one **two**", "ONE **TWO**"
    )


def test_what_is_no_text_is_refused():
    with refused("not_text", "zip"):
        text.read(b"PK\x03\x04rest")
    with refused("not_utf_8", "line 2"):
        text.read("a\nGr\xfc\xdfe aus K\xf6ln".encode("latin1"))
