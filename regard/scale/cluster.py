"""The Ray cluster that work is given to: one that runs already, or one that is started here."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from regard.errors import ConfigError

LOCAL, AUTO = "local", "auto"
PATIENCE_S = 5.0
"""Seconds that an address has to answer."""
SETTINGS = b"\x04"
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + SETTINGS + b"\0" * 5
"""How HTTP/2, which Ray's machines speak, begins; the answer is a frame of settings too (RFC 9113, 3.4)."""
OBJECTS = 128 << 20
"""Bytes for what travels on a cluster that is started here: models do not, they lie on the same disk."""


class Cluster(NamedTuple):
    """What there is to work with."""

    is_local: bool
    """Whether it is this machine alone."""
    cpus: int
    gpus: int

    def fitting(self, wanted: int | None, what: str, *, threads: int, gpu: bool) -> int:
        """How many workers or replicas to start: as many as are wanted, or as there is room for.

        Raises:
            ConfigError: there is no room for so many.
        """
        room = self.gpus if gpu else self.cpus // threads
        each = "a GPU" if gpu else f"{threads} core{'' if threads == 1 else 's'}"
        if (wanted or 1) > room:
            has = f"{self.gpus} GPUs" if gpu else f"{self.cpus} cores"
            raise ConfigError(f"{wanted or 1} {what} of {each} each: the Ray cluster has {has} in all")
        return wanted or room


def ray_or_refuse(module: str = "ray") -> Any:
    """The module `ray`, or one inside of it.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        needed = error.name or module
        raise ConfigError(f"{needed} is needed for --ray: pip install 'regard[scale]'") from None


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """Be part of a cluster for as long as the block runs; a process that is part of one stays in it.

    Args:
        address: `local` starts one on this machine, which ends with the block; `auto` finds the one that runs
            here, or that `RAY_ADDRESS` names; else HOST:PORT of a cluster's head.

    Raises:
        ConfigError: Ray is not installed, or nobody answers.
    """
    ray = ray_or_refuse()
    if ray.is_initialized():
        yield _described(ray)
        return
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS") or AUTO
    if address not in (LOCAL, AUTO):
        _refuse_strangers(address)
    quiet = {"logging_level": "error", "log_to_driver": False}
    try:
        if address == LOCAL:
            # Ray would tell its makers of every cluster, and listen at every address of this machine.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(
                LOCAL,
                include_dashboard=False,
                object_store_memory=OBJECTS,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
        else:
            ray.init(address, **quiet)
    except Exception as error:  # Ray's own are of no kind in particular
        ray.shutdown()
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if address == LOCAL:
            raise ConfigError(f"Ray did not start here: {first}") from error
        how = "`ray start --head` starts one, and --ray local starts one for this run alone"
        raise ConfigError(f"no Ray cluster at {address!r}: {first}; {how}") from error
    try:
        yield _described(ray)
    finally:
        ray.shutdown()


def _described(ray: Any) -> Cluster:
    has = ray.cluster_resources()
    return Cluster(len(ray.nodes()) == 1, int(has.get("CPU", 0)), int(has.get("GPU", 0)))


def _refuse_strangers(address: str) -> None:
    """Ask who is there: Ray itself would wait for minutes, and then end the process."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise ConfigError(f"--ray {address}: expected local, auto or HOST:PORT of a cluster's head")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S) as connection:
            connection.sendall(GREETING)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"nobody answers at {address}: {why}; `ray status` tells a head's address"
        ) from error
    if answer[3:4] != SETTINGS:
        raise ConfigError(f"who answers at {address} is no Ray cluster; `ray status` tells a head's address")
