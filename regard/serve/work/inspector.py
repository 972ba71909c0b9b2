"""Looking inside, one at a time and after translations: it may be slow, and must not make others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from regard.serve.http.errors import busy
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.remembered import Remembered
from regard.serve.served import Served
from regard.serve.shelf import Shelf
from regard.serve.work.job import Job

T = TypeVar("T")
PATIENCE_S = 2.0
"""Seconds that it lets translations go first; then it takes its turn."""


class Inspector:
    """Takes turns at looking."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        # As blocks of bytes: as they are, traces have a third more in small objects than in their arrays.
        self.traces = Shelf("trace", limits.traces_bytes, limits.trace_seconds)
        self.remembered = Remembered(limits.remembered, limits.trace_seconds)
        """What intact models said, for those who go on to change them."""
        self._most = limits.looks_waiting
        self._expecting = False
        self._waiting, self._counting, self._turn = 0, threading.Lock(), threading.Lock()
        # Always the same one, so that memory that one look has freed serves the next.
        self._thread = ThreadPoolExecutor(1, "inspector")
        metrics.watch("regard_trace_bytes", "Memory of the traces that are kept.", lambda: self.traces.nbytes)

    def expect(self, models: Iterable[Served]) -> None:
        """Read what looking takes before anybody looks: torch and the weights take seconds, once."""
        with self._counting:
            news, self._expecting = not self._expecting, True
        if news:
            for served in models:
                self._thread.submit(served.open_inside)

    def close(self) -> None:
        """Begin no look that has not begun: the process would wait for all of them."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def look(self, served: Served, job: Job, work: Callable[[], T]) -> T:
        """What comes of some work inside a model, when its turn has come.

        Raises:
            Refusal: too many wait for it already, or the job is over.
        """
        until = time.monotonic() + PATIENCE_S
        with self._counting:
            if self._waiting >= self._most:
                raise busy(
                    f"{self._most} requests to look inside are waiting already. Ask again in a moment."
                )
            self._waiting += 1
        try:
            with self._turn:
                if job.over is None:
                    served.scheduler.wait_until_quiet(max(0.0, until - time.monotonic()))
                if job.over is not None:
                    raise job.over
                return self._thread.submit(work).result()
        finally:
            with self._counting:
                self._waiting -= 1
