"""Connections with the limits that uvicorn's lack: their number, and size and time of what they carry."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from regard.serve.http.limits import Limits, Pacing
from regard.serve.work.turns import Turnstile

LINGER_S = 10.0
"""Seconds that the rest of a request is discarded after an early response …"""
LINGER_BYTES = 16 << 20
"""… and bytes, so that a client cannot keep the connection by sending."""
GOODBYE_S = 1.0
"""Seconds for a client to notice that the server closes a connection without a request."""
FEW = 16
"""Connections of one address that may be among the last quarter of all."""
SPARE = 512
"""Open files beside the connections that are served: those of refused connections, models and journals."""
PIPELINED = 16
"""Requests that a client may send before it has the response to the first one."""
PROGRESS = 256 << 10
"""Bytes of a response that a client must read within `write_s`, or the rest of it."""
OVERHEAD = 8
"""Bytes that a body in chunks of one byte takes per byte."""
CHUNKS, CHUNK_BYTES = 1000, 64
"""Chunks of a body of any size; if there are more, they must have this many bytes on average."""
AUTHORITY = "authority"
"""In a request's state: the host in the URL, if the client sent a whole URL instead of a path."""


class Lingering:
    """A transport that counts what is written, and closes after the client has read the response.

    A system that closes a connection with unread data resets it, and a client that is still writing loses the
    response. So the first `close` only ends the output; the rest of the request is discarded, within limits.
    """

    def __init__(self, transport: asyncio.Transport, unread: Callable[[], bool]) -> None:
        """Wrap a transport; `unread` says whether a part of a request is still to come."""
        self._transport, self._unread = transport, unread
        self._left = LINGER_BYTES
        self._timeout: asyncio.TimerHandle | None = None
        self.n_written = 0
        """Bytes that were written, read by the client or not."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    @property
    def lingers(self) -> bool:
        """Whether the rest of the request is being discarded."""
        return self._timeout is not None

    def is_closing(self) -> bool:
        """Whether no further response will be sent."""
        return self.lingers or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send data, unless the connection is closed."""
        if not self._transport.is_closing():
            self.n_written += len(data)
            self._transport.write(data)

    def close(self) -> None:
        """Close, at once or after the rest of the request; the second call closes at once."""
        if self.is_closing() or not self._unread():
            self.finish()
        else:
            self.linger(LINGER_S)

    def linger(self, seconds: float) -> None:
        """End the output, discard what still comes, and close after these seconds at the latest."""
        if self.is_closing() or not self._transport.can_write_eof():
            self.finish()
            return
        self._timeout = asyncio.get_running_loop().call_later(seconds, self.finish)
        self._transport.write_eof()
        self._transport.resume_reading()

    def discard(self, data: bytes) -> None:
        """Take note of data that is not read."""
        self._left -= len(data)
        if self._left < 0:
            self.finish()

    def finish(self) -> None:
        """Close at once."""
        if self._timeout is not None:
            self._timeout.cancel()
        self._transport.close()


