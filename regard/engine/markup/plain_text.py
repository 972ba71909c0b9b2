"""Inline markup in plain text: found line by line, and written into the translation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import accumulate

from regard.engine.markup.preparation import PreparedText
from regard.engine.markup.results import MarkedResult
from regard.engine.results import NumberChange, Result, WordLink
from regard.text.marked import Marked

_MARKUP = re.compile(r"[*_~]\S|\]\(|</?[A-Za-z]")


def may_have_markup(text: str) -> bool:
    """Whether a text may have inline markup: a quick test."""
    return _MARKUP.search(text) is not None


def marked_text(text: str) -> Marked:
    """A text of any number of lines with the inline markup of each line; code stays as it is."""
    if not may_have_markup(text):
        return Marked(text)
    try:
        from regard.documents.text import marked_text
    except ImportError:  # the parser comes with rich, but rich may stop to need it
        return Marked(text)
    return marked_text(text)


def as_written(source: Marked, prepared: PreparedText, found: MarkedResult) -> Result:
    """A result whose texts have their tags, and whose positions count them."""
    from regard.documents.inline import fitted

    best, *others = (
        _written(source, prepared, result, output if output == source else fitted(output))
        for result, output in zip([found.result, *found.result.alternatives], found.ranked, strict=True)
    )
    return replace(best, alternatives=tuple(others))


def _written(source: Marked, prepared: PreparedText, result: Result, output: Marked) -> Result:
    sources = _Positions(source, prepared, prepared.body.text)
    targets = _Positions(output, prepared, result.text)
    return replace(
        result,
        text=output.written(),
        alignment=tuple(_moved_link(link, sources, targets) for link in result.alignment),
        numbers=tuple(_moved_number(change, sources, targets) for change in result.numbers),
    )


class _Positions:
    """Positions in a text without tags, as positions in the same text with them."""

    def __init__(self, written: Marked, prepared: PreparedText, bare: str) -> None:
        places, place = [], 0
        for name, _ in prepared.stand_ins:
            start = bare.find(name, place)
            if start >= 0:
                places.append((start, len(name)))
                place = start + len(name)
        self._removed = [start for start, _ in places]
        self._removals = [0, *accumulate(length for _, length in places)]
        self._tags = [tag.place for tag in written.tags]
        self._raw = [0, *accumulate(len(tag.raw) for tag in written.tags)]

    def start(self, place: int) -> int:
        """Where a word starts: after the tags there."""
        place -= self._removals[bisect_left(self._removed, place)]
        return place + self._raw[bisect_right(self._tags, place)]

    def end(self, place: int) -> int:
        """Where a word ends: before the tags there."""
        place -= self._removals[bisect_left(self._removed, place)]
        return place + self._raw[bisect_left(self._tags, place)]


def _moved_link(link: WordLink, source: _Positions, target: _Positions) -> WordLink:
    return replace(
        link,
        source_start=source.start(link.source_start),
        source_end=source.end(link.source_end),
        target_start=target.start(link.target_start),
        target_end=target.end(link.target_end),
    )


def _moved_number(change: NumberChange, source: _Positions, target: _Positions) -> NumberChange:
    moved = replace(
        change, source_start=source.start(change.source_start), source_end=source.end(change.source_end)
    )
    if change.target_start is None or change.target_end is None:
        return moved
    start, end = target.start(change.target_start), target.end(change.target_end)
    return replace(moved, target_start=start, target_end=end)
