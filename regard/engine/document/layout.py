r"""The layout of a text: what is translated, and what stays as it is around it.

Line breaks, blank lines, indentation, the marks of lists and headings, trailing spaces and the spaces between
sentences stay. So does everything that holds no letter and no digit: a rule of dashes, a smiley.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from regard.engine.document.sentences import sentences

_BREAK = re.compile("(\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")
_MARK = (
    r"[-*+•·‣◦▪▫●○■□–—>]\s+"  # a bullet, a quotation
    r"|#{1,6}\s+"  # a heading
    r"|\d{1,3}[.)]\s+|\(\d{1,3}\)\s*|[a-zA-Z]\)\s+"  # 1. 1) (1) a)
    r"|\d{1,3}[、．]\s*|[（(][一二三四五六七八九十]{1,3}[）)]\s*|[一二三四五六七八九十]{1,3}、\s*"
)
_MARKS = re.compile(rf"\s*(?:(?:{_MARK})(?=\S))*")


class Part(NamedTuple):
    """A part of a text."""

    text: str
    translated: bool
    """Whether it is for the model; else it stays as it is."""


def parts(text: str, *, whole_lines: bool = False) -> list[Part]:
    """A text in parts; joined, they are the text.

    Args:
        text: of any number of lines.
        whole_lines: leave lines uncut, marks of lists and all.
    """
    found: list[Part] = []
    for i, line in enumerate(_BREAK.split(text)):
        if i % 2:
            found.append(Part(line, translated=False))
        elif whole_lines:
            found += trimmed(line)
        else:
            body = _MARKS.sub("", line, count=1)
            found += _kept(line[: len(line) - len(body)])
            for sentence in sentences(body):
                found += trimmed(sentence)
    return found


def trimmed(text: str) -> Iterator[Part]:
    """A text without its outer spaces, and those beside it."""
    body = text.strip()
    start = text.index(body)
    yield from _kept(text[:start])
    if body:
        yield Part(body, translated=any(map(str.isalnum, body)))
    yield from _kept(text[start + len(body) :])


def without_breaks(text: str) -> str:
    """With spaces for line breaks. A model may spell one in bytes, but how many lines a text has stays."""
    return _BREAK.sub(" ", text)


def _kept(text: str) -> list[Part]:
    return [Part(text, translated=False)] if text else []
