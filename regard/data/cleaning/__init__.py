"""Cleaning a corpus: which rows are trained on, dropped, or held out for validation and test.

Cleaning reads the corpus once and gives every line a fate: one byte, in memory. Later passes (to learn
subwords, to encode) read the files again, with the fates beside them. To find duplicates, 8-byte hashes of
every line are written to a temporary file in the scratch folder and compared there part by part. So a corpus
needs 1 byte of memory per line, and about 32 bytes of disk while it is cleaned. Among a billion lines, the
probability that two different ones have the same hash is 1 in 40; one of them would be dropped.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from math import log
from pathlib import Path

import numpy as np

from regard.config import DataConfig
from regard.config.checking import counted
from regard.data.cleaning.holding_out import (
    Fate,
    Fates,
    Fingerprints,
    HeldOutSizes,
    draw,
    hashes_of,
    known_texts,
    mark_duplicates,
    mark_known,
    n_units,
)
from regard.data.reading import Corpus, Row
from regard.errors import CorpusError
from regard.text.files.lines import (
    MEGABYTE,
    NO_TEXT,
    NOT_AN_OBJECT,
    NOT_FINAL,
    WRONG_ENCODING,
    WRONG_FIELDS,
    Block,
    Tally,
)
from regard.text.normalisation import comparison_forms


@dataclass(slots=True)
class Places:
    """File and line of every row; takes memory per row only if rows are not the lines of their files."""

    starts: list[tuple[int, str, int]] = field(default_factory=list)
    """The start of each file: index of its first row in the corpus, file name, line number."""
    count: int = 0
    """Number of rows."""
    derived: bool = False
    """Whether rows with the same line number belong together."""
    _lines: list[np.ndarray] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Add the rows of a block."""
        if block.lines and not self._lines and self.count:
            self._lines = [self._consecutive()]
        if not self.starts or self.starts[-1][1] != block.name:
            self.starts.append((self.count, block.name, block.first))
        if block.lines or self._lines:
            lines = block.lines or range(block.first, block.first + len(block))
            self._lines.append(np.array(lines, np.uint32))
        self.derived = self.derived or block.derived
        self.count += len(block)

    def __getitem__(self, index: int) -> tuple[str, int]:
        """File and line number of a row, counted from 0."""
        start, name, line = self.starts[bisect(self.starts, index, key=lambda start: start[0]) - 1]
        if not self._lines:
            return name, line + index - start
        return name, int(self._joined()[index])

    @property
    def n_lines(self) -> int:
        """Number of lines that the rows come from."""
        groups = self.groups()
        return self.count if groups is None else int(groups[-1])

    def groups(self) -> np.ndarray | None:
        """Ascending numbers, one per row, equal for rows of the same line; None if every line is one row."""
        if not self.derived:
            return None
        lines = self._joined()
        changes = np.diff(lines, prepend=lines[:1]) != 0
        changes[[start for start, _, _ in self.starts]] = True
        return None if changes.all() else np.cumsum(changes)

    def _consecutive(self) -> np.ndarray:
        """The lines of all rows so far, which are the consecutive lines of their files."""
        lines = np.arange(self.count, dtype=np.uint32)
        ends = [start for start, _, _ in self.starts[1:]] + [self.count]
        for (start, _, line), end in zip(self.starts, ends, strict=True):
            lines[start:end] = np.arange(line, line + end - start)
        return lines

    def _joined(self) -> np.ndarray:
        self._lines = [np.concatenate(self._lines)]
        return self._lines[0]


REASONS = {
    Fate.MEGABYTE: MEGABYTE,
    Fate.WRONG_ENCODING: WRONG_ENCODING,
    Fate.WRONG_FIELDS: WRONG_FIELDS,
    Fate.NOT_AN_OBJECT: NOT_AN_OBJECT,
    Fate.NO_TEXT: NO_TEXT,
    Fate.NOT_FINAL: NOT_FINAL,
    Fate.EMPTY: "empty",
    Fate.TOO_LONG: "too long",
    Fate.RATIO: "length ratio",
    Fate.DUPLICATE: "duplicate",
    Fate.HELD_OUT: "in validation or test",
}
"""The reasons for dropping a line; a line counts under the first one that applies."""

