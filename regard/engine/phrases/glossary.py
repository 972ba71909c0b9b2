r"""Glossaries: phrases that a translation must contain for a phrase of its source, and their tokens.

A file has two columns, separated by a tab: a source phrase, and what the translation must contain for it. A
line without a tab is a phrase that stays as it is.

In the source, longer phrases match first, and matches do not overlap. In scripts with spaces a phrase matches
whole words, as written or capitalised; in Chinese, Japanese and Korean it matches anywhere. The translation
may capitalise a phrase whose first word is in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from regard.engine.document.sentences import CJK
from regard.errors import CorpusError, RequestError
from regard.text.files.lines import read_lines
from regard.text.normalisation import composed
from regard.text.vocabularies.vocabulary import Vocabulary

Spellings = tuple[tuple[int, ...], ...]
_LETTER = rf"[^\W{CJK}]"
"""A letter or digit of a script with spaces."""
_SIGNS = ".,;:!?)"
_COMMON_WORDS = 64
"""Number of common word beginnings that may follow a phrase."""


@dataclass(frozen=True)
class Phrase:
    """A phrase that an output must contain."""

    text: str
    may_be_capitalised: bool = False
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Character spans of the source that require it."""

    @property
    def forms(self) -> list[str]:
        """The phrase as it is written, and capitalised if allowed."""
        capital = capitalised(self.text)
        wanted = self.may_be_capitalised and self.text.split()[0].islower() and capital != self.text
        return [self.text, capital] if wanted else [self.text]

    def is_in(self, output: str) -> bool:
        """Whether an output contains it, as whole words."""
        return self._pattern.search(output) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_as_words, self.forms)))


class Glossary:
    """Finds the phrases that the translation of a source must contain."""

    def __init__(
        self, terms: Mapping[str, str] | None = None, keep: Sequence[str | re.Pattern[str]] = ()
    ) -> None:
        targets = {_plain(source): _plain(target) for source, target in (terms or {}).items()}
        for source, target in targets.items():
            if not source or not target:
                raise RequestError(
                    f"glossary: {source!r} → {target!r}: neither side may be empty", code="bad_glossary"
                )
        self._targets = (
            targets | {capitalised(source): target for source, target in targets.items()} | targets
        )
        self._sources = _alternatives(list(self._targets))
        keep = [keep] if isinstance(keep, str) else keep
        self._patterns = [each for each in keep if isinstance(each, re.Pattern)]
        if texts := [composed(each) for each in keep if isinstance(each, str) and each.strip()]:
            self._patterns.append(_alternatives(texts))

    def __bool__(self) -> bool:
        return bool(self._targets or self._patterns)

    def phrases(self, source: str) -> list[Phrase]:
        """The phrases that the translation of a text must contain, without duplicates."""
        source = composed(source)
        found: list[Phrase] = []
        for pattern in self._patterns:
            matches = [match for match in pattern.finditer(source) if match[0].strip()]
            found += [Phrase(match[0].strip(), places=(match.span(),)) for match in matches]
            # Nothing inside a match is matched again, and the words around it are not joined.
            source = pattern.sub(lambda match: "\0" * len(match[0]), source)
        if self._targets:
            for match in self._sources.finditer(source):
                target = self._targets[plain := _plain(match[0])]
                found.append(Phrase(target, may_be_capitalised=target != plain, places=(match.span(),)))
        return _once(found)


def read_glossary(path: Path | str) -> dict[str, str]:
    """The entries of a glossary file.

    Raises:
        CorpusError: it cannot be read, or a line has more than two columns or contradicts another.
    """
    terms: dict[str, str] = {}
    for block in read_lines(path):
        for number, line in enumerate(block.columns[0], start=block.first):
            columns = list(map(_plain, line.split("\t")))
            if not any(columns):
                continue
            source, target = columns[0], columns[-1]
            if len(columns) > 2 or not source or not target:
                raise CorpusError(
                    f"{block.name}:{number}: expected a phrase, a tab and its translation",
                    code="bad_glossary",
                )
            if terms.setdefault(source, target) != target:
                raise CorpusError(
                    f"{block.name}:{number}: {source!r} was already {terms[source]!r}", code="bad_glossary"
                )
    return terms


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def begins_with_letter(text: str) -> bool:
    """Whether a text begins with a letter or digit of a script with spaces."""
    return re.match(_LETTER, text.strip()) is not None


def ends_with_letter(text: str) -> bool:
    """Whether a text ends with a letter or digit of a script with spaces."""
    return re.match(_LETTER, text.strip()[-1:]) is not None


def _once(phrases: list[Phrase]) -> list[Phrase]:
    """Merge equal phrases; the result has all of their places."""
    places: dict[Phrase, tuple[tuple[int, int], ...]] = {}
    for each in phrases:
        places[each] = (*places.get(each, ()), *each.places)
    return [replace(each, places=found) for each, found in places.items()]


def _plain(text: str) -> str:
    """The text in NFC, with single spaces."""
    return " ".join(composed(text).split())


def _alternatives(texts: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_as_words, sorted(texts, key=len, reverse=True))))


def _as_words(text: str) -> str:
    """A pattern that matches a text as whole words."""
    spelt = r"\s+".join(map(re.escape, text.split()))
    before = f"(?<!{_LETTER})" if begins_with_letter(text) else ""
    after = f"(?!{_LETTER})" if ends_with_letter(text) else ""
    return before + spelt + after


class Speller:
    """Spells phrases in the tokens of one vocabulary."""

    def __init__(self, subwords: Vocabulary, *, without_spaces: bool) -> None:
        """`without_spaces`: whether the target language puts no spaces between words."""
        self._subwords, self._without_spaces = subwords, without_spaces

    def usual(self, phrase: Phrase) -> Spellings:
        """As in running text; a search may still make the phrase part of a longer word."""
        found = list(map(self._apart, phrase.forms))
        if self._without_spaces or not begins_with_letter(phrase.text):
            found += map(self._glued, phrase.forms)
        return tuple(dict.fromkeys(found))

    def separated(self, phrase: Phrase) -> Spellings:
        """With a space before it, and punctuation or a new word after it."""
        found = list(map(self._apart, phrase.forms))
        if not begins_with_letter(phrase.text):
            found += map(self._glued, phrase.forms)
        if ends_with_letter(phrase.text):
            found = [(*ids, follower) for ids in found for follower in self._followers]
        return tuple(dict.fromkeys(found))

    @cached_property
    def _followers(self) -> list[int]:
        """Punctuation, and beginnings of words. Cached: it reads the whole vocabulary."""
        pieces = enumerate(self._subwords.pieces(range(self._subwords.vocab_size)))  # the most common first
        words = (i for i, piece in pieces if piece[0] == "▁" and piece.strip("▁"))
        signs = [ids[0] for sign in _SIGNS if len(ids := self._glued(sign)) == 1]
        return [*signs, *islice(words, _COMMON_WORDS)]

    def _apart(self, text: str) -> tuple[int, ...]:
        """The tokens of a text after a space."""
        return tuple(self._subwords.encode_one(text).tolist())

    def _glued(self, text: str) -> tuple[int, ...]:
        """The tokens of a text right after another character."""
        # No piece contains a line break, so what follows one is tokenised separately, without a space.
        before = len(self._subwords.encode_one("\n"))
        return tuple(self._subwords.encode_one("\n" + text).tolist()[before:])
