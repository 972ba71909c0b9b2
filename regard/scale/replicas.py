"""Replicas of a server behind one address, by Ray Serve; each is the application that `regard serve` runs.

Who makes a trace asks for it again and again, so all traces are made and kept by one replica of its own,
which does nothing else. Limits and rates are counted by each replica.
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
"""Seconds between two looks at whether a replica is well."""


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
    """Serve models by replicas on a Ray cluster for as long as the block runs, at the address that it gets.

    Args:
        models: model folders, or runs'; machines of the cluster need not see them.
        settings: where the head of the cluster listens, and who has access.
        address: `local`, `auto`, or HOST:PORT of the cluster's head.
        replicas: how many translate; by default as many as there is room for.
        engine: see `regard.load`.
        device: `cuda` gives each replica a GPU.
        threads: CPU cores of each replica; by default one.

    Raises:
        ConfigError: Ray is not installed or nobody answers, the server would be open to a network, the
            address is taken, or a model cannot be served.
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
            raise ConfigError("Ray Serve runs on this cluster already, elsewhere; `serve shutdown` ends it")
        parcels = [packed(model, None if cluster.is_local else ray) for model in models]
        build = partial(_builder, parcels, settings, keys, engine, cores)
        wants = {"num_gpus": 1} if gpu else {"num_cpus": cores}
        translators = _deployment(
            build("cpu" if device == "auto" else device), TRANSLATORS, n_replicas, wants
        )
        inspector = _deployment(build("cpu", looks=True), INSPECTOR, 1, {"num_cpus": 0})
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
    """Serve models by replicas until a signal, and then finish what has begun; see `replicated`."""
    asked = {"address": address, "replicas": replicas, "engine": engine, "device": device, "threads": threads}
    told = threading.Event()
    with replicated(models, settings, **asked) as place:  # type: ignore[arg-type]
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: told.set())
        print(f"regard: serving at {place}", file=sys.stderr, flush=True)
        told.wait()


def _start(host: str, port: int, applications: dict[str, Any]) -> None:
    """Have Ray Serve answer at an address, and applications below paths."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    quiet = {"log_level": logging.ERROR, "enable_access_log": False}
    try:
        serve.start("HeadOnly", {"host": host, "port": port}, logging_config=quiet)
        for path, application in applications.items():
            serve.run(application.bind(), name=application.name, route_prefix=path, logging_config=quiet)
    except (RuntimeError, TimeoutError) as error:
        raise ConfigError(f"the replicas could not begin: {_cause() or error}") from error


def _cause() -> str:
    """What the last replica that failed said last."""
    from ray import serve

    applications = serve.status().applications.values()
    messages = [each.message for one in applications for each in one.deployments.values() if each.message]
    return messages[-1].strip().splitlines()[-1].strip() if messages else ""


def _deployment(build: Callable[[], ASGIApp], name: str, n_replicas: int, wants: dict[str, int]) -> Any:
    """Replicas as Ray Serve is told of them; how much each takes on is for its own desk to say."""
    from ray import serve

    replica: Any = serve.deployment(serve.ingress(build)())
    return replica.options(
        name=name,
        num_replicas=n_replicas,
        ray_actor_options=wants,
        max_ongoing_requests=Limits().waiting,
        health_check_period_s=LOOK_S,
        graceful_shutdown_timeout_s=Limits().drain_s,
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
    """What each replica begins with."""

    def build() -> ASGIApp:
        metrics = Metrics()
        models = [unpacked(parcel) for parcel in parcels]
        registry = load_models(models, metrics, engine=engine, device=device, threads=threads)
        state = AppState(registry, metrics, keys=None if keys is None else KeyRing(keys))
        if looks:
            state.inspector.preload(registry)
        app = create_app(state, hosts=[settings.host, *settings.names], cors_origins=settings.cors_origins)
        return _Mounted(app)

    return build


class _Mounted:
    """An application as Ray Serve wants it, which mounts it below a path and numbers requests itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def numbered_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                del MutableHeaders(scope=message)[NUMBER]
            await send(message)

        if number := Headers(scope=scope).get(NUMBER) if scope["type"] == "http" else None:
            # The routes of the application are whole paths.
            scope = {**scope, "root_path": "", "state": {**scope.get("state", {}), "request_id": number}}
        await self._app(scope, receive, numbered_once if number else send)


def _refuse_unservable(models: Sequence[Path], engine: EngineName, device: str) -> None:
    """Refuse here what every replica would; nothing is loaded yet."""
    names = [model_id(path) for path in models]
    for path, name in zip(models, names, strict=True):
        if names.count(name) > 1:
            raise ConfigError(f"two models would be called {name!r}: rename the folder {path}")
        load(path, engine=engine, device=device)


def _free(settings: ServerSettings) -> int:
    """The port to listen at here; ConfigError where it is taken."""
    with listen(settings.host, settings.port) as found:
        port: int = found.getsockname()[1]
        return port
