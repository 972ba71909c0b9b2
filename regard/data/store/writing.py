"""Writing a token store: piece by piece, beside its place, and into it when it is whole."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
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
from regard.durable import sync_folder
from regard.errors import CorpusError

AT_ONCE = 4096
"""Examples that are written together."""


def write_store(
    folder: Path | str, examples: Iterable[Example], *, sides: Sequence[str], key: str, vocab_size: int
) -> Store:
    """Write examples into a store at `folder`, in the place of an older one, and open it.

    Raises:
        CorpusError: an example does not fit the sides or the vocabulary, there are none, something else is
            in the way, or the system refuses. What was there before still is.
    """
    assert sides, "a store has at least one side"
    assert all(map(str.isidentifier, sides)), f"sides have names that suit a file, not {sides}"
    folder = Path(folder).resolve()
    with _refusals_told(folder):
        _check_place(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        new = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.new")
        new.mkdir()
    try:
        with _locked(new):
            facts = _write_sides(new, examples, StoreFacts(key, vocab_size, 0, ()), sides)
            with _refusals_told(folder):
                _write_manifest(new / MANIFEST, facts)
                _put_in_place(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return open_store(folder, thorough=False)


@contextmanager
def _refusals_told(path: Path) -> Iterator[None]:
    """What the system refuses becomes an error of ours. The reading of examples stays outside of this."""
    try:
        yield
    except OSError as error:
        raise CorpusError(f"{path}: the store cannot be written: {error.strerror or error}") from error


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
        raise CorpusError("no example is left to train on: the store would be empty")
    if empty := [side.name for side in finished if not side.n_tokens]:
        raise CorpusError(
            f"not one of {counted(n_examples, 'example')} has a token of its {' or '.join(empty)}"
        )
    return StoreFacts(facts.key, facts.vocab_size, n_examples, finished)


def _check_sides(batch: Sequence[Example], first: int, names: Sequence[str]) -> None:
    if {*map(len, batch)} != {len(names)}:
        i, found = next((i, len(example)) for i, example in enumerate(batch) if len(example) != len(names))
        raise CorpusError(
            f"example {first + i + 1:,} has {found} sides, not {len(names)}: {', '.join(names)}"
        )


class _FileWriter:
    """A file that is being written, with its checksum so far."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        self.path = path
        with _refusals_told(path):
            self.file = path.open("xb", buffering=1 << 20)
        files.callback(self.close)
        self.size = self.crc32 = 0

    def write(self, numbers: np.ndarray) -> None:
        data = numbers.tobytes()
        with _refusals_told(self.path):
            self.file.write(data)
        self.size, self.crc32 = self.size + len(data), zlib.crc32(data, self.crc32)

    def finish(self) -> StoredFile:
        with _refusals_told(self.path):
            self.file.flush()
            os.fsync(self.file.fileno())
        return StoredFile(self.size, self.crc32)

    def close(self) -> None:
        with suppress(OSError):  # a write that failed was told already, and is tried once more here
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
        """Write the sequences of the examples from number `first` on."""
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
        """Say which example has ids that cannot be, and which."""
        for i, ids in enumerate(map(np.asarray, sequences), first + 1):
            if ids.dtype.kind not in "iu":
                raise CorpusError(f"example {i:,}, {self.name}: ids are whole numbers, not {ids.dtype}")
            if (wrong := ids[(ids < 0) | (ids >= self.vocab_size)]).size:
                outside = f"{wrong[0]} is no id of this vocabulary, which has {self.vocab_size:,}"
                raise CorpusError(f"example {i:,}, {self.name}: {outside}")
        raise AssertionError("ids were refused, and none of them is wrong")

    def finish(self) -> Side:
        """Have everything on disk, and say what it is."""
        ids, offsets = self.ids.finish(), self.offsets.finish()
        return Side(self.name, self.n_tokens, self.longest, self.longest_at, ids, offsets)


def _write_manifest(path: Path, facts: StoreFacts) -> None:
    with path.open("xb") as file:
        file.write(facts_as_json(facts))
        file.flush()
        os.fsync(file.fileno())


# --- its place --------------------------------------------------------------------------------------------


def _check_place(folder: Path) -> None:
    """A store or nothing may be there; whatever else it is stays."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CorpusError(f"{folder}: is a file, and the store is a folder; choose another place")
    names = {entry.name for entry in folder.iterdir()}
    strangers = {name for name in names if name != MANIFEST and not name.endswith((".ids", ".offsets"))}
    if strangers or (names and MANIFEST not in names):
        held = ", ".join(sorted(strangers or names)[:5])
        raise CorpusError(f"{folder}: holds something else than a store ({held}); choose another place")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a folder locked, so that nobody takes it for one that a killed process left behind."""
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


def _sweep(folder: Path) -> None:
    """Remove what killed processes left beside `folder`; what is being written is locked, and stays."""
    for left in folder.parent.iterdir():
        if not left.name.startswith(f".{folder.name}.") or left.suffix not in (".new", ".old"):
            continue
        with suppress(OSError):
            if (handle := _lock(left, wait=False)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(handle)


def _put_in_place(new: Path, folder: Path) -> None:
    sync_folder(new)
    old = new.with_suffix(".old")
    with suppress(FileNotFoundError):
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):  # it is whole and in its place: no reason to say that it is not
        sync_folder(folder.parent)


A = TypeVar("A")
B = TypeVar("B")


def content_key(paths: Iterable[Path | str], settings: Any) -> str:
    """A hash of what is in these files, in their order, and of the settings, which are anything JSON can say.

    Where the files lie and what they are called does not count.
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
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error


def each_side(*encoders: Callable[[list[str]], list[np.ndarray]]) -> Callable[[list[Any]], list[Example]]:
    """One encoder a column becomes an encoder of rows, which is what `encode_in_threads` wants."""

    def encode(rows: list[Any]) -> list[Example]:
        columns = zip(*rows, strict=True)
        sides = [encoder(list(column)) for encoder, column in zip(encoders, columns, strict=True)]
        return list(zip(*sides, strict=True))

    return encode


def one_way(pairs: Iterable[Example], tag: int) -> Iterator[Example]:
    """Each pair with the tag of the side that is wanted, the second, before its inputs."""
    for first, second in pairs:
        yield np.insert(first, 0, tag), second


def both_ways(pairs: Iterable[Example], tags: Sequence[int]) -> Iterator[Example]:
    """Each pair as two examples, there and back; the inputs begin with the tag of the side that is wanted.

    `tags` are the tags of the first side and of the second.
    """
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
    """Encode items in chunks, several chunks at once; what comes out has the order of what went in.

    Reading goes on in the caller's thread, two chunks a thread ahead and no more. `encode` must let go of the
    interpreter to gain from threads, as SentencePiece does. `progress` is told how many more are done.
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
