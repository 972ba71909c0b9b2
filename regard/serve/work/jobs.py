"""A client's request while it is processed; it may be cancelled before its results exist."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any

from regard.serve.http.errors import ApiError
from regard.serve.work.turns import Turns


class RequestJob:
    """One request. Whatever works on it checks `cancelled` before it continues."""

    def __init__(self, client: str = "", turns: Turns | None = None) -> None:
        self.client = client
        """Who sent it; clients share the lanes, and the interpreter."""
        self._turns = turns
        self._turn: tuple[Future[Any], float] | None = None
        """Its turn, and when it began."""
        self.cost = 0.0
        """Cost of the items submitted so far: later items of a long job have lower priority."""
        self.cancelled: ApiError | None = None
        """Why the request was cancelled; None if it was not."""
        self._pending: set[Future[Any]] = set()
        self._lock = threading.Lock()

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run inside when this job has its turn.

        Raises:
            ApiError: the job was cancelled before.
        """
        self._take_turn()
        try:
            yield
        finally:
            self._give_turn_back()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While this thread waits for others, another job has its turn."""
        had_turn = self._turn is not None
        self._give_turn_back()
        try:
            yield
        finally:
            if had_turn:
                self._take_turn()

    def _take_turn(self) -> None:
        if self._turns is not None:
            turn = self.expect(1).all
            self._turn = turn, self._turns.wait(self.client, turn)

    def _give_turn_back(self) -> None:
        if self._turns is not None and self._turn is not None:
            self._turns.give_back(self.client, *self._turn)
            self._turn = None

    def cancel(self, reason: ApiError) -> None:
        """Give up: waiting threads get the error, and queued items never run."""
        with self._lock:
            if self.cancelled is not None:
                return
            self.cancelled, pending = reason, list(self._pending)
        for future in pending:
            _settle(future, error=reason)

    def check(self) -> None:
        """Raise the reason why the request was cancelled, if it was.

        Raises:
            ApiError: it was.
        """
        if self.cancelled is not None:
            raise self.cancelled

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
