"""`regard serve`: models behind HTTP, for people, programs and other people's clients."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import DeviceOption, EngineOption, ThreadsOption
from regard.errors import ConfigError

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.serve.served import Catalogue


def serve(
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="MODEL", help="Model folders, or runs'; each by its name.")
    ] = None,
    *,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only who shows one of these keys may ask.")
    ] = None,
    new_key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Add a key to the file of --keys, print it, and end.")
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--open", help="Let everybody in who can reach the address, without keys.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name of this server, as behind a proxy.")
    ] = None,
    cors_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="An origin whose pages may read answers.")
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request; never its text.")] = False,
) -> None:
    """Serve models: a page, an API, LibreTranslate's and OpenAI's routes. On SIGTERM it finishes first."""
    if new_key is not None:
        _make_key(keys, new_key)
        return
    if not models:
        raise ConfigError(
            "there is no model to serve: name a model folder or a run, as in `regard serve runs/zh-en`"
        )
    try:
        import fastapi  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is needed to serve: pip install 'regard[serve]'") from None
    from regard.serve.app import create_app
    from regard.serve.keys import KeyRing, read_keys
    from regard.serve.metrics import Metrics
    from regard.serve.served import serve_models
    from regard.serve.server import Server, listening, log_to_stderr, refuse_open_door
    from regard.serve.service import Service

    refuse_open_door(host, has_keys=keys is not None, is_open=everybody)
    ring = None if keys is None else KeyRing(read_keys(keys))
    socket = listening(host, port)
    metrics = Metrics()
    catalogue = serve_models(models, metrics, engine=engine, device=device, threads=threads)  # type: ignore[arg-type]
    service = Service(catalogue, metrics, keys=ring)
    app = create_app(service, hosts=[host, *(allow_host or [])], cors_origins=cors_origin or [])
    log_to_stderr(requests=verbose)
    address, number = socket.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    Server(app, service.desk, lambda: _tell(catalogue, f"http://{shown}:{number}/")).run([socket])
    catalogue.close()


def _make_key(file: Path | None, name: str) -> None:
    from regard.serve.keys import new_key

    if file is None:
        raise ConfigError("--new-key adds to a file: name it by --keys FILE")
    typer.echo(new_key(file, name))


def _tell(catalogue: Catalogue, address: str) -> None:
    for served in catalogue:
        ways = (
            ", ".join(f"{source} → {target}" for source, target in served.directions) or "languages not told"
        )
        print(f"regard: {served.id}: {ways}", file=sys.stderr)
    print(f"regard: serving at {address}", file=sys.stderr, flush=True)
