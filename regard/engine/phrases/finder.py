"""Finds phrases of a list in texts, as whole words in scripts with spaces and anywhere in the others."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from regard.engine.document.sentences import CJK
from regard.text.normalisation import composed

_LETTER = rf"[^\W{CJK}]"
"""A letter or digit of a script with spaces."""
_PLACES = re.compile(rf"{_LETTER}+|\S")
"""Where a phrase can begin: at words, and at every other character."""
_WITHIN_WORD = re.compile(rf"(?<={_LETTER})(?={_LETTER})")
_UNEVEN_SPACE = re.compile(r"\s\s|[^\S ]")


class Match(NamedTuple):
    """A phrase in a text."""

    phrase: str
    start: int
    end: int


class PhraseFinder:
    """Finds phrases in texts; the longest first, without overlaps.

    The phrases are sorted. Of a text's predecessor in that order, and the phrases that this one begins with,
    the longest that the text begins with too is the match. So a lookup takes the time of a binary search.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        """The phrases are in the form that `plain` returns, and not empty."""
        self._phrases = sorted(set(phrases))
        self._longest = max(map(len, self._phrases), default=0)
        self._shorter: list[int] = []  # per phrase, the longest other one that it begins with; -1 for none
        chain: list[int] = []
        for i, phrase in enumerate(self._phrases):
            while chain and not phrase.startswith(self._phrases[chain[-1]]):
                chain.pop()
            self._shorter.append(chain[-1] if chain else -1)
            chain.append(i)

    def __bool__(self) -> bool:
        return bool(self._phrases)

    def matches(self, text: str) -> Iterator[Match]:
        """The phrases in a text; runs of spaces count as one space."""
        spaced, places = _evenly_spaced(text)
        end = 0
        for word in _PLACES.finditer(spaced):
            if word.start() >= end and (phrase := self._at(spaced, word.start())):
                end = word.start() + len(phrase)
                yield Match(phrase, places[word.start()], places[end - 1] + 1)

    def _at(self, text: str, start: int) -> str | None:
        """The longest phrase that begins here, and does not end within a word."""
        rest = text[start : start + self._longest]
        i = bisect_right(self._phrases, rest) - 1
        while i >= 0:
            phrase = self._phrases[i]
            if rest.startswith(phrase) and not _WITHIN_WORD.match(text, start + len(phrase)):
                return phrase
            i = self._shorter[i]
        return None


def plain(text: str) -> str:
    """The text in NFC, with single spaces."""
    return " ".join(composed(text).split())


def begins_with_letter(text: str) -> bool:
    """Whether a text begins with a letter or digit of a script with spaces."""
    return re.match(_LETTER, text.strip()) is not None


def ends_with_letter(text: str) -> bool:
    """Whether a text ends with a letter or digit of a script with spaces."""
    return re.match(_LETTER, text.strip()[-1:]) is not None


def _evenly_spaced(text: str) -> tuple[str, Sequence[int]]:
    """The text with single spaces, and the position in the text of each of its characters."""
    if not _UNEVEN_SPACE.search(text):
        return text, range(len(text))
    places = [i for i, sign in enumerate(text) if not (i and sign.isspace() and text[i - 1].isspace())]
    return "".join(" " if text[i].isspace() else text[i] for i in places), places
