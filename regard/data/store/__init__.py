"""The token store: the ids of all examples on disk, concatenated and memory-mapped.

    store.json      facts about the store, the hash of its inputs (`key`), and size and checksum of every file
    SIDE.ids        the ids of one side of all examples: 16 bits each, or 32 for more than 65,536 subwords
    SIDE.offsets    the start of every example and the end of the last one: 64 bits each

An example has one sequence of ids per side: two sides are a pair, one is a text. Pages of a mapped file count
as memory of the process that reads them until it releases them, as `part` does.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import CorpusError
from regard.version import __version__

FORMAT = 1
MANIFEST = "store.json"
READ_THROUGH = 256 << 20
"""A store of at most this many bytes is read and checked when it is opened, in a quarter of a second."""
PIECE = 1 << 20
"""Bytes read at once while checking."""
RELEASE_EVERY = 16
"""Ranges copied before pages are released: the system maps far more of a file than is read."""

Example = tuple[np.ndarray, ...]
"""The ids of one example, one array per side."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Size and checksum of one file."""

    size: int
    crc32: int


@dataclass(frozen=True, slots=True)
class Side:
    """Facts about one side of a store."""

    name: str
    n_tokens: int
    longest: int
    """Length of the longest sequence, in tokens."""
    longest_at: int
    """Index of the example with the longest sequence."""
    ids: StoredFile
    offsets: StoredFile


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """The content of `store.json`."""

    key: str
    vocab_size: int
    n_examples: int
    sides: tuple[Side, ...]

    @property
    def dtypes(self) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """The types of ids and of offsets on disk."""
        return np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4"), np.dtype("<i8")

    @property
    def files(self) -> dict[str, StoredFile]:
        """Every file but `store.json`: ids and offsets of the first side, then of the next."""
        kinds = [(side, kind) for side in self.sides for kind in ("ids", "offsets")]
        return {f"{side.name}.{kind}": getattr(side, kind) for side, kind in kinds}


