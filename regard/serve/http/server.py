"""A server that runs until it is told to stop, and then finishes what it has begun."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from regard.errors import ConfigError
from regard.serve.http.connection import Connection
from regard.serve.work.desk import Desk

CLOSING_S = 5
"""Seconds that connections have to end after all work is done."""

IDLE_S = 75
"""Seconds that a connection on which nobody asks stays open: longer than proxies keep theirs, which is 60."""


class Server(uvicorn.Server):
    """uvicorn, with a way out: not ready, then drained, then stopped; at once at the second signal."""

    def __init__(self, app: ASGIApp, desk: Desk, started: Callable[[], None] = lambda: None) -> None:
        """Prepare to serve an application that takes on work at a desk; `started` is told when it runs."""
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
        self._desk, self._started = desk, started
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drained: asyncio.Future[Any] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Hear a signal."""
        if self._loop is None or self._desk.draining:
            super().handle_exit(sig, frame)
            return
        self._desk.draining = True
        self.stop()

    def stop(self) -> None:
        """Finish what has begun, and stop. May be called from any thread."""
        assert self._loop is not None, "a server stops after it has started"
        self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._drained = asyncio.ensure_future(self._desk.drain())
        self._drained.add_done_callback(lambda _: setattr(self, "should_exit", True))


def listening(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 is any that is free.

    Raises:
        ConfigError: it is taken, or not this machine's.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another --host or --port"
        ) from error


def refuse_open_door(host: str, *, has_keys: bool, is_open: bool) -> None:
    """Refuse to let a whole network in by mistake.

    Raises:
        ConfigError: the address is not of this machine alone, and anybody might ask.
    """
    if has_keys or is_open or is_loopback(host):
        return
    raise ConfigError(
        f"at {host} others than this machine can ask: give --keys FILE (--new-key NAME makes a key), "
        "or --open to let everybody in"
    )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_to_stderr(*, requests: bool) -> None:
    """Have failures written to stderr, and every request too where that is wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("regard.serve")
    log.addHandler(handler)
    log.setLevel(logging.INFO if requests else logging.WARNING)
    log.propagate = False
