"""Translations of texts with inline tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from regard.engine.markup.placement import placed
from regard.engine.markup.preparation import PreparedText
from regard.engine.phrases.decoder import Piece
from regard.engine.results import Result, WordLink
from regard.text.marked import Marked
from regard.text.normalisation import composed

_WORD = re.compile(r"[^\W\u3040-\u9fff\uac00-\ud7af]+|\S")


class MarkedResult(NamedTuple):
    """The translation of a text with inline tags."""

    result: Result
    """The translation as the model wrote it, with placeholders."""
    ranked: tuple[Marked, ...]
    """The translation and its alternatives with their tags, the best first."""
    unaligned: tuple[str, ...] = ()
    """Texts of elements whose words were not found in the translation: the place of their tags is a guess."""

    @property
    def best(self) -> Marked:
        """The translation with its tags."""
        return self.ranked[0]

    def stripped(self) -> MarkedResult:
        """The same without the spaces that a model may write at the ends of a text."""
        return self._replace(ranked=tuple(map(_stripped, self.ranked)))


def marked_result(
    prepared: PreparedText, result: Result, pieces: Sequence[Piece], outputs: Sequence[Sequence[Result]]
) -> MarkedResult:
    """The result of a text with its tags.

    Args:
        prepared: what was translated.
        result: of the whole text, with its alternatives.
        pieces: the sentences of the text, and what is between them.
        outputs: the results of each sentence that was translated.
    """
    if lost := prepared.lost(result.text):
        names = {name for name, _ in prepared.stand_ins}
        missing = [each for each in result.missing if each not in names]
        result = replace(result, missing=(*missing, *lost))
    ranked: list[Marked] = []
    unaligned: tuple[str, ...] = ()
    for rank, each in enumerate([result, *result.alternatives]):
        links = list(_links(pieces, [one[min(rank, len(one) - 1)] for one in outputs]))
        found = placed(prepared.body, each.text, links)
        ranked.append(prepared.restored(each.text, found.tags))
        unaligned = unaligned if rank else found.unaligned
    return MarkedResult(result, tuple(ranked), unaligned)


def _stripped(marked: Marked) -> Marked:
    """A text without the spaces that a model may write at its ends."""
    text = marked.text.strip()
    start = marked.text.index(text)
    tags = (tag._replace(place=min(len(text), max(0, tag.place - start))) for tag in marked.tags)
    return Marked(text, tuple(tags))


def without_alignment(result: Result) -> Result:
    """A result without word links, which were needed for its tags only."""
    others = tuple(map(without_alignment, result.alternatives))
    return replace(result, alignment=(), aligned_by="", alternatives=others)


def _links(pieces: Sequence[Piece], results: Sequence[Result]) -> Iterator[WordLink]:
    """The links of a text; a sentence that is not aligned, because it has no tags, is one word."""
    outputs, place = iter(results), 0
    for piece in pieces:
        text = piece.text
        links: Iterable[WordLink] = ()
        if piece.ids is not None:
            result = next(outputs)
            text = result.text
            if piece.has_tags:
                links = result.alignment or _proportional(piece.text, text)
        if not links and text.strip() and piece.text:
            links = [_link(piece.text, text, 0, len(composed(piece.text)))]
        yield from (link.moved(piece.start, place) for link in links)
        place += len(text)


def _proportional(source: str, target: str) -> Iterator[WordLink]:
    """Links by position alone, where words cannot be aligned."""
    scale = len(source) / max(1, len(target))
    for match in _WORD.finditer(target):
        start = int(match.start() * scale)
        link = _link(source, match[0], start, max(start + 1, int(match.end() * scale)))
        yield link.moved(0, match.start())


def _link(source: str, target: str, start: int, end: int) -> WordLink:
    return WordLink(
        source=source[start:end],
        target=target,
        source_start=start,
        source_end=end,
        target_start=0,
        target_end=len(target),
        strength=1.0,
    )
