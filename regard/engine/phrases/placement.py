"""Phrases put where the words stand that they are asked for: a draft, for when a search only adds them.

A search that must write an unlikely phrase may say what it would have said anyway, and the phrase after it:
"He drinks coffee. espresso." The draft is what the model writes when nobody asks for anything, with the words
that come from the phrase's source taken out and the phrase put in: "He drinks espresso."
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from regard.engine.phrases.glossary import Phrase
from regard.engine.result import WordLink

Likelihood = Callable[[list[str]], list[float]]
"""How likely the model finds each of some outputs; minus infinity where one is too long for it."""


NEIGHBOURS = 4
"""Words on either side of the one that comes most from a phrase's source that may be replaced with it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An output on its way to having all phrases."""

    text: str
    links: tuple[WordLink, ...]
    """Of its words, in their order."""
    replaced: tuple[str, ...] = ()
    """For each phrase that was put in, the word that it stands for most of all."""

    def is_better_than(self, text: str) -> bool:
        """Whether an output that has the phrases, too, only added them: it still says what they stand for."""
        return any(_says(text, word) and not _says(self.text, word) for word in self.replaced)


def drafted(draft: Draft, phrases: Sequence[Phrase], likelihood: Likelihood) -> Draft | None:
    """The draft with all phrases in it; None where one has no place, or no room."""
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
    """With the phrase for the word that comes most from its source, and for any of its neighbours that do."""
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
    """With the phrase for all from one word to another."""
    start, end = draft.links[first].target_start, draft.links[last].target_end
    written = phrase.forms[0 if draft.text[:start].strip() else -1]
    further = start + len(written) - end
    moved = (link.moved(0, further) for link in draft.links[last + 1 :])
    text = draft.text[:start] + written + draft.text[end:]
    return Draft(text, (*draft.links[:first], *moved), (*draft.replaced, word))


def _comes_from(link: WordLink, phrase: Phrase) -> bool:
    """Whether a word of the output was written for what the phrase is asked for; a sign never is."""
    overlaps = any(link.source_start < end and start < link.source_end for start, end in phrase.places)
    return overlaps and any(map(str.isalnum, link.target))


def _says(text: str, word: str) -> bool:
    return Phrase(word.lower()).is_in(text.lower())
