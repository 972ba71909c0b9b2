"""A text keeps its layout, whatever is made of its sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.engine.document.layout import parts
from tests.engine.documents import CODE, documents

PAGE = """\
# Heading one

  - One item. And more.\t
  * 2nd item
1. First
2) Second
   (3) Third
一、甲。乙！
（二）丙
> Quoted.

\t---\r
😀 !!! \u3000
End. \
"""
TRANSLATED = [
    "Heading one", "One item.", "And more.", "2nd item", "First", "Second", "Third", "甲。", "乙！", "丙",
    "Quoted.", "End.",
]  # fmt: skip


def test_what_is_translated_and_what_stays():
    found = parts(PAGE)
    assert "".join(part.text for part in found) == PAGE
    assert [part.text for part in found if part.translated] == TRANSLATED


def test_whole_lines_keep_their_marks():
    found = [part.text for part in parts("  - One. Two. \n\n3.5 x", whole_lines=True) if part.translated]
    assert found == ["- One. Two.", "3.5 x"]


@pytest.mark.parametrize("text", ["One sentence.", "一句话。", "3.5 kg of it", "J. Smith - a man", "-5", "a"])
def test_one_sentence_goes_through_as_it_is(text):
    ((found, translated),) = parts(text)
    assert (found, translated) == (text, True)


PIECES = st.sampled_from(
    ["\n", "\r\n", "\r", " ", "\t", "- ", "1. ", "。", ". ", "A", "b", "中", "\u2028", "\x85"]
)


@given(st.text() | st.lists(PIECES).map("".join), st.booleans())
def test_joined_the_parts_are_the_text(text, whole_lines):
    found = parts(text, whole_lines=whole_lines)
    assert "".join(part.text for part in found) == text
    for part in found:
        assert not part.translated or (part.text == part.text.strip() and len(part.text.splitlines()) == 1)


@pytest.mark.parametrize("block", CODE)
def test_blocks_of_code_and_formulas_stay(block):
    found = parts(f"One.\n\n{block}\n\nTwo.")
    assert "".join(part.text for part in found) == f"One.\n\n{block}\n\nTwo."
    assert [part.text for part in found if part.translated] == ["One.", "Two."]


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("```\nnever closed\n\nto the end", []),
        ("```\na\n````\nafter a longer end", ["after a longer end"]),
        ("````\na\n```\nb\n````\nc", ["c"]),
        ("~~~\na\n```\nb\n~~~\nc", ["c"]),
        ("```not a fence``` but text", ["```not a fence``` but text"]),
        (
            "One.\n    x = 1, but after a line of a paragraph",
            ["One.", "x = 1, but after a line of a paragraph"],
        ),
        ("    An indented paragraph of words.", ["An indented paragraph of words."]),
        ("    for $5 he and/or she got the file(s).", ["for $5 he and/or she got the file(s)."]),
        ("\u3000\u3000全角缩进的段落，x = 1。", ["全角缩进的段落，x = 1。"]),
        ("- item\n\n    more of the item", ["item", "more of the item"]),
        ("$$ x = 1 $$ and words", ["$$ x = 1 $$ and words"]),
        ("`x. Y` is one. And two.", ["`x. Y` is one.", "And two."]),
        ("Set $a. B$ here. And `c. D`!", ["Set $a. B$ here.", "And `c. D`!"]),
        ("`code` $x$", []),
        ("It is $5. Or $10.", ["It is $5.", "Or $10."]),
    ],
)
def test_what_is_code_and_what_is_not(text, translated):
    assert [part.text for part in parts(text) if part.translated] == translated


@given(documents())
def test_code_survives_in_any_document(document):
    text, blocks = document
    found = parts(text)
    assert "".join(part.text for part in found) == text
    kept = "".join(part.text if not part.translated else "\0" for part in found)
    for block in blocks:
        assert block in kept
