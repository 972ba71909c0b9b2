"""`regard config`: print the configuration of a preset, a file and `--set`, or list the presets."""

from typing import Annotated

import typer

from regard.cli.shared.options import ConfigOption, PresetOption, SetOption
from regard.config import PRESETS, read_config, summary, to_toml


def config(
    *,
    preset: PresetOption = None,
    file: ConfigOption = None,
    settings: SetOption = None,
    describe: Annotated[
        bool, typer.Option("--describe", help="Print a description above each setting.")
    ] = False,
    list_presets: Annotated[bool, typer.Option("--list", help="List the presets.")] = False,
) -> None:
    """Print a configuration as TOML.

    It combines a preset, a file and --set.
    """
    if list_presets:
        width = max(map(len, PRESETS))
        typer.echo("\n".join(f"{name:{width}}  {summary(name)}" for name in PRESETS))
    else:
        typer.echo(
            to_toml(read_config(preset=preset, file=file, settings=settings or ()), described=describe)
        )
