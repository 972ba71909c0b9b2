"""The server process: binds an address, loads models, serves, and finishes open requests on a signal."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from regard.engine.loading import EngineName
from regard.errors import ConfigError
from regard.host import allow_open_files, share_freed_memory, step_back
from regard.serve.http.app import create_app
from regard.serve.http.connections import SPARE, Connection, Connections
from regard.serve.http.dependencies import AppState, is_loopback
from regard.serve.http.keys import KeyRing
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import load_models
from regard.serve.work.pool import Pool

CLOSING_S = 5
"""Seconds for connections to close after all requests are finished."""
IDLE_S = 75
"""Seconds that an idle connection stays open: longer than the 60 of usual proxies."""
ACCEPTING_S = 0.2
"""Seconds that a stopping server still answers connections that were made before: a reset loses a request."""
STOPPING_S = 2.0
"""Seconds for the threads of a stopped server to end; one that does not end is left behind."""
TICKS = 10
"""Ticks of uvicorn's loop in a second."""
RECEIVED_BYTES = 64 << 10
"""Data that the system keeps for a connection before the event loop reads it.

uvloop reads a connection until there is no more, and others wait meanwhile; the default may be megabytes.
"""
SWITCH_S = 0.0005
"""Seconds that a thread may hold the interpreter while others wait, a tenth of the default.

The event loop needs the interpreter several times per request, and waits for threads that prepare texts.
"""
TRIM_S = 5
"""Seconds between two times that freed memory is returned to the system."""


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
    proxies: Sequence[str] = ()
    """Addresses of proxies whose X-Forwarded-For header is believed."""
    limits: Limits = field(default_factory=Limits)


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
    sys.setswitchinterval(SWITCH_S)
    allow_open_files(settings.limits.connections + SPARE)
    check_access(settings)
    with listen(settings.host, settings.port) as listener:
        metrics = Metrics()
        load = partial(load_models, models, metrics, engine=engine, device=device, threads=threads)
        # Threads of engines leave the cores to the event loop and to short requests.
        registry = Pool(1, "loading", step_back).submit(load).result()
        log_to_stderr(requests=log_requests)
        keys = None if settings.keys is None else KeyRing.of_file(settings.keys)
        state = AppState(registry, metrics, limits=settings.limits, keys=keys)
        hosts = [settings.host, *settings.names]
        app = create_app(state, hosts=hosts, cors_origins=settings.cors_origins)
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"

        def announce() -> None:
            for served in registry:
                print(f"regard: {served.id}: {served.summary}", file=sys.stderr)
            print(f"regard: serving at {address}", file=sys.stderr, flush=True)

        Server(app, state, announce, proxies=settings.proxies).run([listener])
        if not state.close(STOPPING_S):
            _leave()


def _leave() -> None:
    """End the process although threads still run.

    Python would end them in the middle of native code, which may abort the process.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    atexit._run_exitfuncs()
    os._exit(0)


class Server(uvicorn.Server):
    """uvicorn with a graceful stop: not ready, drained, stopped; the second signal stops at once."""

    def __init__(
        self,
        app: ASGIApp,
        state: AppState,
        on_start: Callable[[], None] = lambda: None,
        *,
        proxies: Sequence[str] = (),
    ) -> None:
        """Prepare to serve an application with this state."""
        self._connections = Connections(state.limits)
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(Connection, connections=self._connections),  # type: ignore[arg-type]
                ws="none",
                access_log=False,
                log_level="critical",  # a line per malformed request would fill a disk
                server_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
                timeout_graceful_shutdown=CLOSING_S,
                timeout_keep_alive=IDLE_S,
                lifespan="off",
            )
        )
        self._executor, self._on_start = state.executor, on_start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: asyncio.Future[Any] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._on_start()

    async def on_tick(self, counter: int) -> bool:
        """Do what is due every tenth of a second."""
        if counter % TICKS == 0:
            self._connections.drop_slow_readers(time.monotonic())
        if counter % (TICKS * TRIM_S) == 0:
            self._executor.return_memory()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new connections, answer those that wait to be accepted, and close."""
        for each in sockets or ():
            each.listen(0)
        await asyncio.sleep(ACCEPTING_S)
        await super().shutdown(sockets)

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
        listener = socket.create_server((host, port), family=family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)  # of its connections
        return listener
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


def log_to_stderr(*, requests: bool) -> None:
    """Log errors to stderr, and every request if wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("regard.serve")
    log.addHandler(handler)
    log.setLevel(logging.INFO if requests else logging.WARNING)
    log.propagate = False
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it warns of every malformed form
