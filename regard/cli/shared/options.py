"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from regard.bundled import DEFAULT
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

ModelOption = Annotated[
    list[Path],
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="A model folder, or a run's; several are an ensemble; by default the bundled translator.",
    ),
]
BUNDLED = [Path(DEFAULT)]
"""What stands for a model where none is named."""
EngineOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="torch, ctranslate2, or auto: the fastest that can do what is asked."),
]
DeviceOption = Annotated[str, typer.Option(metavar="NAME", help="cpu, cuda or auto.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU cores to use; by default all.")]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="On a Ray cluster: local starts one here, auto finds one, HOST:PORT."
    ),
]
TopKOption = Annotated[int, typer.Option(min=0, help="Draw from so many of the likeliest tokens; 0 for all.")]
TopPOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Draw from the likeliest tokens that together have this probability."),
]
MinPOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Draw from tokens at least this share as likely as the likeliest."),
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same text.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line instead.")]


def settings_help() -> str:
    """Every setting with its description, for the end of a verb's `--help`."""
    width = max(map(len, settings()))
    # "\b" keeps the help formatter from joining the lines of a paragraph.
    return "\b\nSettings:\n" + "\n".join(f"  {name:{width}}  {text}" for name, text in settings().items())
