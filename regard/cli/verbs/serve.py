"""`regard serve`: models over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared.options import (
    BUNDLED,
    DeviceOption,
    EngineOption,
    RayOption,
    ThreadsOption,
    model_option,
)
from regard.errors import ConfigError


def serve(
    more: Annotated[list[Path] | None, typer.Argument(metavar="MODEL", help="More models to serve.")] = None,
    *,
    models: Annotated[
        list[Path] | None, model_option("; several are served together. Default: the bundled translator")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Accept only requests with one of these keys.")
    ] = None,
    new_key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Add a key to the file of --keys, print it, and exit.")
    ] = None,
    revoke_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove a key from the file of --keys, and exit."),
    ] = None,
    without_keys: Annotated[
        bool, typer.Option("--open", help="Serve without keys at an address that others can reach.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name of this server, as behind a proxy; may be repeated."),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="An origin whose pages may read responses; may be repeated."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="A proxy whose X-Forwarded-For header is believed; may be repeated."
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Change a limit, such as body_bytes; may be repeated."),
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request; never its text.")] = False,
    ray: RayOption = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="With --ray: servers, with --threads cores each; default: all cores."),
    ] = None,
) -> None:
    """Serve models over HTTP, with a page to try them.

    It has its own API, and the routes of LibreTranslate, OpenAI and, for labels,
    text-embeddings-inference. On SIGTERM it finishes open requests first.
    """
    if new_key is not None or revoke_key is not None:
        _change_keys(keys, new_key, revoke_key)
        return
    models = [*(models or ()), *(more or ())] or BUNDLED
    if replicas and ray is None:
        raise ConfigError("--replicas needs --ray local, or an address", code="missing_option")
    try:
        from regard.serve.http.limits import read_limits
        from regard.serve.http.server import ServerSettings
        from regard.serve.http.server import serve as run
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is needed to serve: pip install 'regard[serve]'", code="missing_package"
        ) from None
    settings = ServerSettings(
        host=host,
        port=port,
        keys=keys,
        without_keys=without_keys,
        names=allow_host or (),
        cors_origins=cors_origin or (),
        proxies=proxy or (),
        limits=read_limits(limit or ()),
    )
    if ray is not None:
        from regard.scale.replicas import serve_by_replicas

        options = {"engine": engine, "device": device, "threads": threads}
        serve_by_replicas(models, settings, address=ray, replicas=replicas, **options)  # type: ignore[arg-type]
        return
    run(models, settings, engine=engine, device=device, threads=threads, log_requests=verbose)  # type: ignore[arg-type]


def _change_keys(file: Path | None, new: str | None, revoked: str | None) -> None:
    from regard.serve.http.keys import new_key, revoke_key

    if file is None:
        raise ConfigError("--new-key and --revoke-key need --keys FILE", code="missing_option")
    if new is not None:
        typer.echo(new_key(file, new))
    if revoked is not None:
        revoke_key(file, revoked)
