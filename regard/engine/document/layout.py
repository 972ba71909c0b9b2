r"""The layout of a text: the parts to translate, and the parts around them that stay as they are.

Line breaks, blank lines, indentation, list and heading markers, trailing spaces and the spaces between
sentences stay. So does everything without a letter or a digit: a rule of dashes, an emoji; and blocks of code
and formulas, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from regard.engine.document.sentences import sentences
from regard.engine.document.verbatim import exact, without_exact
from regard.text.code_lines import CodeLines, split_lines

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
    code = CodeLines()
    for i, line in enumerate(split_lines(text)):
        if i % 2 or code.is_code(line):
            found += _kept(line)
        elif whole_lines:
            found += trimmed(line)
        else:
            body = _MARKS.sub("", line, count=1)
            found += _kept(line[: len(line) - len(body)])
            for sentence in _around_code(sentences(body)):
                found += trimmed(sentence)
    return found


def trimmed(text: str) -> Iterator[Part]:
    """A text as its leading spaces, its body, and its trailing spaces."""
    body = text.strip()
    start = text.index(body)
    yield from _kept(text[:start])
    if body:
        yield Part(body, translated=any(map(str.isalnum, without_exact(body))))
    yield from _kept(text[start + len(body) :])


def _around_code(pieces: list[str]) -> list[str]:
    """Sentences, joined where a boundary is inside of code or a formula."""
    if len(pieces) == 1 or not exact("".join(pieces)):
        return pieces
    joined = [pieces[0]]
    for piece in pieces[1:]:
        if len(exact(joined[-1])) + len(exact(piece)) == len(exact(joined[-1] + piece)) and not _is_open(
            joined[-1], piece
        ):
            joined.append(piece)
        else:
            joined[-1] += piece
    return joined


def _is_open(text: str, following: str) -> bool:
    """Whether code or a formula of two texts together is in both of them."""
    return without_exact(text) + without_exact(following) != without_exact(text + following)


def _kept(text: str) -> list[Part]:
    return [Part(text, translated=False)] if text else []