@dataclass(frozen=True, eq=False)
class Store:
    """An open store: memory-mapped ids and offsets, one array per side."""

    folder: Path
    facts: StoreFacts
    maps: tuple[mmap.mmap, ...]
    ids: tuple[np.ndarray, ...]
    offsets: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return self.facts.n_examples

    def __getitem__(self, i: int) -> Example:
        if not 0 <= i < len(self):
            raise IndexError(f"example {i} of {len(self)}")
        both = zip(self.ids, self.offsets, strict=True)
        return tuple(ids[offsets[i] : offsets[i + 1]] for ids, offsets in both)

    def __repr__(self) -> str:
        sides = ", ".join(f"{side.n_tokens:,} tokens of {side.name}" for side in self.facts.sides)
        return f"Store({len(self):,} examples, {sides})"

    def lengths(self, side: int, indices: np.ndarray) -> np.ndarray:
        """The lengths of these examples on one side, in tokens."""
        lengths: np.ndarray = self.offsets[side][indices + 1] - self.offsets[side][indices]
        return lengths

    def gather(self, side: int, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of these examples on one side, concatenated, and their lengths."""
        starts, lengths = self.offsets[side][indices], self.lengths(side, indices)
        before = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        return self.ids[side][places], lengths

    def part(self, ranges: Sequence[tuple[int, int]]) -> Store:
        """A copy in memory of the examples in several ranges `(first, stop)`.

        The facts about its sides are those of the whole store.
        """
        ids: list[list[np.ndarray]] = [[] for _ in self.ids]
        lengths: list[list[np.ndarray]] = [[] for _ in self.ids]
        for first, stop in self._releasing(ranges):
            for side, offsets in enumerate(self.offsets):
                bounds = np.array(offsets[first : stop + 1])
                lengths[side].append(np.diff(bounds))
                ids[side].append(np.array(self.ids[side][bounds[0] : bounds[-1]]))
        all_ids = tuple(np.concatenate(parts) for parts in ids)
        all_offsets = tuple(np.cumsum(np.concatenate([[0], *parts])) for parts in lengths)
        facts = replace(self.facts, n_examples=len(all_offsets[0]) - 1)
        return Store(self.folder, facts, (), all_ids, all_offsets)

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Ask the system to read the examples in several ranges ahead, without waiting for it."""
        if not hasattr(mmap, "MADV_WILLNEED"):
            return
        for first, stop in self._releasing(ranges):
            for view, ids, offsets in zip(self.maps[::2], self.ids, self.offsets, strict=True):
                start, end = int(offsets[first]) * ids.itemsize, int(offsets[stop]) * ids.itemsize
                start -= start % mmap.PAGESIZE
                if end > start:
                    view.madvise(mmap.MADV_WILLNEED, start, end - start)

    def _releasing(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same ranges; memory is released after every few of them."""
        for i in range(0, len(ranges), RELEASE_EVERY):
            yield from ranges[i : i + RELEASE_EVERY]
            self.release()

    def release(self) -> None:
        """Release the memory of all pages read so far; they can be read again from disk or its cache."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for view in self.maps:
                view.madvise(mmap.MADV_DONTNEED)


def open_store(folder: Path | str, *, thorough: bool | None = None) -> Store:
    """Open a store, after checking its files.

    Sizes are always checked; contents where `thorough`, and by default if the store is small.

    Raises:
        CorpusError: there is no store, or it is damaged or of another version.
    """
    folder = Path(folder)
    facts = read_facts(folder)
    if thorough is None:
        thorough = sum(file.size for file in facts.files.values()) <= READ_THROUGH
    try:
        if problems := [
            p for name, file in facts.files.items() if (p := _damage(folder / name, file, thorough))
        ]:
            raise _damaged(folder, "; ".join(problems))
        maps = tuple(_map(folder / name) for name in facts.files)
    except OSError as error:
        problem = f"{folder}: the store cannot be read: {error.strerror or error}"
        raise CorpusError(problem, code="unreadable_file") from error
    id_type, offset_type = facts.dtypes
    ids = tuple(np.frombuffer(view, id_type) for view in maps[::2])
    offsets = tuple(np.frombuffer(view, offset_type) for view in maps[1::2])
    return Store(folder, facts, maps, ids, offsets)


def find_store(folder: Path | str, key: str) -> Store | None:
    """The store in a folder, if it is complete and was made from inputs with this key; otherwise None."""
    with suppress(CorpusError):
        if read_facts(Path(folder)).key == key:
            return open_store(folder)
    return None


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _damage(path: Path, file: StoredFile, thorough: bool) -> str | None:
    if not path.is_file():
        return f"{path.name} is missing"
    if (size := path.stat().st_size) != file.size:
        return f"{path.name} has {size:,} bytes instead of {file.size:,}"
    if thorough and _crc32(path) != file.crc32:
        return f"{path.name} has changed"
    return None


def _crc32(path: Path) -> int:
    crc32 = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            crc32 = zlib.crc32(piece, crc32)
    return crc32


def facts_as_json(facts: StoreFacts) -> bytes:
    """The content of `store.json`, which ends with a hash of itself."""
    table = {"format": FORMAT, "regard": __version__, **asdict(facts)}
    return (json.dumps({**table, "hash": _hash(table)}, indent=2) + "\n").encode()


def read_facts(folder: Path) -> StoreFacts:
    """The content of a folder's `store.json`.

    Raises:
        CorpusError: the folder is not a store, or damaged, or of another version.
    """
    try:
        table = json.loads((folder / MANIFEST).read_bytes())
    except OSError as error:
        problem = f"{folder}: is not a token store: {MANIFEST}: {error.strerror}"
        raise CorpusError(problem, code="not_a_store") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, f"{MANIFEST} is not JSON") from error
    written = table.pop("hash", None) if isinstance(table, dict) else None
    if written is None:
        problem = f"{folder}: is not a token store: {MANIFEST} was written by another program"
        raise CorpusError(problem, code="not_a_store")
    if table.get("format") != FORMAT:
        problem = f"regard {table.get('regard')} wrote the store in another format; delete it"
        raise CorpusError(f"{folder}: {problem}", code="other_format")
    if written != _hash(table):
        raise _damaged(folder, f"{MANIFEST} has changed")
    sides = tuple(
        Side(**{**side, "ids": StoredFile(**side["ids"]), "offsets": StoredFile(**side["offsets"])})
        for side in table["sides"]
    )
    return StoreFacts(table["key"], table["vocab_size"], table["n_examples"], sides)


def _damaged(folder: Path, problem: str) -> CorpusError:
    return CorpusError(f"{folder}: the store is damaged, delete it: {problem}", code="damaged_store")


def _hash(table: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(table, sort_keys=True).encode(), digest_size=16).hexdigest()
