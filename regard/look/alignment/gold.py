"""Alignments that people made, in Pharaoh's format, and how far others are from them. No torch here.

    0-0 1-2 2p1

A word of the inputs and a word of the outputs, both from 0: a sure link, or, with `p` or `?`, a possible one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from regard.errors import RequestError
from regard.look.alignment.word_links import Link

_LINK = re.compile(r"(\d+)([-p?])(\d+)")


@dataclass(frozen=True, slots=True)
class Gold:
    """The links of one pair of texts, as somebody who knows drew them."""

    sure: frozenset[Link]
    possible: frozenset[Link]
    """These and the sure ones."""

    @staticmethod
    def read(line: str) -> Gold:
        """One line of a file in Pharaoh's format.

        Raises:
            RequestError: something in it is no link.
        """
        links: dict[str, set[Link]] = {"-": set(), "p": set(), "?": set()}
        for each in line.split():
            if (found := _LINK.fullmatch(each)) is None:
                raise RequestError(f"{each!r} is no link: write 0-0 for a sure one, 0p0 for a possible one")
            links[found[2]].add((int(found[1]), int(found[3])))
        return Gold(frozenset(links["-"]), frozenset().union(*links.values()))


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """How well links fit those that are known, over one pair of texts or many (Och and Ney, 2003)."""

    precision: float
    """Of the links that were found, those that are possible."""
    recall: float
    """Of the links that are sure, those that were found."""
    error_rate: float
    """1 - (found and sure + found and possible) / (found + sure): AER, 0 at best."""


def alignment_error_rate(pairs: Iterable[tuple[Collection[Link], Gold]]) -> AlignmentScore:
    """Score the links of each pair of texts against the known ones, all pairs together.

    Raises:
        RequestError: there is no link that was found, or none that is sure.
    """
    n_found = n_sure = found_sure = found_possible = 0
    for links, gold in pairs:
        found = set(links)
        n_found, n_sure = n_found + len(found), n_sure + len(gold.sure)
        found_sure += len(found & gold.sure)
        found_possible += len(found & gold.possible)
    if not n_found or not n_sure:
        raise RequestError("an error rate needs a link that was found, and one that is surely right")
    return AlignmentScore(
        precision=found_possible / n_found,
        recall=found_sure / n_sure,
        error_rate=1 - (found_sure + found_possible) / (n_found + n_sure),
    )
