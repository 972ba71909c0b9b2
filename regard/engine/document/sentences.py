r"""Sentence boundaries, by rules; and where else to split a text that is too long.

A full stop ends a sentence if a space and no lower-case letter follow, unless it belongs to a title (Dr.).
After other abbreviations, initials and short numbers (am 3. Oktober, plan B.) the next word must be one that
begins sentences, such as an article. In a line without capitals, lower case says nothing.

Chinese and Japanese full stops end a sentence anywhere. Closing quotes and brackets belong to what they
close. After a closed question or exclamation a Chinese sentence continues (“好吗？”他问。), unless a space or
another quote follows; after a closed statement only if the speaker is named (“好。”他说。) or a conjunction
follows. An ellipsis before a Chinese character ends nothing.

In doubt there is no boundary: half a sentence is translated worse than two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from unicodedata import combining

from regard.engine.document.abbreviations import (
    ABBREVIATIONS,
    BEFORE_NUMBERS,
    STARTERS,
    STARTERS_OR_NAMES,
    TITLES,
    WITHIN,
)

CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # noqa: E501
"""Character class of the scripts that put no spaces between words."""

_CLOSING = "\"'”’»›)\\]}」』）》】〉〕"
_OPENING = "\"'“‘«‹„‚([{「『（《【〈〔¿¡"
_NOTES = r"(?:\[\d{1,3}(?:[,–-] ?\d{1,3}){0,9}\])*"
"""References in brackets, as encyclopaedias put them after a full stop."""
# German closes with the quotes that English opens with; right after a full stop they close. French puts a
# space before the closing quote.
_END = re.compile(
    rf"(?P<wide>[。！？｡]+)[{_CLOSING}]*{_NOTES}"
    rf"|(?P<narrow>[.!?…؟۔।॥։]+)[{_CLOSING}“‘«]*(?:\s»(?=[\s.,;:]|\Z))?{_NOTES}"
)
_LAST_WORD = re.compile(rf"[^\s{_OPENING}{CJK}。！？，、；：）】」』”]*\Z")
_FIRST_WORD = re.compile(rf"[{_OPENING}]*([^\W\d_]+)(?![\w.])")
_SPACES = re.compile(r"\s*")
_IDEOGRAPH = re.compile(f"[{CJK}]")
_BEFORE_LETTER = re.compile(rf"[–—-]?\s?[{_OPENING}]?(?=\w)")
_NEVER_FIRST = frozenset(".!?…,;:)]}%»。！？，、；：）】」』”")
# What continues a Chinese sentence after a quotation that ends with a full stop: particles and conjunctions,
# or a few words that name the speaker.
_GOES_ON = re.compile(
    r"\s*(?:[的地得被就便又并等和与或及而]|然后|以及"
    r"|[^\s。！？…，：“”「」『』]{0,12}?(?:[说說道问問答喊叫嚷想写寫称稱]|表示|补充|解释|强调|指出)着?[，。！,])"
)

_INITIALS = re.compile(r"(?:[^\W\d]\.-?)*[^\W\d]")
_ROMAN = re.compile(r"[IVX]{2,}")
_SHORT_NUMBER = re.compile(r"(?:\d{1,2}\.?[-–/])?\d{1,2}")


def sentences(text: str) -> list[str]:
    """The sentences of one line; concatenated, they are the line: spaces stay at the end of a sentence.

    >>> sentences("Dr. No met J. Bond at 3.30 p.m. sharp. “Why?” he asked… 好。不好！")
    ['Dr. No met J. Bond at 3.30 p.m. sharp. ', '“Why?” he asked… ', '好。', '不好！']
    """
    line = _Line(text)
    ends = [0]
    start = line.spaces(0)
    for end in _END.finditer(text):
        following = line.next_start(end)
        if start < end.start() and following < len(text) and line.ends(start, end, following):
            ends.append(following)
            start = line.spaces(following)
    return [text[a:b] for a, b in pairwise([*ends, len(text)])]


class _Line:
    """A line of text and what is known of the whole of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._without_capitals: bool | None = None
        self._quotes, self._counted = 0, 0

    def spaces(self, place: int) -> int:
        """The end of the spaces at a place."""
        return _SPACES.match(self.text, place).end()  # type: ignore[union-attr]  # it always matches

    def next_start(self, end: re.Match[str]) -> int:
        """Where the next sentence would begin.

        A straight quote right after a Chinese full stop opens a quotation if those before it are in pairs.
        """
        self._quotes += self.text.count('"', self._counted, end.start())
        self._counted = end.start()
        if end["wide"] and self._quotes % 2 == 0 and self.text.startswith('"', end.end("wide")):
            return end.end("wide")
        return self.spaces(end.end())

    def ends(self, start: int, end: re.Match[str], following: int) -> bool:
        """Whether the sentence that began at `start` ends at this punctuation."""
        after, spaced = self.text[following], following > end.end()
        if end["wide"]:
            return following < end.end() or self._wide_ends(end, following)
        if after in _NEVER_FIRST:
            return False
        mark, closed = end["narrow"], end.end() > end.end("narrow")
        if _IDEOGRAPH.match(after):
            if closed or mark.endswith(("…", "..")):
                return False
            if not spaced:
                before = self.text[end.start() - 1]
                return mark[-1] in "!?" and not (before.isascii() and before.isalpha())
        elif not spaced:
            return False
        if not after.isalnum() and (letter := _BEFORE_LETTER.match(self.text, following)):
            after = self.text[letter.end()]
        if after.islower():
            return not closed and self.without_capitals and self._lower_ends(start, end, following)
        return mark != "." or closed or not self._abbreviates(start, end.start(), following)

    def _wide_ends(self, end: re.Match[str], following: int) -> bool:
        """Whether a sentence ends at a Chinese or Japanese full stop and what it closes."""
        after, closing = self.text[following], self.text[end.end("wide") : end.end()].partition("[")[0]
        if after in _NEVER_FIRST:
            return False
        if not closing or after in _OPENING:
            return True
        if _GOES_ON.match(self.text, following):
            return False
        return following > end.end() or (end["wide"][-1] in "。｡" and closing[-1] not in "》〉")

    @property
    def without_capitals(self) -> bool:
        """Whether the line has neither capitals nor Chinese, so that lower case says nothing."""
        if self._without_capitals is None:
            self._without_capitals = self.text == self.text.lower() and not _IDEOGRAPH.search(self.text)
        return self._without_capitals

    def _lower_ends(self, start: int, end: re.Match[str], following: int) -> bool:
        """Whether a sentence ends before a lower-case letter in a line without capitals."""
        if end["narrow"] != ".":
            return end["narrow"][-1] in "!?"
        word = _LAST_WORD.search(self.text, max(start, end.start() - 40), end.start())
        if word is None or len(word[0]) < 2 or not word[0].isalpha() or word[0] in WITHIN | BEFORE_NUMBERS:
            return False
        return not self._abbreviates(start, end.start(), following)

    def _abbreviates(self, start: int, stop: int, following: int) -> bool:
        """Whether a full stop belongs to the word before it and ends no sentence."""
        match = _LAST_WORD.search(self.text, max(start, stop - 40), stop)
        if match is None or match[0] == "I":
            return False
        word, lower = match[0], match[0].lower()
        spaced = self.text[max(start, match.start() - 3) : stop]  # z. B.
        if lower in TITLES or "".join(spaced.lower().split()) in TITLES:
            return True
        if lower in BEFORE_NUMBERS or lower.endswith("str"):
            return self.text[following].isdigit()
        if _SHORT_NUMBER.fullmatch(word):
            before = self.text[max(start, match.start() - 2) : match.start()]
            numbers_item = not before or before.endswith((": ", "; ", "：", "；", "("))
            return numbers_item or not self._begins(following)
        if _INITIALS.fullmatch(word):
            return not self._begins(following, after_initial=len(word) == 1)
        return (lower in ABBREVIATIONS or bool(_ROMAN.fullmatch(word))) and not self._begins(following)

    def _begins(self, following: int, *, after_initial: bool = False) -> bool:
        """Whether a word follows that begins sentences."""
        word = _FIRST_WORD.match(self.text, following)
        if word is None:
            return False
        return word[1] in STARTERS or (word[1] in STARTERS_OR_NAMES and not after_initial)


