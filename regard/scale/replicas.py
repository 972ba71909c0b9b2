"""Replicas of the server at one address, with Ray Serve; a replica is the application of `regard serve`.

A client requests its trace several times, so one replica makes and keeps all traces, and does nothing else.
Limits and rates are counted per replica.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.engine.loading import EngineName
from regard.errors import ConfigError
from regard.loaded import load
from regard.scale.cluster import import_ray, joined
from regard.scale.shipping import Parcel, packed, unpacked
from regard.serve.http.app import create_app
from regard.serve.http.dependencies import AppState
from regard.serve.http.keys import Key, KeyRing, read_keys
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.http.server import ServerSettings, check_access, listen
from regard.serve.models import load_models, model_id

TRANSLATORS, INSPECTOR = "regard", "regard-inspector"
TRACES = "/api/v1/traces"
NUMBER = "x-request-id"
LOOK_S = 2.0
"""Seconds between two health checks of a replica."""


@contextmanager
def replicated(
    models: Sequence[Path],
    settings: ServerSettings,
    *,
    address: str,
    replicas: int | None = None,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
) -> Iterator[str]:
    """Serve models with replicas on a Ray cluster for the duration of the block; yields the address.

    Args:
        models: model folders, or runs'; the machines of the cluster need not see them.
        settings: where the head of the cluster listens, and who has access.
        address: `local`, `auto`, or HOST:PORT of the cluster's head.
        replicas: the number of replicas; by default as many as the cluster has room for.
        engine: see `regard.load`.
        device: `cuda` gives every replica a GPU.
        threads: CPU cores per replica; default 1.

    Raises:
        ConfigError: Ray is not installed or the cluster does not answer, the server would be open to a
            network, the address is taken, or a model cannot be served.
        BundleError: a model folder is missing or damaged.
    """
    check_access(settings)
    keys = None if settings.keys is None else read_keys(settings.keys)
    _refuse_unservable(models, engine, device)
    with joined(address) as cluster:
        gpu, cores = device == "cuda", threads or 1
        n_replicas = cluster.room_for("replicas", replicas, threads=cores, gpu=gpu)
        port = _free(settings) if cluster.is_local else settings.port
        ray, serve = import_ray(), import_ray("ray.serve")
        if serve.status().proxies:
            raise ConfigError(
                "Ray Serve already runs on this cluster: `serve shutdown` ends it", code="already_serving"
            )
        parcels = [packed(model, None if cluster.is_local else ray) for model in models]
        build = partial(_builder, parcels, settings, keys, engine, cores)
        wants = {"num_gpus": 1} if gpu else {"num_cpus": cores}
        translators = _deployment(
            build("cpu" if device == "auto" else device), TRANSLATORS, n_replicas, wants, settings.limits
        )
        inspector = _deployment(build("cpu", looks=True), INSPECTOR, 1, {"num_cpus": 0}, settings.limits)
        try:
            _start(settings.host, port, {TRACES: inspector, "/": translators})
            yield f"http://{f'[{settings.host}]' if ':' in settings.host else settings.host}:{port}/"
        finally:
            serve.shutdown()


def serve_by_replicas(
    models: Sequence[Path],
    settings: ServerSettings,
    *,
    address: str,
    replicas: int | None = None,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
) -> None:
    """Serve models with replicas until a signal, then finish running requests; see `replicated`."""
    arguments = {
        "address": address,
        "replicas": replicas,
        "engine": engine,
        "device": device,
        "threads": threads,
    }
    stopped = threading.Event()
    with replicated(models, settings, **arguments) as place:  # type: ignore[arg-type]
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        print(f"regard: serving at {place}", file=sys.stderr, flush=True)
        stopped.wait()


def _start(host: str, port: int, applications: dict[str, Any]) -> None:
    """Start Ray Serve at an address, and applications under paths."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    quiet = {"log_level": logging.ERROR, "enable_access_log": False}
    try:
        serve.start("HeadOnly", {"host": host, "port": port}, logging_config=quiet)
        for path, application in applications.items():
            serve.run(application.bind(), name=application.name, route_prefix=path, logging_config=quiet)
    except (RuntimeError, TimeoutError) as error:
        raise ConfigError(f"the replicas did not start: {_cause() or error}", code="worker_died") from error


def _cause() -> str:
    """The last message of the last replica that failed."""
    from ray import serve

    applications = serve.status().applications.values()
    messages = [each.message for one in applications for each in one.deployments.values() if each.message]
    return messages[-1].strip().splitlines()[-1].strip() if messages else ""


def _deployment(
    build: Callable[[], ASGIApp], name: str, n_replicas: int, wants: dict[str, int], limits: Limits
) -> Any:
    """The deployment of Ray Serve; a replica limits its own requests."""
    from ray import serve

    replica: Any = serve.deployment(serve.ingress(build)())
    return replica.options(
        name=name,
        num_replicas=n_replicas,
        ray_actor_options=wants,
        max_ongoing_requests=limits.waiting,
        health_check_period_s=LOOK_S,
        graceful_shutdown_timeout_s=limits.drain_s,
    )


def _builder(
    parcels: Sequence[Parcel],
    settings: ServerSettings,
    keys: list[Key] | None,
    engine: EngineName,
    threads: int,
    device: str,
    *,
    looks: bool = False,
) -> Callable[[], ASGIApp]:
    """The function that builds the application of a replica."""

    def build() -> ASGIApp:
        metrics = Metrics()
        models = [unpacked(parcel) for parcel in parcels]
        registry = load_models(models, metrics, engine=engine, device=device, threads=threads)
        ring = None if keys is None else KeyRing(keys)
        state = AppState(registry, metrics, limits=settings.limits, keys=ring)
        if looks:
            state.inspector.preload(registry)
        app = create_app(state, hosts=[settings.host, *settings.names], cors_origins=settings.cors_origins)
        return _Mounted(app)

    return build


class _Mounted:
    """Adapts an application to Ray Serve, which mounts it under a path and assigns request IDs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def numbered_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                del MutableHeaders(scope=message)[NUMBER]
            await send(message)

        if number := Headers(scope=scope).get(NUMBER) if scope["type"] == "http" else None:
            # The application's routes are full paths.
            scope = {**scope, "root_path": "", "state": {**scope.get("state", {}), "request_id": number}}
        await self._app(scope, receive, numbered_once if number else send)


def _refuse_unservable(models: Sequence[Path], engine: EngineName, device: str) -> None:
    """Refuse what every replica would refuse, before anything is loaded."""
    names = [model_id(path) for path in models]
    for path, name in zip(models, names, strict=True):
        if names.count(name) > 1:
            raise ConfigError(
                f"two models have the name {name!r}: rename the folder {path}", code="duplicate_model"
            )
        load(path, engine=engine, device=device)


def _free(settings: ServerSettings) -> int:
    """The port to listen on; raises ConfigError if it is in use."""
    with listen(settings.host, settings.port) as found:
        port: int = found.getsockname()[1]
        return port
