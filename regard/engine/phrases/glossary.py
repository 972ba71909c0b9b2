r"""Glossaries: phrases that a translation must contain for phrases of its source, and their tokens.

An entry is a source phrase and what the translation must contain for it: a phrase, alternatives such as its
inflected forms (`run|runs|running`), or `=`, which copies the source phrase. `\|` and `\=` are the signs
themselves. A file has one entry per line, as TSV or CSV.

In the source, longer phrases match first, and matches do not overlap. In scripts with spaces a phrase matches
whole words, as written or capitalised; in Chinese, Japanese and Korean it matches anywhere. Every match
requires an occurrence in the translation, which may capitalise a phrase whose first word is in lower case.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from regard.engine.phrases.finder import PhraseFinder, begins_with_letter, ends_with_letter, plain
from regard.errors import CorpusError, RequestError
from regard.text.files import display_name
from regard.text.files.lines import read_lines
from regard.text.normalisation import composed
from regard.text.vocabularies.vocabulary import Vocabulary

Spellings = tuple[tuple[int, ...], ...]
Span = tuple[int, int]
COPY = "="
"""What stands for the source phrase itself among the alternatives of an entry."""
MOST_ALTERNATIVES = 20
"""Maximum number of alternatives of an entry; a search follows all of them."""
_SEPARATOR = re.compile(r"(?<!\\)\|")
_ESCAPED = re.compile(r"\\([|=])")
_SIGNS = ".,;:!?)"
_COMMON_WORDS = 64
"""Number of common word beginnings that may follow a phrase."""


@dataclass(frozen=True)
class Phrase:
    """A phrase that an output must contain as often as its source requires it."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Phrases that may stand in its place."""
    may_be_capitalised: bool = False
    places: tuple[Span, ...] = field(default=(), compare=False)
    """Character spans of the source; each of them requires it once."""

    @property
    def count(self) -> int:
        """How often an output must contain it."""
        return max(1, len(self.places))

    @cached_property
    def forms(self) -> list[str]:
        """The phrase and its alternatives as they are written, and capitalised if allowed."""
        forms = []
        for text in (self.text, *self.alternatives):
            forms.append(text)
            if self.may_be_capitalised and text.split()[0].islower():
                forms.append(capitalised(text))
        return list(dict.fromkeys(forms))


def missing(phrases: Sequence[Phrase], output: str) -> Counter[Phrase]:
    """How many occurrences of each phrase an output lacks; without those that it has.

    Phrases are found as whole words, the longest first. An occurrence counts for one phrase only.
    """
    if not phrases:
        return Counter()
    finder = PhraseFinder(plain(form) for phrase in phrases for form in phrase.forms)
    left = Counter(match.phrase for match in finder.matches(output))
    lacking: Counter[Phrase] = Counter()
    for phrase in sorted(phrases, key=lambda phrase: len(phrase.forms)):  # those with less choice come first
        lacking[phrase] = phrase.count
        for form in map(plain, phrase.forms):
            taken = min(lacking[phrase], left[form])
            left[form] -= taken
            lacking[phrase] -= taken
    return +lacking


def absent(phrases: Sequence[Phrase], output: str) -> list[Phrase]:
    """The phrases that do not occur in an output at all."""
    lacking = missing(phrases, output)
    return [phrase for phrase in phrases if lacking[phrase] == phrase.count]


class Glossary:
    """Finds the phrases that the translation of a source must contain."""

    def __init__(
        self, terms: Mapping[str, str] | None = None, keep: Sequence[str | re.Pattern[str]] = ()
    ) -> None:
        targets = {plain(source): _alternatives(source, target) for source, target in (terms or {}).items()}
        # An entry that is written with a capital takes precedence over one that is capitalised here.
        self._targets = {capitalised(source): target for source, target in targets.items()} | targets
        self._sources = PhraseFinder(self._targets)
        keep = [keep] if isinstance(keep, str) else keep
        self._patterns = [each for each in keep if isinstance(each, re.Pattern)]
        self._kept = PhraseFinder(filter(None, (plain(each) for each in keep if isinstance(each, str))))

    def __bool__(self) -> bool:
        return bool(self._sources or self._patterns or self._kept)

    def phrases(self, source: str) -> list[Phrase]:
        """The phrases that the translation of a text must contain, without duplicates."""
        source, found = composed(source), list[Phrase]()
        for pattern in self._patterns:
            source = _without_kept(source, [match.span() for match in pattern.finditer(source)], found)
        source = _without_kept(source, [(start, end) for _, start, end in self._kept.matches(source)], found)
        for phrase, start, end in self._sources.matches(source):
            text, *others = self._targets[phrase]
            may_be_capitalised = phrase not in (text, *others)
            found.append(Phrase(text, tuple(others), may_be_capitalised, ((start, end),)))
        return _once(found)


