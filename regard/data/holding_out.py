"""Which rows are held out to validate and to test, so that nothing of them is trained on.

Texts are compared without case, width, spaces and punctuation. A row for training is dropped when one of its
sides is a side of a held-out row: a model that saw the input with another output has seen it all the same.

Rows to hold out are drawn by hash: the same seed draws the same rows, and in whatever order the files have
them. Rows with a side that occurs elsewhere are drawn only when no others are left, so that holding out costs
training little more than the rows themselves; "Thank you." stays in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from regard.data.corpus import Corpus, Row
from regard.data.fingerprints import Fate, Fates, Fingerprints, among, hashes_of
from regard.errors import CorpusError
from regard.text.normalisation import comparison_forms
from regard.text.tally import Tally

Known = list[np.ndarray]
"""The sorted hashes of held-out texts, for each side that is compared."""

IN_TEST = "in the test set"
"""Why a row leaves a validation set: both sets were given, and share a text."""

_MOST = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """How many rows are held out; None takes one row in `one_in`, at most 2,000; 0 takes none."""

    validation: int | None = None
    test: int | None = None
    one_in: int = 50

    def sizes(self, n_rows: int) -> tuple[int, int]:
        """Rows for validation and for the test, of so many that are fit for it.

        Raises:
            CorpusError: nothing would be left to train on.
        """
        usual = min(_MOST, max(1, n_rows // self.one_in))
        validation, test = (usual if n is None else n for n in (self.validation, self.test))
        if validation + test >= n_rows:
            told = "1 row is" if n_rows == 1 else f"{n_rows:,} rows are"
            wanted = f"{validation:,} to validate" + (f" and {test:,} to test" if test else "")
            sets = "--valid" + (" and --test" if test else "")
            few = "left after cleaning, too few to hold out"
            raise CorpusError(f"{told} {few} {wanted}; give more, or {sets}")
        return validation, test


def known_texts(corpora: Sequence[Corpus], compared: Sequence[int], repairs: Tally) -> Known:
    """The texts of validation and test sets that are given, in the form in which texts are compared."""
    found: list[list[np.ndarray]] = [[] for _ in compared]
    for corpus in corpora:
        for block in corpus.blocks(repairs):
            for hashes, side in zip(found, compared, strict=True):
                texts = [text for text in comparison_forms(block.columns[side]) if text]
                hashes.append(hashes_of(texts))
    return [np.unique(np.concatenate(hashes)) if hashes else np.zeros(0, np.uint64) for hashes in found]


def rows_apart(corpus: Corpus, known: Known, compared: Sequence[int], shared: Tally) -> list[Row]:
    """The rows of a given set that have no side in common with what is known; the others are counted."""
    apart: list[Row] = []
    for block in corpus.blocks():
        found = _any_known([hashes_of(comparison_forms(block.columns[side])) for side in compared], known)
        for i, row in enumerate(zip(*block.columns, strict=True)):
            if found[i]:
                shared.add(IN_TEST, block.name, block.first + i)
            elif i not in block.spoilt:
                apart.append(row)
    return apart


def mark_known(fates: Fates, prints: Fingerprints, compared: Sequence[int], known: Known) -> None:
    """Drop every line for training that has a side in common with what is held out."""
    if not any(hashes.size for hashes in known):
        return
    for where, rows in prints.chunks():
        here, sides = fates[where], [rows[:, prints.SIDES + side] for side in compared]
        here[(here == Fate.TRAINING) & _any_known(sides, known)] = Fate.HELD_OUT


def draw(
    fates: Fates, prints: Fingerprints, compared: Sequence[int], sizes: tuple[int, int], seed: int
) -> Known:
    """Mark so many lines as validation and as test, and return their texts.

    Raises:
        CorpusError: there are none whose texts are not in the other set as well.
    """
    wanted = {Fate.TEST: sizes[1], Fate.VALIDATION: sizes[0]}
    lines, hashes = _candidates(fates, prints, compared, seed, most=64 + 4 * sum(sizes))
    rarest_first = np.argsort(_occurrences(fates, prints, compared, hashes) > 1, kind="stable")
    texts: dict[Fate, list[set[int]]] = {fate: [set() for _ in compared] for fate in wanted}
    left = dict(wanted)
    for i in rarest_first:
        row = [int(value) for value in hashes[i]]
        for fate, other in ((Fate.TEST, Fate.VALIDATION), (Fate.VALIDATION, Fate.TEST)):
            if left[fate] and not any(v in seen for v, seen in zip(row, texts[other], strict=True)):
                fates[lines[i]] = fate
                left[fate] -= 1
                for value, seen in zip(row, texts[fate], strict=True):
                    seen.add(value)
                break
    if any(wanted[fate] and left[fate] == wanted[fate] for fate in wanted):
        raise CorpusError("validation and test sets cannot be held out: the rows are all alike; give them")
    together = zip(*texts.values(), strict=True)
    return [np.array(sorted(set(chain(*sides))), np.uint64) for sides in together]


def _any_known(sides: Sequence[np.ndarray], known: Known) -> np.ndarray:
    """Which rows, told by the hashes of their sides, have a side that is known."""
    return np.logical_or.reduce([among(side, hashes) for side, hashes in zip(sides, known, strict=True)])


def _candidates(
    fates: Fates, prints: Fingerprints, compared: Sequence[int], seed: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lines for training that come first in an order by hash, and the hashes of their sides."""
    columns = [prints.SIDES + side for side in compared]
    lines, hashes, ranks = (
        np.zeros(0, np.int64),
        np.zeros((0, len(columns)), np.uint64),
        np.zeros(0, np.uint64),
    )
    for where, rows in prints.chunks():
        mine = np.flatnonzero(fates[where] == Fate.TRAINING)
        sides = rows[mine][:, columns]
        lines = np.concatenate([lines, mine + where.start])
        hashes = np.concatenate([hashes, sides])
        ranks = np.concatenate([ranks, _ranks(sides, seed)])
        best = np.argsort(ranks, kind="stable")[:most]
        lines, hashes, ranks = lines[best], hashes[best], ranks[best]
    return lines, hashes


def _ranks(hashes: np.ndarray, seed: int) -> np.ndarray:
    """A place in a random order for every row of hashes."""
    mixed = np.full(len(hashes), seed, np.uint64)
    for column in hashes.T:
        mixed = _stirred(mixed ^ column)
    return mixed


def _stirred(x: np.ndarray) -> np.ndarray:
    """SplitMix64's finish: every bit of what goes in moves every bit of what comes out."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _occurrences(
    fates: Fates, prints: Fingerprints, compared: Sequence[int], hashes: np.ndarray
) -> np.ndarray:
    """In how many lines for training the most frequent side of each row occurs."""
    most = np.zeros(len(hashes), np.int64)
    for column, side in zip(hashes.T, compared, strict=True):
        texts, place = np.unique(column, return_inverse=True)
        counts = np.zeros(texts.size, np.int64)
        for where, rows in prints.chunks():
            values = rows[fates[where] == Fate.TRAINING, prints.SIDES + side]
            counts += np.bincount(np.searchsorted(texts, values[among(values, texts)]), minlength=texts.size)
        most = np.maximum(most, counts[place])
    return most
