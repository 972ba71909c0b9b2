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

_BREAK = re.compile("(\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")
_MARK = (
    r"[-*+•·‣◦▪▫●○■□–—>]\s+"  # a bullet, a quotation
    r"|#{1,6}\s+"  # a heading
    r"|\d{1,3}[.)]\s+|\(\d{1,3}\)\s*|[a-zA-Z]\)\s+"  # 1. 1) (1) a)
    r"|\d{1,3}[、．]\s*|[（(][一二三四五六七八九十]{1,3}[）)]\s*|[一二三四五六七八九十]{1,3}、\s*"
)
_MARKS = re.compile(rf"\s*(?:(?:{_MARK})(?=\S))*")


_FENCE = re.compile(r"(?:\s|[>*+-]\s|\d{1,3}[.)]\s)*(`{3,}(?=[^`]*\Z)|~{3,})")
_FORMULA = re.compile(r"(?:\s|>\s)*(\$\$|\\\[|\\begin\{([A-Za-z]+\*?)\})")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*(?=\S)")
# What shows that a line is code; and what shows it unless the line ends like a sentence.
_CODE_SIGN = re.compile(
    r"[{}=<>|\\]|\w_\w|\$[A-Za-z_({]|&&|::|;\s*\Z|\s(?:#|//|/\*)|\A\s*(?:#|//|/\*|--|>>>|@\w)"
)
_CODE_WORD = re.compile(
    r"\w\(|\s--?\w|:\s*\Z|\A\s*(?:import|from|def|class|return|if|for|while|else|try|with|let|const|var|func|fn|"
    r"print|echo|sudo|cd|ls|git|pip|npm|apt|make|docker|python3?|regard|select|SELECT)\b"
)
_SENTENCE_END = re.compile(r"[.,!?。，！？…]\s*\Z")


class CodeLines:
    """Tells the lines of code blocks and formulas of one document, which are given to it one after another.

    A fence, of backticks or tildes, and a formula of several lines last until they are closed, or to the end.
    Indented code begins after an empty line, with a line that looks like code.
    """

    def __init__(self) -> None:
        self._closed_by: re.Pattern[str] | None = None
        self._after_blank, self._indented = True, False

    def is_code(self, line: str) -> bool:
        """Whether the next line stays as it is."""
        if self._closed_by is not None:
            if self._closed_by.search(line):
                self._closed_by = None
            return True
        formula: re.Match[str] | None = None
        if fence := _FENCE.match(line):
            mark = fence[1]
            self._closed_by = re.compile(rf"\A(?:\s|>\s?)*{mark[0]}{{{len(mark)},}}\s*\Z")
        elif formula := _FORMULA.match(line):
            end = re.escape(
                f"\\end{{{formula[2]}}}" if formula[2] else {"$$": "$$", "\\[": "\\]"}[formula[1]]
            )
            if re.compile(end).search(line, formula.end()):
                formula = None  # all on one line: the sentence around it is translated
            else:
                self._closed_by = re.compile(end)
        blank = not line.strip()
        if not blank:
            begins = self._after_blank and _looks_like_code(line)
            self._indented = _INDENTED.match(line) is not None and (self._indented or begins)
        self._after_blank = blank
        return fence is not None or formula is not None or self._indented


def _looks_like_code(line: str) -> bool:
    if _CODE_SIGN.search(line):
        return True
    return _CODE_WORD.search(line) is not None and not _SENTENCE_END.search(line)


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


def split_lines(text: str) -> list[str]:
    """The lines of a text; every second element is a line break."""
    return _BREAK.split(text)


def trimmed(text: str) -> Iterator[Part]:
    """A text as its leading spaces, its body, and its trailing spaces."""
    body = text.strip()
    start = text.index(body)
    yield from _kept(text[:start])
    if body:
        yield Part(body, translated=any(map(str.isalnum, without_exact(body))))
    yield from _kept(text[start + len(body) :])


def without_breaks(text: str) -> str:
    """Replace line breaks by spaces: a model may output one, but the number of lines must not change."""
    return _BREAK.sub(" ", text)


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
