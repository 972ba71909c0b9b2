"""What every line of a corpus comes to, and on disk, what it is compared by."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path

import numpy as np

from regard.errors import CorpusError

Fates = np.ndarray
"""One `Fate` for each line of a corpus, one byte each."""

_ROWS = 1 << 17
_SORTED_AT_ONCE, _MOST_PARTS = 1 << 19, 64


class Fate(IntEnum):
    """What comes of a line. It is trained on, held out, or dropped for the first reason that applies."""

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


def hashes_of(texts: Sequence[str]) -> np.ndarray:
    """8 bytes for each text, the same on every machine."""
    digests = [blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), "<u8")


def among(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which values are known; `known` is sorted."""
    if not known.size:
        return np.zeros(values.shape, bool)
    found = known[np.minimum(np.searchsorted(known, values), known.size - 1)] == values
    return np.asarray(found)


class Fingerprints:
    """For each line 8-byte numbers in a file without a name: of the whole row, of its lengths, of each side.

    The whole row is hashed as it stands; a side in the form in which texts are compared.
    """

    WHOLE, LENGTHS, SIDES = 0, 1, 2

    def __init__(self, n_sides: int, scratch: Path | str | None) -> None:
        self.width = self.SIDES + n_sides
        self.scratch = scratch or tempfile.gettempdir()
        try:
            # Closed by whoever reads it; the system takes a file without a name away by itself.
            self.file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115
        except OSError as error:
            raise self._refusal(error) from error

    def append(self, rows: np.ndarray) -> None:
        """Add the numbers of some lines, one row each."""
        assert rows.shape[1] == self.width, f"{rows.shape[1]} numbers a line, not {self.width}"
        try:
            self.file.write(rows.tobytes())
        except OSError as error:
            raise self._refusal(error) from error

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Which lines, and their numbers, some hundred thousand at a time."""
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
        """Have the file taken away."""
        self.file.close()

    def _refusal(self, error: OSError) -> CorpusError:
        told = f"{self.scratch}: cannot hold what cleaning needs: {error.strerror or error}"
        return CorpusError(f"{told}; choose a folder with more room")


def mark_duplicates(fates: Fates, prints: Fingerprints, at_once: int = _SORTED_AT_ONCE) -> None:
    """Drop every line for training whose whole row came before.

    Hashes are compared with those of the same remainder only, part by part. Each part takes a sweep over the
    file, so there are 64 at most; memory is taken for half a million lines, or for one line in 64.
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
        order = np.argsort(value, kind="stable")  # stable: of several the first in the file stays
        again = value[order][1:] == value[order][:-1]
        fates[line[order][1:][again]] = Fate.DUPLICATE
