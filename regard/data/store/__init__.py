"""The token store: ids on disk, laid end to end, and read as if they were in memory.

    store.json      what the store holds, from which inputs (`key`), and size and checksum of every file
    SIDE.ids        the ids of one side of every example, 16 bits each, or 32 for more than 65,536 subwords
    SIDE.offsets    where each example starts, 64 bits each, and where the last one ends

An example has one sequence of ids a side: two sides are a pair, one is a text. Pages of a mapped file count
as memory of the process that reads them, and become ever more unless it hands them back, as `part` does.
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
"""A store of up to this many bytes is read and checked whole when it is opened: a quarter of a second."""
PIECE = 1 << 20
"""Bytes that are read at once while checking."""
RELEASE_EVERY = 16
"""Ranges that are copied before pages are handed back: the system maps far more of a file than is read."""

Example = tuple[np.ndarray, ...]
"""The ids of one example, one array a side."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Size and checksum of one file."""

    size: int
    crc32: int


@dataclass(frozen=True, slots=True)
class Side:
    """What is known of one side without reading it."""

    name: str
    n_tokens: int
    longest: int
    """Tokens of the longest sequence."""
    longest_at: int
    """The example that has it."""
    ids: StoredFile
    offsets: StoredFile


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What `store.json` says."""

    key: str
    vocab_size: int
    n_examples: int
    sides: tuple[Side, ...]

    @property
    def dtypes(self) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """How ids and offsets are written."""
        return np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4"), np.dtype("<i8")

    @property
    def files(self) -> dict[str, StoredFile]:
        """Every file but `store.json`: ids and offsets of the first side, then of the next."""
        kinds = [(side, kind) for side in self.sides for kind in ("ids", "offsets")]
        return {f"{side.name}.{kind}": getattr(side, kind) for side, kind in kinds}


@dataclass(frozen=True, eq=False)
class Store:
    """A store that is open for reading: memory-mapped ids and offsets, one array a side."""

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
        """Tokens that these examples have on one side."""
        lengths: np.ndarray = self.offsets[side][indices + 1] - self.offsets[side][indices]
        return lengths

    def gather(self, side: int, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of these examples on one side, laid end to end, and their lengths."""
        starts, lengths = self.offsets[side][indices], self.lengths(side, indices)
        before = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        return self.ids[side][places], lengths

    def part(self, ranges: Sequence[tuple[int, int]]) -> Store:
        """A copy in memory of the examples in several ranges, each from a first one to before another.

        What its facts say of the sides is still said of the whole store.
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
        """Have the system fetch the examples in several ranges from disk, without waiting for them."""
        if not hasattr(mmap, "MADV_WILLNEED"):
            return
        for first, stop in self._releasing(ranges):
            for view, ids, offsets in zip(self.maps[::2], self.ids, self.offsets, strict=True):
                start, end = int(offsets[first]) * ids.itemsize, int(offsets[stop]) * ids.itemsize
                start -= start % mmap.PAGESIZE
                if end > start:
                    view.madvise(mmap.MADV_WILLNEED, start, end - start)

    def _releasing(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The same ranges; memory is handed back after every few of them."""
        for i in range(0, len(ranges), RELEASE_EVERY):
            yield from ranges[i : i + RELEASE_EVERY]
            self.release()

    def release(self) -> None:
        """Hand back the memory that reading took; what is read again comes from disk, or from its cache."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for view in self.maps:
                view.madvise(mmap.MADV_DONTNEED)


def open_store(folder: Path | str, *, thorough: bool | None = None) -> Store:
    """Open a store, after checking that its files are what was written.

    Their sizes are always checked; what is in them where `thorough`, or by default where that takes no time.

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
            raise CorpusError(f"{folder}: the store is damaged, delete it: {'; '.join(problems)}")
        maps = tuple(_map(folder / name) for name in facts.files)
    except OSError as error:
        raise CorpusError(f"{folder}: the store cannot be read: {error.strerror or error}") from error
    id_type, offset_type = facts.dtypes
    ids = tuple(np.frombuffer(view, id_type) for view in maps[::2])
    offsets = tuple(np.frombuffer(view, offset_type) for view in maps[1::2])
    return Store(folder, facts, maps, ids, offsets)


def find_store(folder: Path | str, key: str) -> Store | None:
    """The store, if it is there, whole, and made from inputs with this key; None where it must be built."""
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
        return f"{path.name} has {size:,} bytes, and {file.size:,} were written"
    if thorough and _crc32(path) != file.crc32:
        return f"{path.name} is not what was written"
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
    """What `store.json` of a folder says; CorpusError where that is not a store that we can read."""
    try:
        table = json.loads((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise CorpusError(f"{folder}: is not a token store: {MANIFEST}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{folder}: the store is damaged, delete it: {MANIFEST} is not JSON") from error
    written = table.pop("hash", None) if isinstance(table, dict) else None
    if written is None:
        raise CorpusError(f"{folder}: is not a token store: {MANIFEST} is somebody else's")
    if table.get("format") != FORMAT:
        by = f"written by regard {table.get('regard')} in another format"
        raise CorpusError(f"{folder}: the store was {by}, delete it")
    if written != _hash(table):
        raise CorpusError(f"{folder}: the store is damaged, delete it: {MANIFEST} is not what was written")
    sides = tuple(
        Side(**{**side, "ids": StoredFile(**side["ids"]), "offsets": StoredFile(**side["offsets"])})
        for side in table["sides"]
    )
    return StoreFacts(table["key"], table["vocab_size"], table["n_examples"], sides)


def _hash(table: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(table, sort_keys=True).encode(), digest_size=16).hexdigest()