# --- splitting texts that are too long ----------------------------------------------------------------------

_CLAUSE = re.compile(r"(?<=[，、；：])|(?<=[,;:–—]\s)(?=\S)")
_WORD = re.compile(r"(?<=\s)(?=\S)")

Count = Callable[[list[str]], list[int]]
"""Counts the tokens of texts."""


def cut(text: str, count: Count, most: int) -> list[str]:
    """Split a text into as few pieces as possible; concatenated, they are the text.

    It is split between sentences; a sentence that is too long, between clauses; a clause, between words; a
    word, anywhere.

    Args:
        text: one line.
        count: counts tokens.
        most: maximum number of tokens in a piece.
    """
    pieces = [text]
    for joints in (sentences, _CLAUSE.split, _WORD.split):
        pieces = _cut(pieces, count, most, partial(_at_joints, joints, count, most))
    while any(size > most and len(piece) > 1 for piece, size in zip(pieces, count(pieces), strict=True)):
        pieces = _cut(pieces, count, most, lambda piece, size: _evenly(piece, -(-size // most)))
    return pieces


def _cut(pieces: list[str], count: Count, most: int, parts: Callable[[str, int], Iterable[str]]) -> list[str]:
    """Split the pieces that are too long."""
    sizes = zip(pieces, count(pieces), strict=True)
    return [
        part for piece, size in sizes for part in ([piece] if size <= most else parts(piece, size)) if part
    ]


def _at_joints(
    joints: Callable[[str], list[str]], count: Count, most: int, text: str, _size: int
) -> Iterator[str]:
    """Units joined into pieces of at most `most` tokens, counted unit by unit."""
    units = joints(text)
    together, room = "", most
    for unit, size in zip(units, count(units), strict=True):
        if together and size > room:
            yield together
            together, room = "", most
        together, room = together + unit, room - size
    yield together


def _evenly(text: str, n: int) -> list[str]:
    """About n equal pieces; combining accents stay with their letter, unless there are very many."""
    step = -(-len(text) // max(2, n))
    places = (_before_a_letter(text, place) for place in range(step, len(text), step))
    return [text[a:b] for a, b in pairwise([0, *dict.fromkeys(places), len(text)]) if a < b]


def _before_a_letter(text: str, place: int) -> int:
    near = range(place, min(place + 8, len(text)))
    return next((i for i in near if not combining(text[i]) and text[i] not in "\u200d\ufe0f"), place)
