"""From rows of texts to a token store: the content key, encoding in threads, and writing atomically."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from regard.config.checking import counted
from regard.data.store import (
    FORMAT,
    MANIFEST,
    Example,
    Side,
    Store,
    StoredFile,
    StoreFacts,
    facts_as_json,
    open_store,
)
from regard.durable import hidden_folder, leftovers, make_folder, move_into_place, write_new_file
from regard.errors import CorpusError, reason

A = TypeVar("A")
B = TypeVar("B")

AT_ONCE = 4096
"""Examples that are written together."""


def content_key(paths: Iterable[Path | str], settings: Any) -> str:
    """A hash of the content of these files, in order, and of the settings, which JSON must be able to hold.

    The names and places of the files do not count.
    """
    key = hashlib.blake2b(digest_size=16)
    key.update(json.dumps([FORMAT, settings], sort_keys=True).encode())
    paths = list(paths)
    with ThreadPoolExecutor(max_workers=max(1, min(4, len(paths)))) as pool:
        for digest in pool.map(_content_digest, paths):
            key.update(digest)
    return key.hexdigest()


def _content_digest(path: Path | str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, hashlib.blake2b).digest()
    except OSError as error:
        problem = f"{path}: cannot be read: {error.strerror or error}"
        raise CorpusError(problem, code="unreadable_file") from error


def row_encoder(*encoders: Callable[[list[str]], list[np.ndarray]]) -> Callable[[list[Any]], list[Example]]:
    """An encoder of rows, from one encoder per column; for `encode_in_threads`."""

    def encode(rows: list[Any]) -> list[Example]:
        columns = zip(*rows, strict=True)
        sides = [encoder(list(column)) for encoder, column in zip(encoders, columns, strict=True)]
        return list(zip(*sides, strict=True))

    return encode


def one_way(pairs: Iterable[Example], tag: int) -> Iterator[Example]:
    """Every pair, its inputs preceded by the tag of the target language."""
    for first, second in pairs:
        yield np.insert(first, 0, tag), second


def both_ways(pairs: Iterable[Example], tags: Sequence[int]) -> Iterator[Example]:
    """Every pair as two examples, there and back; `tags` are those of the first and the second language."""
    first_tag, second_tag = tags
    for first, second in pairs:
        yield np.insert(first, 0, second_tag), second
        yield np.insert(second, 0, first_tag), first


def encode_in_threads(
    items: Iterable[A],
    encode: Callable[[list[A]], list[B]],
    *,
    threads: int,
    chunk: int = 1024,
    progress: Callable[[int], None] | None = None,
) -> Iterator[B]:
    """Encode items in chunks, several chunks at once, and yield the results in order.

    The caller's thread reads ahead by at most two chunks per thread. Threads help where `encode` releases the
    interpreter's lock, as SentencePiece does. `progress` is called with the number of items just encoded.
    """
    source, waiting = iter(items), deque[Future[list[B]]]()
    with ThreadPoolExecutor(threads, thread_name_prefix="encode") as pool:
        try:
            while True:
                while len(waiting) < 2 * threads and (part := list(islice(source, chunk))):
                    waiting.append(pool.submit(_encode_chunk, encode, part))
                if not waiting:
                    return
                done = waiting.popleft().result()
                yield from done
                if progress is not None:
                    progress(len(done))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _encode_chunk(encode: Callable[[list[A]], list[B]], items: list[A]) -> list[B]:
    encoded = encode(items)
    assert len(encoded) == len(items), f"{len(items)} items were encoded into {len(encoded)}"
    return encoded


def write_store(
    folder: Path | str, examples: Iterable[Example], *, sides: Sequence[str], key: str, vocab_size: int
) -> Store:
    """Write examples into a store at `folder`, in place of an older one, and open it.

    Raises:
        CorpusError: an example does not fit the sides or the vocabulary, there are none, something else is
            in the way, or the system refuses. What was there before is unchanged.
    """
    assert sides, "a store has at least one side"
    assert all(map(str.isidentifier, sides)), f"the names of sides must be usable as file names, not {sides}"
    folder = Path(folder).resolve()
    with _system_errors(folder):
        _check_place(folder)
        make_folder(folder.parent)
        _remove_leftovers(folder)
        new = hidden_folder(folder)
        new.mkdir()
    try:
        with _locked(new):
            facts = _write_sides(new, examples, StoreFacts(key, vocab_size, 0, ()), sides)
            with _system_errors(folder):
                write_new_file(new / MANIFEST, facts_as_json(facts))
                move_into_place(new, folder, replace=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return open_store(folder, thorough=False)


@contextmanager
def _system_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system into a CorpusError; examples are read outside of this."""
    try:
        yield
    except OSError as error:
        problem = f"{path}: the store cannot be written: {reason(error)}"
        raise CorpusError(problem, code="unwritable_folder") from error


