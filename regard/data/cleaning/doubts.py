"""What makes one doubt that pairs are what they are called, though each line alone is fit to be learned."""

from __future__ import annotations

from collections.abc import Iterator

from regard.data.reading.corpus import Row
from regard.text.scripts import language_among

SAMPLED = 10_000
"""Pairs that are looked at, spread over the corpus."""
_TURNED = 0.02
"""Share of pairs from which on turned ones are no accident: names and titles stand in other letters, too."""


def doubts(rows: list[Row], languages: tuple[str, str]) -> Iterator[str]:
    """What is to be asked of some pairs of a corpus, as sentences; nothing where they look sound."""
    same = sum(source == target for source, target in rows)
    if 2 * same > len(rows):
        yield (
            f"{same:,} of {len(rows):,} pairs that were looked at have the same text on both sides: "
            "is one a copy of the other?"
        )
    here, there = languages
    turned = sum(
        language_among(source, languages) == there and language_among(target, languages) == here
        for source, target in rows
    )
    if turned > _TURNED * len(rows):
        yield (
            f"{turned:,} of {len(rows):,} pairs that were looked at seem to go from {there} to {here}, "
            f"not from {here} to {there}: are files, columns or languages the wrong way round?"
        )
