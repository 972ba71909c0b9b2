r"""Sentence boundaries, by rules; and where else to split a text that is too long.

A full stop ends a sentence if a space and no lower-case letter follow, unless it belongs to an abbreviation,
an initial or a short number (am 3. Oktober). Chinese and Japanese full stops end one anywhere. Closing quotes
and brackets belong to what they close; after a Chinese closing quote a sentence continues (“好吗？”他问。),
unless a space or another quote follows. An ellipsis inside Chinese text ends nothing.

In doubt there is no boundary: half a sentence is translated worse than two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from unicodedata import combining

CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # noqa: E501
"""Character class of the scripts that put no spaces between words."""

_CLOSING = "\"'”’»›)\\]}」』）》】〉〕"
_OPENING = "\"'“‘«‹„‚([{「『（《【〈〔¿¡"
# German closes with the quotes that English opens with; right after a full stop they close.
_END = re.compile(rf"(?P<wide>[。！？｡]+)[{_CLOSING}]*|(?P<narrow>[.!?…]+)[{_CLOSING}“‘]*")
_LAST_WORD = re.compile(r"[^\s" + _OPENING + r"]*\Z")
_SPACES = re.compile(r"\s*")

# Words that rarely end a sentence. `etc.` and `No.` may: the next letter decides.
_ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof rev gen col capt lt sgt st mt jr sr vs fig figs eq nos nr vol vols pp approx dept cf ca
    bzw vgl evtl ggf hr hrn frl abb bd hrsg tel mme mlle mgr c.-à-d sra srta dña uds dott
    jan feb apr jun jul aug sep sept okt oct nov dez dec
    """.split()  # noqa: SIM905
)
_INITIALS = re.compile(r"(?:[^\W\d]\.)*[^\W\d]")
_SHORT_NUMBER = re.compile(r"\d{1,2}")


def sentences(text: str) -> list[str]:
    """The sentences of one line; concatenated, they are the line: spaces stay at the end of a sentence.

    >>> sentences("Dr. No met J. Bond at 3.30 p.m. sharp. “Why?” he asked… 好。不好！")
    ['Dr. No met J. Bond at 3.30 p.m. sharp. ', '“Why?” he asked… ', '好。', '不好！']
    """
    ends = [0]
    for end in _END.finditer(text):
        following = _SPACES.match(text, end.end()).end()  # type: ignore[union-attr]  # it always matches
        if following < len(text) and text[ends[-1] : end.start()].strip() and _ends(text, end, following):
            ends.append(following)
    return [text[a:b] for a, b in pairwise([*ends, len(text)])]


def _ends(text: str, end: re.Match[str], following: int) -> bool:
    """Whether a sentence ends at this punctuation; `following` is where the next one would begin."""
    after, spaced = text[following], following > end.end()
    if end["wide"]:
        closed = end.end() > end.end("wide")
        return spaced or not closed or after in _OPENING
    if not spaced:
        return "…" not in end["narrow"] and "." not in end["narrow"] and bool(re.match(f"[{CJK}]", after))
    if after.islower() or (after in _OPENING and text[following + 1 : following + 2].islower()):
        return False
    return end["narrow"] != "." or end.end() > end.end("narrow") or not _abbreviates(text, end.start())


def _abbreviates(text: str, stop: int) -> bool:
    """Whether a full stop belongs to the word before it."""
    word = _LAST_WORD.search(text, max(0, stop - 40), stop)
    if word is None:
        return False
    if _SHORT_NUMBER.fullmatch(word[0]) or word[0].lower() in _ABBREVIATIONS:
        return True
    return word[0] != "I" and _INITIALS.fullmatch(word[0]) is not None


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