def _write_sides(
    folder: Path, examples: Iterable[Example], facts: StoreFacts, names: Sequence[str]
) -> StoreFacts:
    source, n_examples = iter(examples), 0
    with ExitStack() as files:
        sides = [_SideWriter(folder, name, facts, files) for name in names]
        while batch := list(islice(source, AT_ONCE)):
            _check_sides(batch, n_examples, names)
            for side, sequences in zip(sides, zip(*batch, strict=True), strict=True):
                side.append(sequences, n_examples)
            n_examples += len(batch)
        finished = tuple(side.finish() for side in sides)
    if not n_examples:
        raise CorpusError("no example is left to train on: the store would be empty", code="no_examples")
    if empty := [side.name for side in finished if not side.n_tokens]:
        sides_without = " or ".join(empty)
        problem = f"none of {counted(n_examples, 'example')} has a token in its {sides_without}"
        raise CorpusError(problem, code="no_examples")
    return StoreFacts(facts.key, facts.vocab_size, n_examples, finished)


def _check_sides(batch: Sequence[Example], first: int, names: Sequence[str]) -> None:
    if {*map(len, batch)} != {len(names)}:
        i, n_sides = next((i, len(example)) for i, example in enumerate(batch) if len(example) != len(names))
        problem = f"example {first + i + 1:,} has {n_sides} sides, not {len(names)}: {', '.join(names)}"
        raise CorpusError(problem, code="bad_example")


class _FileWriter:
    """A file that is being written, with its checksum so far."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        self.path = path
        with _system_errors(path):
            self.file = path.open("xb", buffering=1 << 20)
        files.callback(self.close)
        self.size = self.crc32 = 0

    def write(self, numbers: np.ndarray) -> None:
        data = numbers.tobytes()
        with _system_errors(self.path):
            self.file.write(data)
        self.size, self.crc32 = self.size + len(data), zlib.crc32(data, self.crc32)

    def finish(self) -> StoredFile:
        with _system_errors(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        return StoredFile(self.size, self.crc32)

    def close(self) -> None:
        with suppress(OSError):  # closing repeats a write that failed, and was reported
            self.file.close()


class _SideWriter:
    """One side of a store that is being written."""

    def __init__(self, folder: Path, name: str, facts: StoreFacts, files: ExitStack) -> None:
        self.name, self.vocab_size = name, facts.vocab_size
        self.id_type, self.offset_type = facts.dtypes
        self.n_tokens, self.longest, self.longest_at = 0, -1, 0
        self.ids = _FileWriter(folder / f"{name}.ids", files)
        self.offsets = _FileWriter(folder / f"{name}.offsets", files)
        self.offsets.write(np.zeros(1, self.offset_type))

    def append(self, sequences: Sequence[np.ndarray], first: int) -> None:
        """Write sequences; `first` is the number of the first example."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        ids = np.concatenate(sequences)
        if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= self.vocab_size):
            self.refuse(sequences, first)
        if lengths.max() > self.longest:
            self.longest, self.longest_at = int(lengths.max()), first + int(lengths.argmax())
        self.ids.write(ids.astype(self.id_type))
        self.offsets.write((self.n_tokens + np.cumsum(lengths)).astype(self.offset_type))
        self.n_tokens += len(ids)

    def refuse(self, sequences: Sequence[np.ndarray], first: int) -> NoReturn:
        """Raise the error of the first example with impossible ids."""
        for i, ids in enumerate(map(np.asarray, sequences), first + 1):
            where = f"example {i:,}, {self.name}"
            if ids.dtype.kind not in "iu":
                raise CorpusError(f"{where}: ids are whole numbers, not {ids.dtype}", code="bad_example")
            if (wrong := ids[(ids < 0) | (ids >= self.vocab_size)]).size:
                problem = f"{wrong[0]} is not an id of this vocabulary, which has {self.vocab_size:,}"
                raise CorpusError(f"{where}: {problem}", code="bad_example")
        raise AssertionError("ids were refused, but none of them is wrong")

    def finish(self) -> Side:
        """Wait until everything is on disk; returns the facts of the side."""
        ids, offsets = self.ids.finish(), self.offsets.finish()
        return Side(self.name, self.n_tokens, self.longest, self.longest_at, ids, offsets)


def _check_place(folder: Path) -> None:
    """Refuse a place with anything but a store in it."""
    if not folder.exists():
        return
    if not folder.is_dir():
        problem = "is a file, but the store is a folder; choose another place"
        raise CorpusError(f"{folder}: {problem}", code="folder_exists")
    names = {entry.name for entry in folder.iterdir()}
    strangers = {name for name in names if name != MANIFEST and not name.endswith((".ids", ".offsets"))}
    if strangers or (names and MANIFEST not in names):
        listed = ", ".join(sorted(strangers or names)[:5])
        problem = f"holds something other than a store ({listed}); choose another place"
        raise CorpusError(f"{folder}: {problem}", code="folder_exists")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other process takes it for a leftover and removes it."""
    handle = _lock(folder, wait=True)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder until the handle is closed; None where folders cannot be locked."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        if wait:  # some network drives have no locks
            return None
        raise
    return handle


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished folders of killed processes; what is being written is locked, and stays."""
    for left in leftovers(folder, ".new"):
        with suppress(OSError):
            if (handle := _lock(left, wait=False)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(handle)
