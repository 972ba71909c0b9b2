"""The Ray cluster to work on: one that already runs, or one that is started here."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from regard.errors import ConfigError
from regard.host import usable_cores

LOCAL, AUTO = "local", "auto"
PATIENCE_S = 5.0
"""Seconds to wait for an answer from an address."""
SETTINGS = b"\x04"
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + SETTINGS + b"\0" * 5
"""Opens an HTTP/2 connection, as Ray uses them; the answer begins with a SETTINGS frame (RFC 9113, 3.4)."""
OBJECTS = 128 << 20
"""Bytes of Ray's object store on a local cluster; models are read from disk and do not pass through it."""


class Cluster(NamedTuple):
    """The resources of a cluster."""

    is_local: bool
    """Whether it has no other machine than this one."""
    cpus: int
    gpus: int

    def room_for(self, what: str, number: int | None, *, threads: int, gpu: bool) -> int:
        """The number of workers or replicas to start: by default as many as there is room for.

        Raises:
            ConfigError: there is no room for `number`.
        """
        room = self.gpus if gpu else self.cpus // threads
        if (number or 1) > room:
            needs = "a GPU" if gpu else f"{threads} core{'' if threads == 1 else 's'}"
            has = f"{self.gpus} GPUs" if gpu else f"{self.cpus} cores"
            problem = f"{number or 1} {what} of {needs} each: the Ray cluster has {has} in all"
            raise ConfigError(problem, code="no_room")
        return number or room


def import_ray(module: str = "ray") -> Any:
    """The module `ray`, or one of its submodules.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        problem = f"--ray needs {error.name or module}: pip install 'regard[scale]'"
        raise ConfigError(problem, code="missing_library") from None


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """Join a cluster for the duration of the block; a process that has joined one before stays in it.

    Args:
        address: `local` starts a cluster on this machine, which ends with the block; `auto` finds the one
            that runs here or that `RAY_ADDRESS` names; HOST:PORT is a cluster's head.

    Raises:
        ConfigError: Ray is not installed, or the address does not answer.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield _described(ray)
        return
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS") or AUTO
    if address not in (LOCAL, AUTO):
        _check_address(address)
    quiet = {"logging_level": "error", "log_to_driver": False}
    try:
        if address == LOCAL:
            # By default Ray reports its usage over the network, and listens on all interfaces.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(
                LOCAL,
                num_cpus=usable_cores(),  # Ray itself counts the cores of the machine
                include_dashboard=False,
                object_store_memory=OBJECTS,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
        else:
            ray.init(address, **quiet)
    except Exception as error:  # Ray raises plain exceptions of many classes
        ray.shutdown()
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if address == LOCAL:
            raise ConfigError(f"Ray did not start on this machine: {first}", code="no_cluster") from error
        remedy = "start one with `ray start --head`, or one for this run alone with --ray local"
        raise ConfigError(f"no Ray cluster at {address!r}: {first}; {remedy}", code="no_cluster") from error
    try:
        yield _described(ray)
    finally:
        ray.shutdown()


def _described(ray: Any) -> Cluster:
    resources = ray.cluster_resources()
    return Cluster(len(ray.nodes()) == 1, int(resources.get("CPU", 0)), int(resources.get("GPU", 0)))


def _check_address(address: str) -> None:
    """Refuse an address without a Ray cluster; Ray itself would wait for minutes, and then exit."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal():
        problem = f"--ray {address}: expected local, auto or HOST:PORT of a cluster's head"
        raise ConfigError(problem, code="bad_address")
    remedy = "`ray status` shows a head's address"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S) as connection:
            connection.sendall(GREETING)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{address} does not answer: {why}; {remedy}", code="no_cluster") from error
    if answer[3:4] != SETTINGS:
        raise ConfigError(f"the server at {address} is not a Ray cluster; {remedy}", code="no_cluster")
