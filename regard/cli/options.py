"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from regard.config import settings

PresetOption = Annotated[
    str | None,
    typer.Option("--preset", metavar="NAME", help="Where to start; `regard config --list` names them all."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file of settings, stronger than the preset."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="One setting, stronger than the file; may be repeated."),
]


def settings_help() -> str:
    """Every setting with its description, for the end of a verb's `--help`."""
    width = max(map(len, settings()))
    # "\b" keeps the help formatter from joining the lines of a paragraph.
    return "\b\nSettings:\n" + "\n".join(f"  {name:{width}}  {text}" for name, text in settings().items())
