"""`regard serve`: models behind HTTP, for people, programs and other people's clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared.options import BUNDLED, DeviceOption, EngineOption, RayOption, ThreadsOption
from regard.errors import ConfigError


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MODEL", help="Model folders, or runs'; by default the bundled one."),
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
        list[str] | None,
        typer.Option(metavar="NAME", help="A name of this server, as behind a proxy; may be repeated."),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="An origin whose pages may read answers; may be repeated."),
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request; never its text.")] = False,
    ray: RayOption = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="With --ray: servers, of --threads cores each; by default, all cores."),
    ] = None,
) -> None:
    """Serve models over HTTP, with a page to try them.

    It has an API of its own, and the routes of LibreTranslate, OpenAI and, for
    labels, text-embeddings-inference. On SIGTERM it finishes first.
    """
    if new_key is not None:
        _make_key(keys, new_key)
        return
    models = models or BUNDLED
    if replicas and ray is None:
        raise ConfigError("--replicas are for a Ray cluster: add --ray local, or its address")
    try:
        from regard.serve.http.serving import Door
        from regard.serve.http.serving import serve as run
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is needed to serve: pip install 'regard[serve]'") from None
    door = Door(
        host=host,
        port=port,
        keys=keys,
        everybody=everybody,
        names=allow_host or (),
        cors_origins=cors_origin or (),
    )
    if ray is not None:
        from regard.scale.replicas import serve_by_replicas

        asked = {"engine": engine, "device": device, "threads": threads}
        serve_by_replicas(models, door, address=ray, replicas=replicas, **asked)  # type: ignore[arg-type]
        return
    run(models, door, engine=engine, device=device, threads=threads, log_requests=verbose)  # type: ignore[arg-type]


def _make_key(file: Path | None, name: str) -> None:
    from regard.serve.http.keys import new_key

    if file is None:
        raise ConfigError("--new-key adds to a file: name it by --keys FILE")
    typer.echo(new_key(file, name))
