"""All of it together: models loaded, a socket bound, a server that runs until it is told to stop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.engine.loading import EngineName
from regard.host import share_freed_memory
from regard.serve.http.app import create_app
from regard.serve.http.keys import KeyRing, read_keys
from regard.serve.http.metrics import Metrics
from regard.serve.http.server import Server, listening, log_to_stderr, refuse_open_door
from regard.serve.served import TRANSLATE, Catalogue, serve_models
from regard.serve.service import Service


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """Where to listen, and whom to let in."""

    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    everybody: bool = False
    """Whether an address that others can reach needs no keys."""
    names: Sequence[str] = ()
    """Names of this server, beside its address."""
    cors_origins: Sequence[str] = ()


def serve(
    models: Sequence[Path],
    door: Door,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
    log_requests: bool = False,
) -> None:
    """Serve models until a signal, and then finish what has begun.

    Raises:
        ConfigError: the door would be open to all, the address is taken, or a model cannot be served.
        BundleError: a model folder is missing or damaged.
    """
    share_freed_memory()
    refuse_open_door(door.host, has_keys=door.keys is not None, is_open=door.everybody)
    keys = None if door.keys is None else KeyRing(read_keys(door.keys))
    with listening(door.host, door.port) as socket:
        metrics = Metrics()
        catalogue = serve_models(models, metrics, engine=engine, device=device, threads=threads)
        service = Service(catalogue, metrics, keys=keys)
        app = create_app(service, hosts=[door.host, *door.names], cors_origins=door.cors_origins)
        log_to_stderr(requests=log_requests)
        host, port = socket.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        Server(app, service.desk, lambda: _tell(catalogue, address)).run([socket])
        service.inspector.close()
        catalogue.close()


def _tell(catalogue: Catalogue, address: str) -> None:
    for served in catalogue:
        ways = ", ".join(f"{source} → {target}" for source, target in served.directions)
        what = served.does if served.does != TRANSLATE else ways or "languages not told"
        print(f"regard: {served.id}: {what}", file=sys.stderr)
    print(f"regard: serving at {address}", file=sys.stderr, flush=True)