_UNUSABLE = {reason: fate for fate, reason in REASONS.items()}
_NOT_DECODED = "\ufffd"
_SLACK = 10


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A corpus, and the fate of every line."""

    corpus: Corpus
    fates: Fates = field(repr=False)
    places: Places = field(repr=False)
    repairs: Tally
    """Repairs in this corpus and in the given validation and test sets."""
    dropped: Tally
    """Dropped lines, by reason."""

    @property
    def n_lines(self) -> int:
        """Lines in the files."""
        return len(self.fates)

    def count(self, fate: Fate) -> int:
        """Number of lines with this fate."""
        return int(np.count_nonzero(self.fates == fate))

    def rows(self, fate: Fate = Fate.TRAINING) -> Iterator[Row]:
        """The rows with this fate, in order; reads the files.

        Raises:
            CorpusError: the files have changed since they were cleaned, or can no longer be read.
        """
        for block, fates in self._blocks():
            yield from compress(zip(*block.columns, strict=True), (fates == fate).tolist())

    def texts(self, sides: Sequence[int] | None = None) -> Iterator[str]:
        """All training texts, of all sides or of these: to learn subwords from."""
        if sides is None:
            return chain.from_iterable(self.rows())
        return (row[side] for row in self.rows() for side in sides)

    def held_out(self) -> tuple[list[Row], list[Row]]:
        """The rows held out for validation and for test."""
        rows: dict[int, list[Row]] = {Fate.VALIDATION: [], Fate.TEST: []}
        missing = self.count(Fate.VALIDATION) + self.count(Fate.TEST)
        for block, fates in self._blocks() if missing else ():
            for i in np.flatnonzero((fates == Fate.VALIDATION) | (fates == Fate.TEST)):
                rows[int(fates[i])].append(tuple(column[i] for column in block.columns))
                missing -= 1
            if not missing:
                break
        return rows[Fate.VALIDATION], rows[Fate.TEST]

    def place(self, index: int) -> tuple[str, int]:
        """File and line number of a line of the corpus, counted from 0."""
        return self.places[index]

    def training_place(self, index: int) -> tuple[str, int]:
        """File and line number of a training row, counted from 0 among these."""
        step = 1 << 20
        for first in range(0, self.n_lines, step):
            here = np.flatnonzero(self.fates[first : first + step] == Fate.TRAINING)
            if index < len(here):
                return self.place(first + int(here[index]))
            index -= len(here)
        raise IndexError(f"there is no training row {index}")

    def _blocks(self) -> Iterator[tuple[Block, Fates]]:
        first = 0
        for block in self.corpus.blocks():
            fates = self.fates[first : first + len(block)]
            if len(fates) < len(block):
                break
            yield block, fates
            first += len(block)
        else:
            if first == self.n_lines:
                return
        raise CorpusError(f"{self.corpus.names[0]}: has changed while it was read", code="data_changed")


def clean(
    corpus: Corpus,
    rules: DataConfig | None = None,
    *,
    compared: Sequence[int] | None = None,
    split: HeldOutSizes | None = None,
    given: Sequence[Corpus] = (),
    seed: int = 1,
    scratch: Path | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Cleaned:
    """Decide the fate of every line of a corpus.

    Args:
        corpus: the training data.
        rules: what to drop.
        compared: the sides, counted from 0, whose texts must not be both trained on and held out; by default
            all. Labels are not compared.
        split: how many rows to hold out; by default none.
        given: existing validation and test sets. They are not changed; rows of the corpus that share a text
            with them are dropped.
        seed: which rows are held out.
        scratch: a folder with room for 32 bytes per line; by default the system's for temporary files.
        progress: called with the number of lines just read.

    Raises:
        CorpusError: the files cannot be used, nothing is left to train on, or the scratch folder is full.
    """
    rules, repairs = rules or DataConfig(), Tally()
    compared = range(corpus.n_sides) if compared is None else compared
    known = known_texts(given, compared, repairs)
    prints = Fingerprints(corpus.n_sides, scratch)
    try:
        fates, places = _survey(corpus, rules, prints, repairs, progress)
        if rules.max_ratio is not None and corpus.n_sides == 2:
            _mark_ratio(fates, prints, rules.max_ratio)
        if rules.drop_duplicates:
            mark_duplicates(fates, prints)
        mark_known(fates, prints, compared, known)
        if split is not None:
            _refuse_nothing(fates, corpus)
            groups = places.groups()
            sizes = split.sizes(n_units(fates, groups))
            mark_known(fates, prints, compared, draw(fates, prints, compared, sizes, seed, groups))
    finally:
        prints.close()
    _refuse_nothing(fates, corpus)
    cleaned = Cleaned(corpus, fates, places, repairs, Tally())
    _count_dropped(cleaned)
    return cleaned


def _survey(
    corpus: Corpus,
    rules: DataConfig,
    prints: Fingerprints,
    repairs: Tally,
    progress: Callable[[int], None] | None,
) -> tuple[Fates, Places]:
    """Read every line once: judge it by itself, and store its fingerprints."""
    fates: list[np.ndarray] = []
    places = Places()
    for block in corpus.blocks(repairs):
        places.add(block)
        lengths = [np.fromiter(map(len, column), np.uint64, len(block)) for column in block.columns]
        fates.append(_judged(block, lengths, rules))
        whole = hashes_of(["\n".join(row) for row in zip(*block.columns, strict=True)])
        sides = [hashes_of(comparison_forms(column)) for column in block.columns]
        prints.append(np.stack([whole, lengths[0] << np.uint64(32) | lengths[-1], *sides], axis=1))
        if progress is not None:
            progress(len(block))
    return np.concatenate(fates), places


def _judged(block: Block, lengths: list[np.ndarray], rules: DataConfig) -> Fates:
    """The fate of each line by itself; the last assignment is the first reason."""
    fates = np.full(len(block), Fate.TRAINING, np.uint8)
    fates[np.maximum.reduce(lengths) > rules.max_characters] = Fate.TOO_LONG
    fates[np.minimum.reduce(lengths) == 0] = Fate.EMPTY
    for column in block.columns:
        if _NOT_DECODED in "\n".join(column):
            fates[[_NOT_DECODED in text for text in column]] = Fate.WRONG_ENCODING
    for i, why in block.unusable.items():
        fates[i] = _UNUSABLE[why]
    return fates


def _mark_ratio(fates: Fates, prints: Fingerprints, most: float) -> None:
    """Drop pairs with an unusual ratio of lengths.

    The usual ratio is the median of the corpus, which can be 3, as from Chinese to English. A constant is
    added to both lengths, so that short texts may differ more.
    """
    edges = np.linspace(-8, 8, 3201)
    counts = np.zeros(edges.size - 1, np.int64)
    for where, rows in prints.chunks():
        ratios = _log_ratios(rows, prints)[fates[where] == Fate.TRAINING]
        counts += np.histogram(ratios.clip(-8, 8), edges)[0]
    usual = edges[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]
    for where, rows in prints.chunks():
        here = fates[where]
        far = np.abs(_log_ratios(rows, prints) - usual) > log(most)
        here[far & (here == Fate.TRAINING)] = Fate.RATIO


def _log_ratios(rows: np.ndarray, prints: Fingerprints) -> np.ndarray:
    lengths = rows[:, prints.LENGTHS]
    inputs, outputs = lengths >> np.uint64(32), lengths & np.uint64(0xFFFFFFFF)
    return np.asarray(np.log((outputs + np.float64(_SLACK)) / (inputs + np.float64(_SLACK))))


def _refuse_nothing(fates: Fates, corpus: Corpus) -> None:
    if not np.any(fates == Fate.TRAINING):
        counts = {words: int(np.count_nonzero(fates == fate)) for fate, words in REASONS.items()}
        why = ", ".join(f"{words} {count:,}" for words, count in counts.items() if count)
        problem = f"{corpus.names[0]}: nothing is left to train on of {counted(len(fates), 'line')}: {why}"
        raise CorpusError(problem, code="no_examples")


def _count_dropped(cleaned: Cleaned) -> None:
    for fate, words in REASONS.items():
        cleaned.dropped.add_all(words, np.flatnonzero(cleaned.fates == fate), cleaned.place)
