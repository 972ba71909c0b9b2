"""Fingerprints of lines on disk, duplicates, and the choice of rows to hold out for validation and test.

Texts are compared without case, width, spaces and punctuation. A training row is dropped if it shares a text
with a held-out row on the same side: a model that has seen the input with another output has still seen it.

Rows to hold out are chosen by hash: the same seed chooses the same rows, in any order of the files. Rows with
a text that occurs elsewhere are chosen only if no others are left, so that holding out costs little more
training data than the rows themselves; "Thank you." stays in training. Rows that were derived from one line,
such as the turns of a conversation, are held out together: the last turn contains all the others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np

from regard.config.checking import counted
from regard.data.reading import Corpus, Row
from regard.errors import CorpusError, reason
from regard.text.files.lines import Tally
from regard.text.normalisation import comparison_forms

Fates = np.ndarray
"""One `Fate` per line of a corpus, in one byte."""

_ROWS = 1 << 17
_SORTED_AT_ONCE, _MOST_PARTS = 1 << 19, 64


class Fate(IntEnum):
    """The fate of a line: it is trained on, held out, or dropped for the first reason that applies."""

    TRAINING = 0
    VALIDATION = 1
    TEST = 2
    MEGABYTE = 3
    WRONG_ENCODING = 4
    EMPTY = 5
    TOO_LONG = 6
    RATIO = 7
    DUPLICATE = 8
    HELD_OUT = 9
    WRONG_FIELDS = 10
    NOT_AN_OBJECT = 11
    NO_TEXT = 12
    NOT_FINAL = 13


def hashes_of(texts: Sequence[str]) -> np.ndarray:
    """8-byte hashes of texts, the same on every machine."""
    digests = [blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), "<u8")


def among(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which values are in `known`, which is sorted."""
    if not known.size:
        return np.zeros(values.shape, bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, values), known.size - 1)] == values)


