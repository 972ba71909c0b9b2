"""What was worked out once and is asked for again soon: a few small results, for a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Remembered:
    """Results by what they follow from; the one that was not asked for the longest goes first."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember so many at most, and each for so long after somebody asked for it."""
        self._most, self._seconds, self._clock = most, seconds, clock
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What belongs to a key: as it was made before, or made now. What fails is not remembered."""
        with self._lock:
            self._forget()
            known = self._kept.pop(key, None)
        # Outside of the lock: nobody waits for what somebody else makes. Two may make the same.
        result: T = make() if known is None else known[1]
        with self._lock:
            self._kept[key] = (self._clock() + self._seconds, result)
            self._kept.move_to_end(key)
            self._forget()
        return result

    def _forget(self) -> None:
        """Those whose time is over, and those that are too many: the first were asked for the longest ago."""
        now = self._clock()
        while self._kept:
            key, (until, _) = next(iter(self._kept.items()))
            if until > now and len(self._kept) <= self._most:
                return
            del self._kept[key]
