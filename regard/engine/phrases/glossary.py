r"""Phrases that a translation must contain, because something stands in its source.

A file has two columns, parted by a tab: a phrase of the source, and what the translation must contain for it.
A line without a tab is a phrase that stays as it is.

In the source, the longest phrase is found first, and none inside another. In scripts with spaces a phrase is
found as whole words, as it is written or with a capital at its beginning; in Chinese, Japanese and Korean,
anywhere. The translation may begin a phrase with a capital where its first word is all in small letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from regard.engine.document.sentences import CJK
from regard.errors import CorpusError, RequestError
from regard.text.files.lines import read_lines
from regard.text.normalisation import composed

_LETTER = rf"[^\W{CJK}]"
"""A letter or digit of a script with spaces."""


@dataclass(frozen=True)
class Phrase:
    """A phrase that an output must contain."""

    text: str
    may_be_capitalised: bool = False
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Where in the source that stands which it is asked for: from which character up to which."""

    @property
    def forms(self) -> list[str]:
        """The phrase as it is written, and with a capital, where that may be."""
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
    """Finds in a source what its translation must contain."""

    def __init__(
        self, terms: Mapping[str, str] | None = None, keep: Sequence[str | re.Pattern[str]] = ()
    ) -> None:
        targets = {_plain(source): _plain(target) for source, target in (terms or {}).items()}
        for source, target in targets.items():
            if not source or not target:
                raise RequestError(f"glossary: {source!r} → {target!r}: neither side may be empty")
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
        """What the translation of a text must contain; nothing twice."""
        source = composed(source)
        found: list[Phrase] = []
        for pattern in self._patterns:
            matches = [match for match in pattern.finditer(source) if match[0].strip()]
            found += [Phrase(match[0].strip(), places=(match.span(),)) for match in matches]
            # The words beside it are kept apart, and nothing inside is found again.
            source = pattern.sub(lambda match: "\0" * len(match[0]), source)
        if self._targets:
            for match in self._sources.finditer(source):
                target = self._targets[plain := _plain(match[0])]
                found.append(Phrase(target, may_be_capitalised=target != plain, places=(match.span(),)))
        return _once(found)


def read_glossary(path: Path | str) -> dict[str, str]:
    """The phrases of a file.

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
                raise CorpusError(f"{block.name}:{number}: expected a phrase, a tab and its translation")
            if terms.setdefault(source, target) != target:
                raise CorpusError(f"{block.name}:{number}: {source!r} was already {terms[source]!r}")
    return terms


def capitalised(text: str) -> str:
    """With a capital at the beginning."""
    return text[:1].upper() + text[1:]


def begins_with_letter(text: str) -> bool:
    """Whether a text begins with a letter or digit of a script with spaces."""
    return re.match(_LETTER, text.strip()) is not None


def ends_with_letter(text: str) -> bool:
    """Whether a text ends with one."""
    return re.match(_LETTER, text.strip()[-1:]) is not None


def _once(phrases: list[Phrase]) -> list[Phrase]:
    """Each phrase once, with all of its places."""
    places: dict[Phrase, tuple[tuple[int, int], ...]] = {}
    for each in phrases:
        places[each] = (*places.get(each, ()), *each.places)
    return [replace(each, places=found) for each, found in places.items()]


def _plain(text: str) -> str:
    """Composed, and with single spaces."""
    return " ".join(composed(text).split())


def _alternatives(texts: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_as_words, sorted(texts, key=len, reverse=True))))


def _as_words(text: str) -> str:
    """A pattern for a text that is not a part of a longer word."""
    spelt = r"\s+".join(map(re.escape, text.split()))
    before = f"(?<!{_LETTER})" if begins_with_letter(text) else ""
    after = f"(?!{_LETTER})" if ends_with_letter(text) else ""
    return before + spelt + after