def read_glossary(path: Path | str) -> dict[str, str]:
    """The entries of a glossary file: TSV, or CSV by its name or if no line has a tab; with quotes as in CSV.

    Raises:
        CorpusError: it cannot be read, or a line is no entry or contradicts another.
    """
    terms: dict[str, str] = {}
    name, lines = display_name(path), _lines(path)
    separator = _separator_of(path, lines)
    for number, columns in _rows(lines, separator, name):
        try:
            source, target = _entry(columns, separator)
            if terms.setdefault(source, target) != target:
                other = f"{source!r} was already {terms[source]!r}; list alternatives on one line"
                raise RequestError(f"{other}: {terms[source]}|{target}", code="bad_glossary")
        except RequestError as error:
            raise CorpusError(f"{name}:{number}: {error}", code=error.code) from None
    return terms


def _lines(path: Path | str) -> list[str]:
    lines: list[str] = []
    for block in read_lines(path):
        for i, reason in block.unusable.items():
            raise CorpusError(f"{block.name}:{block.line(i)}: {reason}", code="bad_glossary")
        lines += block.columns[0]
    return lines


def _separator_of(path: Path | str, lines: list[str]) -> str:
    """What separates the columns of a file: a tab, a comma or, as some programs write, a semicolon."""
    if ".csv" not in Path(path).suffixes and (
        {".tsv", ".tab"} & {*Path(path).suffixes} or any("\t" in line for line in lines)
    ):
        return "\t"
    return max(",;", key=lambda sign: sum(sign in line for line in lines))


def _rows(lines: list[str], separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table that are not blank, each with the number of its first line."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            columns = list(map(plain, next(reader)))
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"{name}:{number}: {error}; put a field with quotation marks in quotes, and double them"
            raise CorpusError(problem, code="bad_glossary") from None
        if any(columns):
            yield number, columns


def _entry(columns: list[str], separator: str) -> tuple[str, str]:
    """The phrase and the target of a row; RequestError if it has none."""
    shown, sign = columns[0][:40] or "PHRASE", {"\t": "<TAB>"}.get(separator, separator)
    usage = f"write {shown}{sign}TRANSLATION, or {shown}{sign}{COPY} to copy the phrase"
    if len(columns) == 1:
        raise RequestError(f"{shown!r} has no translation: {usage}", code="bad_glossary")
    if len(columns) > 2:
        usage += f"; alternatives are separated by |, and a field that contains {sign} is put in quotes"
        raise RequestError(f"the line has {len(columns)} columns: {usage}", code="bad_glossary")
    source, target = columns
    _alternatives(source, target)
    return source, target


def _alternatives(source: str, target: str) -> tuple[str, ...]:
    """The phrases that a target lists for its source; RequestError if one of them is empty."""
    source, target = plain(source), plain(target)
    listed = [
        source if each.strip() == COPY else _ESCAPED.sub(r"\1", each.strip())
        for each in _SEPARATOR.split(target)
    ]
    if not source or not all(listed):
        problem = f"glossary: {source!r} → {target!r}: neither side may be empty, nor one of its alternatives"
        raise RequestError(f"{problem}; {COPY} copies the phrase", code="bad_glossary")
    if len(listed) > MOST_ALTERNATIVES:
        problem = f"glossary: {source!r} has {len(listed)} alternatives; the maximum is {MOST_ALTERNATIVES}"
        raise RequestError(problem, code="bad_glossary")
    return tuple(dict.fromkeys(listed))


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _without_kept(source: str, spans: list[Span], found: list[Phrase]) -> str:
    """The source without what stays as it is, which is added to the phrases that were found."""
    for start, end in spans:
        if kept := source[start:end].strip():
            found.append(Phrase(kept, places=((start, end),)))
    if not spans:
        return source
    rest, at = [], 0
    for start, end in spans:  # the words around a match are not joined
        rest += [source[at:start], "\0" * (end - start)]
        at = end
    return "".join([*rest, source[at:]])


def _once(phrases: list[Phrase]) -> list[Phrase]:
    """Merge equal phrases; the result has all of their places."""
    places: dict[Phrase, list[Span]] = {}
    for each in phrases:
        places.setdefault(each, []).extend(each.places)
    return [replace(each, places=tuple(found)) for each, found in places.items()]


class Speller:
    """Spells phrases in the tokens of one vocabulary."""

    def __init__(self, subwords: Vocabulary, *, without_spaces: bool) -> None:
        """`without_spaces`: whether the target language puts no spaces between words."""
        self._subwords, self._without_spaces = subwords, without_spaces

    def usual(self, phrase: Phrase) -> Spellings:
        """As in running text; a search may still make the phrase part of a longer word."""
        found = list(map(self._apart, phrase.forms))
        found += [
            self._glued(form) for form in phrase.forms if self._without_spaces or not begins_with_letter(form)
        ]
        return tuple(dict.fromkeys(found))

    def separated(self, phrase: Phrase) -> Spellings:
        """With a space before it, and punctuation or a new word after it."""
        found: list[tuple[int, ...]] = []
        for form in phrase.forms:
            spelt = (
                [self._apart(form)] if begins_with_letter(form) else [self._apart(form), self._glued(form)]
            )
            followers = [(each,) for each in self._followers] if ends_with_letter(form) else [()]
            found += [(*ids, *follower) for ids in spelt for follower in followers]
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
