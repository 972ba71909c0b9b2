"""A client's request while it is processed; it may be cancelled before its results exist."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from regard.serve.http.errors import ApiError


class RequestJob:
    """One request. Whatever works on it checks `cancelled` before it continues."""

    def __init__(self, client: str = "") -> None:
        self.client = client
        """Who sent it; clients share the lanes."""
        self.cost = 0.0
        """Cost of the items submitted so far: later items of a long job have lower priority."""
        self.cancelled: ApiError | None = None
        """Why the request was cancelled; None if it was not."""
        self._pending: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def cancel(self, reason: ApiError) -> None:
        """Give up: waiting threads get the error, and queued items never run."""
        with self._lock:
            if self.cancelled is not None:
                return
            self.cancelled, pending = reason, list(self._pending)
        for future in pending:
            _settle(future, error=reason)

    def expect(self, n: int) -> ItemResults:
        """The results of `n` items, once they have run.

        Raises:
            ApiError: the job was cancelled.
        """
        results = ItemResults(n)
        with self._lock:
            if self.cancelled is not None:
                raise self.cancelled
            self._pending.add(results.all)
        results.all.add_done_callback(self._pending.discard)
        return results


class ItemResults:
    """Results that arrive one by one, from several threads, and are wanted together."""

    def __init__(self, n: int) -> None:
        self.all: Future[Sequence[Any]] = Future()
        self._results: list[Any] = [None] * n
        self._n_missing = n
        self._lock = threading.Lock()
        if not n:
            self.all.set_result([])

    def arrived(self, place: int, result: Any) -> None:
        """Store one result."""
        with self._lock:
            self._results[place] = result
            self._n_missing -= 1
            complete = self._n_missing == 0
        if complete:
            _settle(self.all, self._results)

    def failed(self, error: BaseException) -> None:
        """One item failed, and so does the whole."""
        _settle(self.all, error=error)


def _settle(future: Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    """Complete a future that other threads may complete at the same time; the first one wins."""
    with suppress(InvalidStateError):
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
