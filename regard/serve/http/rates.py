"""How often somebody may ask: a bucket that fills evenly, and that each request takes one from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from regard.serve.http.errors import Refusal


class Rates:
    """A bucket for each name; names come from the file of keys, so there are only so many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str, a_minute: int) -> None:
        """Count one request.

        Raises:
            Refusal: there were too many in the last minute.
        """
        now = self._clock()
        level, then = self._buckets.get(name, (float(a_minute), now))
        level = min(float(a_minute), level + (now - then) * a_minute / 60)
        if level < 1:
            self._buckets[name] = level, now
            seconds = math.ceil((1 - level) * 60 / a_minute)
            message = f"This key may ask {a_minute:,} times a minute. Ask again in {seconds} s."
            raise Refusal(429, "rate_limit", message, retry_after=max(1, seconds))
        self._buckets[name] = level - 1, now
