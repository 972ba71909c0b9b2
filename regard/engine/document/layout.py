r"""The layout of a text: the parts to translate, and the parts around them that stay as they are.

Line breaks, blank lines, indentation, list and heading markers, trailing spaces and the spaces between
sentences stay. So does everything without a letter or a digit: a rule of dashes, an emoji.
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
    """Whether the model translates it; otherwise it stays as it is."""


def parts(text: str, *, whole_lines: bool = False) -> list[Part]:
    """The parts of a text; concatenated, they are the text.

    Args:
        text: any number of lines.
        whole_lines: do not split lines into sentences or separate list markers.
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
    """A text as its leading spaces, its body, and its trailing spaces."""
    body = text.strip()
    start = text.index(body)
    yield from _kept(text[:start])
    if body:
        yield Part(body, translated=any(map(str.isalnum, body)))
    yield from _kept(text[start + len(body) :])


def without_breaks(text: str) -> str:
    """Replace line breaks by spaces: a model may output one, but the number of lines must not change."""
    return _BREAK.sub(" ", text)


def _kept(text: str) -> list[Part]:
    return [Part(text, translated=False)] if text else []
