"""The server process: binds an address, loads models, serves, and finishes open requests on a signal."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from regard.engine.loading import EngineName
from regard.errors import ConfigError
from regard.host import share_freed_memory
from regard.serve.http.app import create_app
from regard.serve.http.dependencies import AppState
from regard.serve.http.keys import KeyRing, read_keys
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from regard.serve.work.executor import RequestExecutor

CLOSING_S = 5
"""Seconds for connections to close after all requests are finished."""
IDLE_S = 75
"""Seconds that an idle connection stays open: longer than the 60 of usual proxies."""
HEAD_S = 60.0
"""Seconds for the head of a request to arrive, as for its body."""
LINGER_S = 10.0
"""Seconds that the rest of a request is discarded after an early response …"""
LINGER_BYTES = 64 << 20
"""… and bytes, so that a client cannot keep the connection by sending."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """Where to listen, and who has access."""

    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    without_keys: bool = False
    """Whether an address that other machines can reach may be served without keys."""
    names: Sequence[str] = ()
    """Names of this server, in addition to its address."""
    cors_origins: Sequence[str] = ()


def serve(
    models: Sequence[Path],
    settings: ServerSettings,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    log_requests: bool = False,
) -> None:
    """Serve models until a signal, and then finish open requests.

    Raises:
        ConfigError: the server would be open to a network, the address is taken, or a model cannot be served.
        BundleError: a model folder is missing or damaged.
    """
    share_freed_memory()
    check_access(settings)
    keys = None if settings.keys is None else KeyRing(read_keys(settings.keys))
    with listen(settings.host, settings.port) as listener:
        metrics = Metrics()
        registry = load_models(models, metrics, engine=engine, device=device, threads=threads)
        state = AppState(registry, metrics, keys=keys)
        hosts = [settings.host, *settings.names]
        app = create_app(state, hosts=hosts, cors_origins=settings.cors_origins)
        log_to_stderr(requests=log_requests)
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"

        def announce() -> None:
            for served in registry:
                print(f"regard: {served.id}: {served.summary}", file=sys.stderr)
            print(f"regard: serving at {address}", file=sys.stderr, flush=True)

        Server(app, state.executor, announce).run([listener])
        state.inspector.close()
        registry.close()


class Lingering:
    """A transport that closes after the client has read the response.

    A system that closes a connection with unread data resets it, and a client that is still writing loses the
    response. So the first `close` only ends the output; the rest of the request is discarded, within limits.
    """

    def __init__(self, transport: asyncio.Transport, unread: Callable[[], bool]) -> None:
        """Wrap a transport; `unread` says whether a part of a request is still to come."""
        self._transport, self._unread = transport, unread
        self._left = LINGER_BYTES
        self._timeout: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    @property
    def lingers(self) -> bool:
        """Whether the rest of the request is being discarded."""
        return self._timeout is not None

    def is_closing(self) -> bool:
        """Whether no further response will be sent."""
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        """Close, at once or after the rest of the request; the second call closes at once."""
        if self.is_closing() or not self._unread() or not self._transport.can_write_eof():
            self.finish()
            return
        self._timeout = asyncio.get_running_loop().call_later(LINGER_S, self.finish)
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


class ConnectionLimits(asyncio.Protocol):
    """What uvicorn's connections lack: a timeout for a request's head, and a close that loses no response.

    uvicorn waits forever for the rest of a head, so idle connections could exhaust a process.
    """

    _timeout: asyncio.TimerHandle | None = None
    _invalid = False
    cycle: Any
    """The current request, or the last one."""
    transport: Lingering

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        super().connection_made(Lingering(transport, self._expects_more))  # type: ignore[arg-type]
        self._update_timeout()

    def data_received(self, data: bytes) -> None:
        """Receive a request, or a part of it."""
        if self.transport.lingers:
            self.transport.discard(data)
            return
        super().data_received(data)
        self._update_timeout()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._invalid = True
        super().send_400_response(msg)  # type: ignore[misc]

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timeout()
        self.transport.finish()
        super().connection_lost(exc)

    def _expects_more(self) -> bool:
        return self._invalid or (self.cycle is not None and self.cycle.more_body)

    def _update_timeout(self) -> None:
        """Have a timeout exactly while a head is incomplete; after a response, uvicorn has its own."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timeout()
        elif self._timeout is None:
            self._timeout = asyncio.get_running_loop().call_later(HEAD_S, self._time_out)

    def _time_out(self) -> None:
        self._timeout = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _stop_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


class Connection(ConnectionLimits, AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection of the server, with the faster HTTP parser that is installed."""


class Server(uvicorn.Server):
    """uvicorn with a graceful stop: not ready, drained, stopped; the second signal stops at once."""

    def __init__(
        self, app: ASGIApp, executor: RequestExecutor, on_start: Callable[[], None] = lambda: None
    ) -> None:
        """Prepare to serve an application whose work runs in `executor`."""
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=CLOSING_S,
                timeout_keep_alive=IDLE_S,
                lifespan="off",
            )
        )
        self._executor, self._on_start = executor, on_start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: asyncio.Future[Any] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self._loop is None or self._executor.draining:
            super().handle_exit(sig, frame)
            return
        self._executor.draining = True
        self.stop()

    def stop(self) -> None:
        """Finish open requests, and stop. May be called from any thread."""
        assert self._loop is not None, "a server stops after it has started"
        self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._drained = asyncio.ensure_future(self._executor.drain())
        self._drained.add_done_callback(lambda _: setattr(self, "should_exit", True))


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 is any free one.

    Raises:
        ConfigError: the address is taken, or not of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another --host or --port",
            code="address_unavailable",
        ) from error


def check_access(settings: ServerSettings) -> None:
    """Check that a server is not open to a network by mistake.

    Raises:
        ConfigError: other machines can reach the address, and there are no keys.
    """
    if settings.keys is None and not settings.without_keys and not is_loopback(settings.host):
        raise ConfigError(
            f"other machines can reach {settings.host}: use --keys FILE (--new-key NAME creates a key), "
            "or --open to serve without keys",
            code="open_server",
        )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_to_stderr(*, requests: bool) -> None:
    """Log errors to stderr, and every request if wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("regard.serve")
    log.addHandler(handler)
    log.setLevel(logging.INFO if requests else logging.WARNING)
    log.propagate = False
