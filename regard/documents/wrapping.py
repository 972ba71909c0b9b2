"""Wraps a text into balanced lines, by the width on the screen, also where no spaces are between words."""

from __future__ import annotations

from typing import NamedTuple
from unicodedata import combining, east_asian_width

from regard.text.marked import Marked

_NOT_BEFORE = frozenset("，。、；：！？,.;:!?)]}）】》〉」』”’…—～·%％ー々ぁぃぅぇぉっゃゅょ")
_NOT_AFTER = frozenset("([{（【《〈「『“‘$￥¥")
_PAUSE = frozenset("，。、；：！？,.;:!?…—")
_WORD_SPLIT = 0.5
"""What it costs to split a text without spaces where no comma is: a line that is longer by this share."""
_NO_PAUSE = 0.3
"""What it costs to break a line between words, without a comma."""


def width(text: str) -> int:
    """Columns of a text on a screen."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def is_wide(letter: str) -> bool:
    """Whether a letter is of a script without spaces between words."""
    return east_asian_width(letter) in "WF" and not "\uac00" <= letter <= "\ud7af"  # Korean has spaces


def wrapped(marked: Marked, count: int, line_break: str = "\n") -> Marked:
    """A text in at most `count` lines of about the same width, with its tags."""
    breaks = _balanced(marked.text, count)
    lines, begins, place = [], [0], 0
    for each in breaks:
        lines.append(marked.text[place : each.start])
        begins.append(begins[-1] + len(lines[-1]) + len(line_break))
        place = each.end
    tags = []
    passed = 0
    for tag in marked.tags:
        # At a break, what ends there stays, and what begins there begins on the next line.
        while passed < len(breaks) and (
            tag.place > breaks[passed].start or (tag.place == breaks[passed].start and not tag.closes)
        ):
            passed += 1
        start = breaks[passed - 1].end if passed else 0
        tags.append(tag._replace(place=begins[passed] + max(0, tag.place - start)))
    return Marked(line_break.join([*lines, marked.text[place:]]), tuple(tags))


class _Break(NamedTuple):
    """A place where a line may end."""

    start: int
    """End of the line."""
    end: int
    """Start of the next line, after spaces."""
    cost: float


def _breaks(text: str) -> list[_Break]:
    found = []
    for i in range(1, len(text)):
        before, after = text[i - 1], text[i]
        if after.isspace() or after in _NOT_BEFORE or before in _NOT_AFTER:
            continue
        if before.isspace():
            start = len(text[:i].rstrip())
            found.append(_Break(start, i, 0 if text[start - 1 : start] in _PAUSE else _NO_PAUSE))
        elif is_wide(before) or is_wide(after):
            found.append(_Break(i, i, 0 if before in _PAUSE else _WORD_SPLIT))
    return [each for each in found if each.start > 0]


def _balanced(text: str, count: int) -> list[_Break]:
    """The places where lines end, so that their widths differ least."""
    if count < 2:
        return []
    places = _breaks(text)
    count = min(count, len(places) + 1)
    widths = [0]
    for letter in text:
        widths.append(widths[-1] + width(letter))
    aim = max(1.0, widths[-1] / count)
    end = _Break(len(text), len(text), 0)
    # For every place: the least cost of the lines before it, and the breaks between them.
    best: dict[int, tuple[float, list[_Break]]] = {0: (0.0, [])}
    for line in range(count):
        last = line == count - 1
        following: dict[int, tuple[float, list[_Break]]] = {}
        for each in [end] if last else places:
            options = [
                (cost + ((widths[each.start] - widths[start]) / aim - 1) ** 2 + each.cost**2, breaks)
                for start, (cost, breaks) in best.items()
                if start < each.start
            ]
            if options:
                cost, breaks = min(options, key=lambda option: option[0])
                following[each.end] = (cost, breaks if last else [*breaks, each])
        best = following
    return best[len(text)][1] if best else []
