"""Turns: how few places are shared by many clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")
IDLE_CLIENTS = 1000
"""Clients that wait for nothing whose shares are remembered: the last ones."""


class FairQueue(Generic[T]):
    """What waits, by client: next is the client that has had least, counted from when it began to wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._had: dict[str, float] = {}
        self._now = 0.0
        """What the client whose turn was last had had by then: newcomers begin there."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, client: str, entry: T) -> None:
        """Add an entry of a client."""
        if client not in self._waiting:
            self._had[client] = max(self._now, self._had.get(client, 0.0))
            self._waiting[client] = deque()
        self._waiting[client].append(entry)

    def pop(self, amount: float = 0.0) -> T:
        """Remove the next entry, and count this amount; `charge` counts what is known later."""
        client = min(self._waiting, key=self._had.__getitem__)
        self._now = self._had[client]
        entries = self._waiting[client]
        entry = entries.popleft()
        if not entries:
            del self._waiting[client]
        self.charge(client, amount)
        return entry

    def charge(self, client: str, amount: float) -> None:
        """Count what a client has had."""
        self._had[client] = max(self._now, self._had.pop(client, 0.0)) + amount  # now the newest entry
        while len(self._had) > IDLE_CLIENTS + len(self._waiting):
            oldest = next(name for name in self._had if name not in self._waiting)
            del self._had[oldest]


class Turnstile:
    """Lets a few calls through in every turn of the event loop; clients with few calls go first.

    Hundreds of requests that arrive together take a second. Health checks, new connections and whatever else
    is due need not wait for all of them.
    """

    PER_TURN = 4

    def __init__(self) -> None:
        self._n_begun, self._waiting = 0, FairQueue[Callable[[], object]]()

    def begin(self, client: str, call: Callable[[], object]) -> bool:
        """Make a call in a turn with room; returns whether that is this one."""
        has_room = self._n_begun < self.PER_TURN and not self._waiting
        self._waiting.put(client, call)
        if has_room:
            self._begin(self._waiting.pop(1))
        return has_room

    async def enter(self, client: str) -> None:
        """Wait for a turn with room."""
        turn = asyncio.get_running_loop().create_future()

        def let_in() -> None:
            if not turn.done():  # as it is when the request was given up
                turn.set_result(None)

        self.begin(client, let_in)
        await turn

    def _begin(self, call: Callable[[], object]) -> None:
        if not self._n_begun:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._n_begun += 1
        call()

    def _next_turn(self) -> None:
        self._n_begun = 0
        while self._waiting and self._n_begun < self.PER_TURN:
            self._begin(self._waiting.pop(1))


class Turns:
    """Lets one thread at a time run Python, unless it takes long.

    Threads that run Python share the interpreter: a dozen of them delay the event loop and each other, and
    are no faster together. The client whose turns have taken least time goes first.
    """

    def __init__(self, longest_s: float) -> None:
        """After `longest_s` a turn does not keep others waiting: it may never end."""
        self._longest_s = longest_s
        self._waiting = FairQueue[Future[Any]]()
        self._current: Future[Any] | None = None
        self._began = 0.0
        self._lock = threading.Lock()

    def wait(self, client: str, turn: Future[Any]) -> float:
        """Wait for a turn, which completes a future, and return when it began.

        Raises:
            ApiError: the future was completed by an error instead.
        """
        with self._lock:
            self._waiting.put(client, turn)
            if self._current is None:
                self._next()
        while True:
            with suppress(TimeoutError):
                turn.result(self._longest_s)
                return time.monotonic()
            with self._lock:
                if time.monotonic() > self._began + self._longest_s:
                    self._next()

    def give_back(self, client: str, turn: Future[Any], began: float) -> None:
        """End a turn."""
        with self._lock:
            self._waiting.charge(client, time.monotonic() - began)
            if turn is self._current:
                self._next()

    def _next(self) -> None:
        self._current, self._began = None, time.monotonic()
        while self._waiting and self._current is None:
            turn = self._waiting.pop()
            with suppress(InvalidStateError):  # its job was cancelled
                turn.set_result([None])
                self._current = turn