class Fingerprints:
    """8-byte numbers for each line, in a temporary file: hash of the row, lengths, hash of each side.

    The row is hashed as it is; a side in the form for comparison.
    """

    WHOLE, LENGTHS, SIDES = 0, 1, 2

    def __init__(self, n_sides: int, scratch: Path | str | None) -> None:
        self.width = self.SIDES + n_sides
        self.scratch = scratch or tempfile.gettempdir()
        try:
            # Closed by the caller; the system deletes the file when it is closed.
            self.file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115
        except OSError as error:
            raise self._refusal(error) from error

    def append(self, rows: np.ndarray) -> None:
        """Add the numbers of lines, one row per line."""
        assert rows.shape[1] == self.width, f"{rows.shape[1]} numbers per line, not {self.width}"
        try:
            self.file.write(rows.tobytes())
        except OSError as error:
            raise self._refusal(error) from error

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices of lines and their numbers, about a hundred thousand at a time."""
        first = 0
        try:
            self.file.seek(0)
            while data := self.file.read(8 * self.width * _ROWS):
                rows = np.frombuffer(data, np.uint64).reshape(-1, self.width)
                yield slice(first, first + len(rows)), rows
                first += len(rows)
        except OSError as error:
            raise self._refusal(error) from error

    def close(self) -> None:
        """Delete the file."""
        self.file.close()

    def _refusal(self, error: OSError) -> CorpusError:
        problem = f"{self.scratch}: cannot hold the temporary file of cleaning: {reason(error)}"
        return CorpusError(problem, code="unwritable_folder")


def mark_duplicates(fates: Fates, prints: Fingerprints, at_once: int = _SORTED_AT_ONCE) -> None:
    """Drop every training line whose row occurred before.

    Hashes are compared part by part: those with the same remainder. Each part takes a pass over the file, so
    there are at most 64; memory is needed for half a million lines, or for one line in 64.
    """
    parts = np.uint64(min(_MOST_PARTS, 1 + len(fates) // at_once))
    for part in range(int(parts)):
        lines, hashes = [], []
        for where, rows in prints.chunks():
            whole = rows[:, prints.WHOLE]
            mine = (fates[where] == Fate.TRAINING) & (whole % parts == part)
            lines.append(np.flatnonzero(mine) + where.start)
            hashes.append(whole[mine])
        line, value = np.concatenate(lines), np.concatenate(hashes)
        order = np.argsort(value, kind="stable")  # stable: the first occurrence stays
        again = value[order][1:] == value[order][:-1]
        fates[line[order][1:][again]] = Fate.DUPLICATE


Known = list[np.ndarray]
"""The sorted hashes of held-out texts, for each compared side."""

IN_TEST = "in the test set"
"""Why a row is left out of a given validation set: it shares a text with the given test set."""

_MOST = 2000
_FEWEST = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutSizes:
    """How many rows to hold out; None is one in `one_in`, or in ten of up to 2,000 rows; at most 2,000."""

    validation: int | None = None
    test: int | None = None
    one_in: int = 50

    def sizes(self, n_rows: int) -> tuple[int, int]:
        """Numbers of rows for validation and for test, out of `n_rows`.

        Raises:
            CorpusError: nothing would be left to train on.
        """
        usual = min(_MOST, max(1, n_rows // self.one_in, min(_FEWEST, n_rows // 10)))
        validation, test = (usual if n is None else n for n in (self.validation, self.test))
        if validation + test >= n_rows:
            left = f"{counted(n_rows, 'row is', 'rows are')} left after cleaning, too few to hold out"
            sizes = f"{validation:,} for validation" + (f" and {test:,} for test" if test else "")
            sets = "--valid" + (" and --test" if test else "")
            raise CorpusError(f"{left} {sizes}; give more data, or {sets}", code="too_little_data")
        return validation, test


def known_texts(corpora: Sequence[Corpus], compared: Sequence[int], repairs: Tally) -> Known:
    """The hashes of the texts of given validation and test sets."""
    known: list[list[np.ndarray]] = [[] for _ in compared]
    for corpus in corpora:
        for block in corpus.blocks(repairs):
            for hashes, side in zip(known, compared, strict=True):
                texts = [text for text in comparison_forms(block.columns[side]) if text]
                hashes.append(hashes_of(texts))
    return [np.unique(np.concatenate(hashes)) if hashes else np.zeros(0, np.uint64) for hashes in known]


def rows_apart(corpus: Corpus, known: Known, compared: Sequence[int], shared: Tally) -> list[Row]:
    """The rows of a given set that share no text with the known ones; others are counted."""
    apart: list[Row] = []
    for block in corpus.blocks():
        is_known = _any_known([hashes_of(comparison_forms(block.columns[side])) for side in compared], known)
        for i, row in enumerate(zip(*block.columns, strict=True)):
            if is_known[i]:
                shared.add(IN_TEST, block.name, block.line(i))
            elif i in block.unusable:
                shared.add(block.unusable[i], block.name, block.line(i))
            else:
                apart.append(row)
    return apart


def mark_known(fates: Fates, prints: Fingerprints, compared: Sequence[int], known: Known) -> None:
    """Drop every training line that shares a text with the held-out rows."""
    if not any(hashes.size for hashes in known):
        return
    for where, rows in prints.chunks():
        here, sides = fates[where], [rows[:, prints.SIDES + side] for side in compared]
        here[(here == Fate.TRAINING) & _any_known(sides, known)] = Fate.HELD_OUT


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """Lines that are held out together: one row, or the rows that were derived from one line."""

    lines: np.ndarray
    hashes: np.ndarray
    """The hashes of the compared sides of each line."""
    aside: np.ndarray
    """Lines whose texts occur elsewhere: dropped, so that the other occurrences stay."""


def n_units(fates: Fates, groups: np.ndarray | None) -> int:
    """Number of training rows to choose from; the rows of a group count as one."""
    return int(np.count_nonzero(_representatives(fates, groups)))


def draw(
    fates: Fates,
    prints: Fingerprints,
    compared: Sequence[int],
    sizes: tuple[int, int],
    seed: int,
    groups: np.ndarray | None = None,
) -> Known:
    """Mark `sizes` lines, or groups of lines, as validation and as test; returns the hashes of their texts.

    Raises:
        CorpusError: no two rows differ in all texts, so that the sets would overlap.
    """
    sizes_of = {Fate.TEST: sizes[1], Fate.VALIDATION: sizes[0]}
    texts: dict[Fate, list[set[int]]] = {fate: [set() for _ in compared] for fate in sizes_of}
    left = dict(sizes_of)
    for unit in _units(fates, prints, compared, groups, seed, most=64 + 4 * sum(sizes)):
        sides = [{*column.tolist()} for column in unit.hashes.T]
        for fate, other in ((Fate.TEST, Fate.VALIDATION), (Fate.VALIDATION, Fate.TEST)):
            if left[fate] and not any(mine & seen for mine, seen in zip(sides, texts[other], strict=True)):
                fates[unit.lines], fates[unit.aside] = fate, Fate.HELD_OUT
                left[fate] -= 1
                for mine, seen in zip(sides, texts[fate], strict=True):
                    seen |= mine
                break
    if any(n and left[fate] == n for fate, n in sizes_of.items()):
        problem = (
            "validation and test sets cannot be held out: all rows share their texts; give --valid and --test"
        )
        raise CorpusError(problem, code="too_little_data")
    together = zip(*texts.values(), strict=True)
    return [np.array(sorted(set(chain(*sides))), np.uint64) for sides in together]


def _units(
    fates: Fates,
    prints: Fingerprints,
    compared: Sequence[int],
    groups: np.ndarray | None,
    seed: int,
    most: int,
) -> list[Unit]:
    """Candidates for holding out, in order: those with texts of their own come first."""
    drawn = _candidates(prints, compared, _representatives(fates, groups), seed, most)
    lines = drawn if groups is None else np.concatenate([_group(fates, groups, line) for line in drawn])
    hashes = _hashes(prints, compared, lines)
    rare = _occurrences(fates, prints, compared, hashes) <= 1
    ends = np.arange(1, len(lines)) if groups is None else 1 + np.flatnonzero(np.diff(groups[lines]))
    parts = [np.split(array, ends) for array in (lines, hashes, rare)]
    units = []
    for line, own, is_rare in sorted(zip(*parts, strict=True), key=lambda part: not part[2].any()):
        kept = is_rare if is_rare.any() else ~is_rare
        units.append(Unit(line[kept], own[kept], line[~kept]))
    return units


def _representatives(fates: Fates, groups: np.ndarray | None) -> np.ndarray:
    """Which training lines represent their group: the last one, which has the whole conversation."""
    chosen: np.ndarray = fates == Fate.TRAINING
    if groups is not None:
        lines = np.flatnonzero(chosen)
        chosen[lines[:-1][groups[lines[1:]] == groups[lines[:-1]]]] = False
    return chosen


def _group(fates: Fates, groups: np.ndarray, line: int) -> np.ndarray:
    """The training lines in the group of a line."""
    first, stop = np.searchsorted(groups, (groups[line], groups[line] + 1))
    return first + np.flatnonzero(fates[first:stop] == Fate.TRAINING)


def _any_known(sides: Sequence[np.ndarray], known: Known) -> np.ndarray:
    """Which rows, given the hashes of their sides, have a known side."""
    return np.logical_or.reduce([among(side, hashes) for side, hashes in zip(sides, known, strict=True)])


def _candidates(
    prints: Fingerprints, compared: Sequence[int], chosen: np.ndarray, seed: int, most: int
) -> np.ndarray:
    """The first of the chosen lines in an order by hash."""
    columns = [prints.SIDES + side for side in compared]
    lines, ranks = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    for where, rows in prints.chunks():
        mine = np.flatnonzero(chosen[where])
        lines = np.concatenate([lines, mine + where.start])
        ranks = np.concatenate([ranks, _ranks(rows[mine][:, columns], seed)])
        best = np.argsort(ranks, kind="stable")[:most]
        lines, ranks = lines[best], ranks[best]
    return lines


def _hashes(prints: Fingerprints, compared: Sequence[int], lines: np.ndarray) -> np.ndarray:
    """The hashes of the compared sides of lines."""
    columns = [prints.SIDES + side for side in compared]
    hashes = np.zeros((len(lines), len(columns)), np.uint64)
    for where, rows in prints.chunks():
        here = (lines >= where.start) & (lines < where.stop)
        hashes[here] = rows[lines[here] - where.start][:, columns]
    return hashes


def _ranks(hashes: np.ndarray, seed: int) -> np.ndarray:
    """The rank of every row of hashes in a random order."""
    mixed = np.full(len(hashes), seed, np.uint64)
    for column in hashes.T:
        mixed = _stirred(mixed ^ column)
    return mixed


def _stirred(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every input bit affects every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _occurrences(
    fates: Fates, prints: Fingerprints, compared: Sequence[int], hashes: np.ndarray
) -> np.ndarray:
    """The number of training lines with the most frequent side of each row."""
    most = np.zeros(len(hashes), np.int64)
    for column, side in zip(hashes.T, compared, strict=True):
        texts, place = np.unique(column, return_inverse=True)
        counts = np.zeros(texts.size, np.int64)
        for where, rows in prints.chunks():
            values = rows[fates[where] == Fate.TRAINING, prints.SIDES + side]
            counts += np.bincount(np.searchsorted(texts, values[among(values, texts)]), minlength=texts.size)
        most = np.maximum(most, counts[place])
    return most