class Connections:
    """The open connections of a server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: set[LimitedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self.pacing, self.turnstile = Pacing(limits.errors_a_second), Turnstile()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: LimitedConnection) -> None:
        """Count a connection; refuse it if there are too many."""
        self._open.add(connection)
        self._by_address[connection.address] += 1
        n_open, n_own, most = len(self._open), self._by_address[connection.address], self.limits.connections
        if n_open > most + SPARE // 2:  # there is no room to be polite
            connection.transport.abort()
        elif n_open > most or (n_open > most * 3 // 4 and n_own > FEW):
            connection.refuse(503, "There are too many connections. Retry in a moment.", GOODBYE_S)
        elif n_own > self.limits.connections_per_address:
            connection.refuse(429, "This address has too many connections. Retry in a moment.", GOODBYE_S)

    def remove(self, connection: LimitedConnection) -> None:
        """Forget a closed connection."""
        if connection in self._open:
            self._open.discard(connection)
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def drop_slow_readers(self, now: float) -> None:
        """Reset connections whose clients do not read; called again and again."""
        for connection in list(self._open):
            if connection.is_stalled(now):
                connection.transport.abort()


class LimitedConnection(asyncio.Protocol):
    """Adds limits to one of uvicorn's protocols; it comes before it in the order of inheritance."""

    cycle: Any
    """The current request, or the last one."""
    transport: Lingering
    url: bytes
    headers: list[tuple[bytes, bytes]]
    pipeline: Sequence[Any]
    scope: dict[str, Any]
    flow: Any
    """What pauses reading while a body is not consumed."""

    def __init__(self, *arguments: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connections, self._limits = connections, connections.limits
        self._timeout: asyncio.TimerHandle | None = None
        self._n_received = 0
        """Bytes of the head that arrives, or of the body."""
        self._n_chunks, self._n_body = 0, 0
        self._has_unparsed = False
        """Whether data waits to be parsed; no more is read meanwhile."""
        self._is_refused = False
        """Whether nothing more is read."""
        self._progress: tuple[float, int] | None = None
        """When the client had last read much, and how much it had read in all."""
        self.address = ""

    # --- events of the transport

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        super().connection_made(Lingering(transport, lambda: self._in_body))  # type: ignore[arg-type]
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._connections.add(self)
        self._update_timeout()

    def data_received(self, data: bytes) -> None:
        """Receive a request, or a part of it."""
        if self.transport.lingers:
            self.transport.discard(data)
            return
        if self._ignores_data():
            return
        if not self._connections.turnstile.begin(self.address, partial(self._parse, data)):
            self._has_unparsed = True
            self.transport.pause_reading()

    def _parse(self, data: bytes) -> None:
        if self._has_unparsed:
            self._has_unparsed = False
            if not self.flow.read_paused:
                self.transport.resume_reading()
        if self.transport.is_closing() or self._ignores_data():
            return
        before = self.cycle, self._in_body
        super().data_received(data)
        if self.transport.is_closing() or self._ignores_data():
            return
        has_moved_on = before != (self.cycle, self._in_body)
        self._n_received = 0 if has_moved_on else self._n_received + len(data)
        if self._in_body and self._n_received > OVERHEAD * self._limits.body_bytes + self._limits.head_bytes:
            self.refuse(413, "The body of the request is too large.")
        elif not self._in_body and self._n_received > self._limits.head_bytes:
            self.refuse(431, f"The head of a request may have {self._limits.head_bytes:,} bytes.")
        self._update_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timeout()
        self._connections.remove(self)
        self.transport.finish()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close as soon as there is no request; a client may be sending one, so its output is discarded."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.linger(GOODBYE_S)
        else:
            super().shutdown()  # type: ignore[misc]

    # --- events of httptools' parser

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer after a body."""
        if len(self.headers) > 2 * self._limits.headers:  # the middleware answers for up to so many
            raise ValueError("too many headers")
        super().on_header(name, value)  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        """Begin a request."""
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests at a time")
        if self.url[:1] not in (b"/", b"*"):
            self.scope["state"][AUTHORITY] = urlsplit(self.url.decode("latin-1")).netloc
        self._n_chunks, self._n_body = 0, 0
        super().on_headers_complete()  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        """Take a chunk of a body; parsing tiny ones takes a thousand times as long as receiving them."""
        self._n_chunks += 1
        self._n_body += len(body)
        if self._n_chunks > max(CHUNKS, self._n_body // CHUNK_BYTES):
            raise ValueError("the chunks are too small")
        super().on_body(body)  # type: ignore[misc]

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self.refuse(400, msg)

    # --- limits

    def refuse(self, status: int, message: str, linger_s: float = LINGER_S) -> None:
        """Answer what is not going to be read, and close; while another response is sent, just close.

        A client that is refused often waits for it: it could begin again at once, hundreds of times a second.
        """
        if self._is_refused or self.transport.is_closing():
            self.transport.abort()
            return
        self._is_refused = True
        self._stop_timeout()
        if pipeline := getattr(self, "pipeline", None):  # h11 parses no request before the last is answered
            pipeline.clear()
        close = partial(self._close_with, status, message, linger_s)
        is_full = status in (429, 503)  # there are too many connections: this one must not stay
        if is_full or not (seconds := self._connections.pacing.delay(self.address)):
            close()
            return
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, close)

    def _close_with(self, status: int, message: str, linger_s: float) -> None:
        if not self._is_between_requests or self.transport.is_closing():
            self.transport.abort()
            return
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain; charset=utf-8"
        length = f"Content-Length: {len(message)}\r\nConnection: close\r\nRetry-After: 1"
        self.transport.write(f"{head}\r\n{length}\r\n\r\n{message}".encode())
        self.transport.linger(linger_s)

    def is_stalled(self, now: float) -> bool:
        """Whether the client has not read enough of a response for too long."""
        if not (n_unread := self.transport.get_write_buffer_size()):
            self._progress = None
            return False
        n_read = self.transport.n_written - n_unread
        if self._progress is None or n_read >= self._progress[1] + PROGRESS:
            self._progress = now, n_read
        return now > self._progress[0] + self._limits.write_s

    def _ignores_data(self) -> bool:
        return self._is_refused

    @property
    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _in_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body

    def _update_timeout(self) -> None:
        """Have a timeout exactly while a head is incomplete; after a response, uvicorn has its own."""
        if not self._is_between_requests or self._is_refused:
            self._stop_timeout()
        elif self._timeout is None:
            loop = asyncio.get_running_loop()
            self._timeout = loop.call_later(self._limits.head_s, self._time_out)

    def _time_out(self) -> None:
        self._timeout = None
        if self._is_between_requests:
            if self._n_received:
                self.refuse(408, "The request did not arrive in time.")
            else:
                self.transport.close()

    def _stop_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


class Connection(LimitedConnection, AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection of the server, with the faster HTTP parser that is installed."""
