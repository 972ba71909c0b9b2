"""From lines to ids: a key of what goes in, and threads that encode in order."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from regard.data.store.store import FORMAT, Example
from regard.errors import CorpusError

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
