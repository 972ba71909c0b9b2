"""Which rows of a corpus are fit to train on, and which are held out to validate and to test.

Cleaning reads the corpus once and gives every line a fate: one byte, in memory. Whatever is read afterwards
(to learn subwords, to encode) is the files once more, with the fates beside them. To find lines that occur
again, 8-byte hashes of every line go to a file without a name in the scratch folder and are compared there
part by part. So a corpus takes 1 byte of memory a line, and some 32 of disk while it is cleaned. Among a
billion lines, the odds that two different ones have one hash are 1 in 40; then a line is lost.
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
from regard.text.files.lines import MEGABYTE, WRONG_ENCODING, Block, Tally
from regard.text.normalisation import comparison_forms


@dataclass(slots=True)
class Places:
    """File and line of every row; rows take memory only where they were made from other files' lines."""

    starts: list[tuple[int, str, int]] = field(default_factory=list)
    """Where each file starts: index of the row in the corpus, the file, the number of the line there."""
    count: int = 0
    """Rows so far."""
    _made_from: list[np.ndarray] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Note the rows of one more block."""
        if not self.starts or self.starts[-1][1] != block.name:
            self.starts.append((self.count, block.name, block.first))
        if block.made_from:
            self._made_from.append(np.array(block.made_from, np.uint32))
        self.count += len(block)

    def __getitem__(self, index: int) -> tuple[str, int]:
        """File and line number of a row, counted from 0."""
        start, name, line = self.starts[bisect(self.starts, index, key=lambda start: start[0]) - 1]
        if not self._made_from:
            return name, line + index - start
        return name, int(self._lines()[index])

    @property
    def n_lines(self) -> int:
        """Lines of the files that there are rows of."""
        groups = self.groups()
        return self.count if groups is None else int(groups[-1])

    def groups(self) -> np.ndarray | None:
        """A number for each row, the same and rising: those of one line share it. None: a line is a row."""
        if not self._made_from:
            return None
        lines = self._lines()
        changes = np.diff(lines, prepend=lines[:1]) != 0
        changes[[start for start, _, _ in self.starts]] = True
        return None if changes.all() else np.cumsum(changes)

    def _lines(self) -> np.ndarray:
        self._made_from = [np.concatenate(self._made_from)]
        return self._made_from[0]


REASONS = {
    Fate.MEGABYTE: MEGABYTE,
    Fate.WRONG_ENCODING: WRONG_ENCODING,
    Fate.EMPTY: "empty",
    Fate.TOO_LONG: "too long",
    Fate.RATIO: "length ratio",
    Fate.DUPLICATE: "duplicate",
    Fate.HELD_OUT: "in validation or test",
}
"""Why lines are dropped, in words. A line counts under the first of these that applies to it."""

_SPOILT = {MEGABYTE: Fate.MEGABYTE, WRONG_ENCODING: Fate.WRONG_ENCODING}
_NOT_DECODED = "\ufffd"
_SLACK = 10


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A corpus, and the fate of every line of it."""

    corpus: Corpus
    fates: Fates = field(repr=False)
    places: Places = field(repr=False)
    repairs: Tally
    """What was repaired, in this corpus and in those that were given to hold out."""
    dropped: Tally
    """What was dropped, by reason."""

    @property
    def n_lines(self) -> int:
        """Lines in the files."""
        return len(self.fates)

    def count(self, fate: Fate) -> int:
        """How many lines have come to this."""
        return int(np.count_nonzero(self.fates == fate))

    def rows(self, fate: Fate = Fate.TRAINING) -> Iterator[Row]:
        """The rows of one fate, in the order of the files, which are read for it.

        Raises:
            CorpusError: the files have changed since they were cleaned, or can no longer be read.
        """
        for block, fates in self._blocks():
            yield from compress(zip(*block.columns, strict=True), (fates == fate).tolist())

    def texts(self, sides: Sequence[int] | None = None) -> Iterator[str]:
        """All texts to train on, or those of some sides: what subwords are learned from."""
        if sides is None:
            return chain.from_iterable(self.rows())
        return (row[side] for row in self.rows() for side in sides)

    def held_out(self) -> tuple[list[Row], list[Row]]:
        """The rows to validate and to test with that were split off; both empty where none were."""
        found: dict[int, list[Row]] = {Fate.VALIDATION: [], Fate.TEST: []}
        missing = self.count(Fate.VALIDATION) + self.count(Fate.TEST)
        for block, fates in self._blocks() if missing else ():
            for i in np.flatnonzero((fates == Fate.VALIDATION) | (fates == Fate.TEST)):
                found[int(fates[i])].append(tuple(column[i] for column in block.columns))
                missing -= 1
            if not missing:
                break
        return found[Fate.VALIDATION], found[Fate.TEST]

    def place(self, index: int) -> tuple[str, int]:
        """File and line number of a line of the corpus, counted from 0."""
        return self.places[index]

    def training_place(self, index: int) -> tuple[str, int]:
        """File and line number of a row to train on, counted from 0 among those."""
        step = 1 << 20
        for first in range(0, self.n_lines, step):
            here = np.flatnonzero(self.fates[first : first + step] == Fate.TRAINING)
            if index < len(here):
                return self.place(first + int(here[index]))
            index -= len(here)
        raise IndexError(f"there is no row {index} to train on")

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
        raise CorpusError(f"{self.corpus.names[0]}: has changed while it was being read")


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
    """Decide what comes of every line of a corpus.

    Args:
        corpus: what to train on.
        rules: what is dropped.
        compared: the sides, counted from 0, whose texts must not be both trained on and held out; all of them
            by default. Labels are not compared.
        split: how much is held out of it; by default nothing is.
        given: validation and test sets that are there already. They stay as they are; what they share with
            the corpus is dropped from it.
        seed: which rows are held out.
        scratch: a folder with room for some 32 bytes a line; by default the system's for temporary files.
        progress: told how many more lines have been read.

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
    """Read every line once: judge it by itself, and note what it is compared by."""
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
    """What can be said of each line by itself; the last to be written is the first that counts."""
    fates = np.full(len(block), Fate.TRAINING, np.uint8)
    fates[np.maximum.reduce(lengths) > rules.max_characters] = Fate.TOO_LONG
    fates[np.minimum.reduce(lengths) == 0] = Fate.EMPTY
    for column in block.columns:
        if _NOT_DECODED in "\n".join(column):
            fates[[_NOT_DECODED in text for text in column]] = Fate.WRONG_ENCODING
    for i, why in block.spoilt.items():
        fates[i] = _SPOILT[why]
    return fates


def _mark_ratio(fates: Fates, prints: Fingerprints, most: float) -> None:
    """Drop pairs whose lengths do not fit each other.

    What is usual is the median of the corpus, which may well be 3, as from Chinese to English. Both lengths
    count some characters more than they are, so that short texts may differ.
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
        raise CorpusError(
            f"{corpus.names[0]}: nothing is left to train on of {counted(len(fates), 'line')}: {why}"
        )


def _count_dropped(cleaned: Cleaned) -> None:
    for fate, words in REASONS.items():
        cleaned.dropped.add_all(words, np.flatnonzero(cleaned.fates == fate), cleaned.place)
