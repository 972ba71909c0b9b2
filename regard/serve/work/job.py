"""One client's request while it is worked on: it can end before its results are there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from regard.serve.http.errors import Refusal


class Job:
    """What a client waits for. Whoever works on it looks at `over` before going on."""

    def __init__(self) -> None:
        self.tokens = 0
        """Input tokens asked for so far: what comes later in a long job stands further back."""
        self.over: Refusal | None = None
        """Why nobody waits for it any more."""
        self._open: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def end(self, why: Refusal) -> None:
        """Give up: whoever waits hears why, and what has not begun never will."""
        with self._lock:
            if self.over is not None:
                return
            self.over, waits = why, list(self._open)
        for wait in waits:
            _settle(wait, error=why)

    def expect(self, n_parts: int) -> Parts:
        """Room for the results of some parts.

        Raises:
            Refusal: the job is over.
        """
        parts = Parts(n_parts)
        with self._lock:
            if self.over is not None:
                raise self.over
            self._open.add(parts.all)
        parts.all.add_done_callback(self._open.discard)
        return parts


class Parts:
    """Results that come one by one, from several threads, and are wanted together."""

    def __init__(self, n_parts: int) -> None:
        self.all: Future[Sequence[Any]] = Future()
        self._results: list[Any] = [None] * n_parts
        self._missing = n_parts
        self._lock = threading.Lock()
        if not n_parts:
            self.all.set_result([])

    def arrived(self, place: int, result: Any) -> None:
        """One result."""
        with self._lock:
            self._results[place] = result
            self._missing -= 1
            complete = self._missing == 0
        if complete:
            _settle(self.all, self._results)

    def failed(self, error: BaseException) -> None:
        """One part cannot be done, and so the whole cannot."""
        _settle(self.all, error=error)


def _settle(future: Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    """End a future that others may be ending at this moment; the first one has its say."""
    with suppress(InvalidStateError):
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
