"""Drafts: the unconstrained translation with required phrases put in place of the words they stand for.

A search that must include an unlikely phrase may output what it would have output anyway, and the phrase
after it: "He drinks coffee. espresso." The draft replaces the words that come from the phrase's source:
"He drinks espresso."
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import NamedTuple

from regard.engine.phrases.finder import PhraseFinder, plain
from regard.engine.phrases.glossary import Phrase, Span, absent, capitalised, missing
from regard.engine.results import WordLink

Likelihood = Callable[[list[str]], list[float]]
"""Scores outputs by the model; minus infinity for one that is too long."""

NEIGHBOURS = 4
"""Maximum number of words replaced on either side of the one most strongly linked to a phrase's source."""

MOST_INSERTED = 16
"""Maximum number of occurrences that are inserted; each is tried in up to 25 ways, which the model scores."""


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


def drafts(draft: Draft, phrases: Sequence[Phrase], likelihood: Likelihood) -> Iterator[Draft]:
    """The draft with each phrase in the place of its source, and then one for each further occurrence.

    There is none if a phrase has no place.
    """
    first, lacking = absent(phrases, draft.text), missing(phrases, draft.text)
    if len(first) > MOST_INSERTED:
        return
    for phrase in first:
        longer = _inserted(draft, phrase, phrases, likelihood)
        if longer is None:
            return
        draft, lacking[phrase] = longer, lacking[phrase] - 1
    yield draft
    further = (phrase for phrase in phrases for _ in range(lacking[phrase]))
    for phrase in islice(further, MOST_INSERTED - len(first)):
        if longer := _inserted(draft, phrase, phrases, likelihood):
            yield (draft := longer)


class _Swap(NamedTuple):
    """Words of a draft, and the text that replaces them."""

    first: int
    """Index of the first word's link."""
    last: int
    main_word: str
    text: str


def _inserted(
    draft: Draft, phrase: Phrase, phrases: Sequence[Phrase], likelihood: Likelihood
) -> Draft | None:
    """The most likely variant with one more occurrence of a phrase, and all that the draft has."""
    n_missing = missing(phrases, draft.text).total()

    def likeliest(swaps: Iterable[_Swap]) -> tuple[_Swap, Draft] | None:
        variants = [(swap, _swapped(draft, swap, phrase)) for swap in swaps]
        variants = [each for each in variants if missing(phrases, each[1].text).total() < n_missing]
        likely = likelihood([each.text for _, each in variants])
        best = max(likely, default=-inf)
        return variants[likely.index(best)] if best > -inf else None

    found = likeliest(_swaps(draft, phrase))
    if found and phrase.alternatives:
        found = likeliest(found[0]._replace(text=text) for text in (phrase.text, *phrase.alternatives))
    return found[1] if found else None


def _swaps(draft: Draft, phrase: Phrase) -> Iterator[_Swap]:
    """The phrase in place of the word most strongly linked to its source, and of neighbours linked there."""
    links = draft.links
    said = list(PhraseFinder(map(plain, phrase.forms)).matches(draft.text))
    linked = {
        i: place
        for i, link in enumerate(links)
        if (place := _place_of(link, phrase))
        and not any(start < link.target_end and link.target_start < end for _, start, end in said)
    }
    if not linked:
        return
    strongest = first = last = max(linked, key=lambda i: links[i].strength)
    while linked.get(first - 1) == linked[strongest] and strongest - first < NEIGHBOURS:
        first -= 1
    while linked.get(last + 1) == linked[strongest] and last - strongest < NEIGHBOURS:
        last += 1
    for i in range(first, strongest + 1):
        for j in range(strongest, last + 1):
            yield _Swap(i, j, links[strongest].target, phrase.text)


def _swapped(draft: Draft, swap: _Swap, phrase: Phrase) -> Draft:
    """The draft with a text of the phrase in place of its words, capitalised where it begins the output."""
    first, last, main_word, text = swap
    start, end = draft.links[first].target_start, draft.links[last].target_end
    capital = capitalised(text)
    written = capital if capital in phrase.forms and not draft.text[:start].strip() else text
    further = start + len(written) - end
    moved = (link.moved(0, further) for link in draft.links[last + 1 :])
    text = draft.text[:start] + written + draft.text[end:]
    return Draft(text, (*draft.links[:first], *moved), (*draft.replaced, main_word))


def _place_of(link: WordLink, phrase: Phrase) -> Span | None:
    """The place of the phrase's source that a word of the output is linked to; punctuation never is."""
    places = (each for each in phrase.places if link.source_start < each[1] and each[0] < link.source_end)
    return next(places, None) if any(map(str.isalnum, link.target)) else None


def _says(text: str, word: str) -> bool:
    return not missing([Phrase(word.lower())], text.lower())
