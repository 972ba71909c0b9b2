"""A connection that ends where no request comes of it.

uvicorn waits without end for the rest of a request's head, so whoever opens connections and says next to
nothing on them can use up all that a process may have.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_S = 60.0
"""Seconds in which the head of a request must come whole: as long as its body has."""


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's, with a limit to its patience."""

    _limit: asyncio.TimerHandle | None = None
    cycle: Any
    """The request that is being answered, or was the last."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Hear of a request, or of a part of it."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Have a limit exactly while a head is not whole; behind an answer uvicorn has one of its own."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._limit is None:
            self._limit = asyncio.get_running_loop().call_later(HEAD_S, self._give_up)

    def _give_up(self) -> None:
        self._limit = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _stop(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
