"""Traces that are kept for a while, so that a page can ask for one head after another.

Each is kept as one block of bytes. As it is, a trace has a third more in small objects than in its arrays; in
one block it takes what it counts for, and leaves no holes behind.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from regard.look.trace import Trace
from regard.serve.refusals import not_found, too_large


@dataclass(frozen=True, slots=True)
class Kept:
    """A trace under its number."""

    id: str
    model: str
    packed: bytes
    expires: float
    """In seconds of the clock."""

    @property
    def trace(self) -> Trace:
        """The trace itself, as it was."""
        return Trace.from_bytes(self.packed)


class Traces:
    """As many as there is room for; those that nobody looks at go."""

    def __init__(self, most_bytes: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._most, self._seconds, self._clock = most_bytes, seconds, clock
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, model: str, trace: Trace) -> Kept:
        """Keep a trace, and let go of others where there is no room.

        Raises:
            Refusal: it takes more than all traces together may.
        """
        packed = trace.to_bytes()
        if len(packed) > self._most:
            raise too_large(f"The trace has {len(packed):,} bytes, and {self._most:,} are kept at most.")
        kept = Kept(secrets.token_hex(12), model, packed, self._clock() + self._seconds)
        with self._lock:
            self._kept[kept.id] = kept
            self._sweep()
        return kept

    def get(self, number: str) -> Kept:
        """A trace that is still there; it stays for as long again.

        Raises:
            Refusal: there is none of that number, or no longer.
        """
        with self._lock:
            self._sweep()
            kept = self._kept.pop(number, None)
            if kept is None:
                raise not_found(
                    "There is no such trace, or it was not looked at for too long. Make it again."
                )
            self._kept[number] = kept = replace(kept, expires=self._clock() + self._seconds)
            return kept

    def drop(self, number: str) -> None:
        """Let go of a trace.

        Raises:
            Refusal: there is none of that number.
        """
        self.get(number)
        with self._lock:
            self._kept.pop(number, None)

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
        return sum(len(kept.packed) for kept in self._kept.values())
