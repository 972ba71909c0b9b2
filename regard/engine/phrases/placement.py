"""Drafts: the unconstrained translation with required phrases put in place of the words they stand for.

A search that must include an unlikely phrase may output what it would have output anyway, and the phrase
after it: "He drinks coffee. espresso." The draft replaces the words that come from the phrase's source:
"He drinks espresso."
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from regard.engine.phrases.glossary import Phrase
from regard.engine.results import WordLink

Likelihood = Callable[[list[str]], list[float]]
"""Scores outputs by the model; minus infinity for one that is too long."""

NEIGHBOURS = 4
"""Maximum number of words replaced on either side of the one most strongly linked to a phrase's source."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An output that contains some of the required phrases."""

    text: str
    links: tuple[WordLink, ...]
    """Of its words, in order."""
    replaced: tuple[str, ...] = ()
    """The main word that each inserted phrase replaced."""

    def is_better_than(self, text: str) -> bool:
        """Whether another output only added the phrases: it still contains the words that they replace."""
        return any(_says(text, word) and not _says(self.text, word) for word in self.replaced)


def drafted(draft: Draft, phrases: Sequence[Phrase], likelihood: Likelihood) -> Draft | None:
    """The draft with all phrases; None if one has no place, or does not fit."""
    for phrase in phrases:
        if phrase.is_in(draft.text):
            continue
        variants = list(_variants(draft, phrase))
        likely = likelihood([each.text for each in variants])
        best = max(likely, default=-inf)
        if best == -inf:
            return None
        draft = variants[likely.index(best)]
    return draft


def _variants(draft: Draft, phrase: Phrase) -> Iterator[Draft]:
    """The phrase in place of the word most strongly linked to its source, and of linked neighbours."""
    links = draft.links
    linked = {i for i, link in enumerate(links) if _comes_from(link, phrase)}
    if not linked:
        return
    strongest = first = last = max(linked, key=lambda i: links[i].strength)
    while first - 1 in linked and strongest - first < NEIGHBOURS:
        first -= 1
    while last + 1 in linked and last - strongest < NEIGHBOURS:
        last += 1
    for i in range(first, strongest + 1):
        for j in range(strongest, last + 1):
            yield _swapped(draft, i, j, phrase, links[strongest].target)


def _swapped(draft: Draft, first: int, last: int, phrase: Phrase, word: str) -> Draft:
    """The draft with the phrase in place of all words from first to last."""
    start, end = draft.links[first].target_start, draft.links[last].target_end
    written = phrase.forms[0 if draft.text[:start].strip() else -1]
    further = start + len(written) - end
    moved = (link.moved(0, further) for link in draft.links[last + 1 :])
    text = draft.text[:start] + written + draft.text[end:]
    return Draft(text, (*draft.links[:first], *moved), (*draft.replaced, word))


def _comes_from(link: WordLink, phrase: Phrase) -> bool:
    """Whether a word of the output is linked to the source of the phrase; punctuation never is."""
    overlaps = any(link.source_start < end and start < link.source_end for start, end in phrase.places)
    return overlaps and any(map(str.isalnum, link.target))


def _says(text: str, word: str) -> bool:
    return Phrase(word.lower()).is_in(text.lower())
