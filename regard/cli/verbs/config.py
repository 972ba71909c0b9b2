"""`regard config`: what a preset, a file and `--set` come to, or which presets there are."""

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
        bool, typer.Option("--describe", help="Say above each setting what it means.")
    ] = False,
    list_presets: Annotated[bool, typer.Option("--list", help="List the presets instead.")] = False,
) -> None:
    """Print a configuration as TOML.

    It has everything that a preset, a file and --set decide.
    """
    if list_presets:
        width = max(map(len, PRESETS))
        typer.echo("\n".join(f"{name:{width}}  {summary(name)}" for name in PRESETS))
    else:
        typer.echo(
            to_toml(read_config(preset=preset, file=file, settings=settings or ()), described=describe)
        )
