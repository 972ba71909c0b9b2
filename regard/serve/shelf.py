"""Blocks of bytes that are kept in memory for a while, under numbers that nobody can guess."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from regard.serve.http.errors import not_found, too_large


@dataclass(frozen=True, slots=True)
class Kept:
    """A block under its number."""

    id: str
    name: str
    """What it belongs to, or is called."""
    content: bytes
    expires: float
    """In seconds of the clock."""


class Shelf:
    """As many as there is room for; those that nobody asks for go."""

    def __init__(
        self, what: str, most_bytes: int, seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        """Keep things of a kind.

        Args:
            what: what one of them is called.
            most_bytes: what all of them take together, at most.
            seconds: how long one is kept after somebody asked for it.
            clock: tells the time.
        """
        self._what, self._most, self._seconds, self._clock = what, most_bytes, seconds, clock
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, name: str, content: bytes) -> Kept:
        """Keep a block, and let go of others where there is no room.

        Raises:
            Refusal: it takes more than all of them together may.
        """
        if len(content) > self._most:
            most = f"{self._most:,} are kept at most"
            raise too_large(f"The {self._what} has {len(content):,} bytes, and {most}.")
        kept = Kept(secrets.token_hex(12), name, content, self._clock() + self._seconds)
        with self._lock:
            self._kept[kept.id] = kept
            self._sweep()
        return kept

    def get(self, number: str) -> Kept:
        """One that is still there; it stays for as long again.

        Raises:
            Refusal: there is none of that number, or no longer.
        """
        with self._lock:
            self._sweep()
            kept = self._kept.pop(number, None)
            if kept is None:
                raise not_found(
                    f"There is no such {self._what}, or nobody asked for it for too long. Make it again."
                )
            self._kept[number] = kept = replace(kept, expires=self._clock() + self._seconds)
            return kept

    def drop(self, number: str) -> None:
        """Let go of one.

        Raises:
            Refusal: there is none of that number.
        """
        self.get(number)
        with self._lock:
            self._kept.pop(number, None)

    def __iter__(self) -> Iterator[str]:
        """The numbers of all."""
        with self._lock:
            return iter(list(self._kept))

    @property
    def nbytes(self) -> int:
        """What all of them take."""
        with self._lock:
            return self._total()

    def _sweep(self) -> None:
        """The oldest first: those whose time is over, and those that there is no room for."""
        now = self._clock()
        while self._kept:
            first = next(iter(self._kept.values()))
            if first.expires > now and self._total() <= self._most:
                return
            del self._kept[first.id]

    def _total(self) -> int:
        return sum(len(kept.content) for kept in self._kept.values())
