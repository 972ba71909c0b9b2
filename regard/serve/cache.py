"""In-memory storage with an expiry: a store of blobs under random ids, and a cache of results."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from regard.serve.http.errors import not_found, too_large

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blob:
    """Stored bytes."""

    id: str
    name: str
    """A file name, or the model that it belongs to."""
    content: bytes
    expires: float
    """On the clock of the store."""


class BlobStore:
    """Blobs under ids that cannot be guessed; those not read for longest are dropped first."""

    def __init__(
        self, noun: str, max_bytes: int, seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        """Make an empty store.

        Args:
            noun: what a blob is, for messages.
            max_bytes: maximum total size.
            seconds: how long a blob is kept after it was last read.
            clock: the current time in seconds.
        """
        self._noun, self._max_bytes, self._seconds, self._clock = noun, max_bytes, seconds, clock
        self._blobs: OrderedDict[str, Blob] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes) -> Blob:
        """Store a blob, and drop others if there is no room.

        Raises:
            ApiError: it is larger than the whole store.
        """
        if len(content) > self._max_bytes:
            sizes = f"{len(content):,} bytes; the limit is {self._max_bytes:,}"
            raise too_large(f"The {self._noun} has {sizes}.")
        blob = Blob(secrets.token_hex(12), name, content, self._clock() + self._seconds)
        with self._lock:
            self._blobs[blob.id] = blob
            self._evict()
        return blob

    def get(self, id_: str) -> Blob:
        """A blob; its expiry starts again.

        Raises:
            ApiError: there is none with this id, or it has expired.
        """
        with self._lock:
            self._evict()
            blob = self._blobs.pop(id_, None)
            if blob is None:
                raise not_found(f"There is no such {self._noun}, or it has expired. Create it again.")
            self._blobs[id_] = blob = replace(blob, expires=self._clock() + self._seconds)
            return blob

    def delete(self, id_: str) -> None:
        """Drop a blob.

        Raises:
            ApiError: there is none with this id.
        """
        self.get(id_)
        with self._lock:
            self._blobs.pop(id_, None)

    def __iter__(self) -> Iterator[str]:
        """The ids of all blobs."""
        with self._lock:
            return iter(list(self._blobs))

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        with self._lock:
            return self._total()

    def _evict(self) -> None:
        """Drop expired blobs, and the oldest ones if there are too many bytes."""
        now = self._clock()
        while self._blobs:
            first = next(iter(self._blobs.values()))
            if first.expires > now and self._total() <= self._max_bytes:
                return
            del self._blobs[first.id]

    def _total(self) -> int:
        return sum(len(blob.content) for blob in self._blobs.values())


class ResultCache:
    """A least-recently-used cache of small results, with an expiry."""

    def __init__(self, size: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep at most `size` results, each for some seconds after its last use."""
        self._size, self._seconds, self._clock = size, seconds, clock
        self._results: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The cached result, or the one that `make` returns; exceptions are not cached."""
        with self._lock:
            self._evict()
            known = self._results.pop(key, None)
        # Outside the lock, so that no thread waits for another's result; two may compute the same.
        result: T = make() if known is None else known[1]
        with self._lock:
            self._results[key] = (self._clock() + self._seconds, result)
            self._results.move_to_end(key)
            self._evict()
        return result

    def _evict(self) -> None:
        """Drop expired results, and the least recently used ones if there are too many."""
        now = self._clock()
        while self._results:
            key, (expires, _) = next(iter(self._results.items()))
            if expires > now and len(self._results) <= self._size:
                return
            del self._results[key]
