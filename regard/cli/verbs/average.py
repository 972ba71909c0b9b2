"""`regard average`: average the weights of several checkpoints or model folders."""

from pathlib import Path
from typing import Annotated

import typer


def average(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="CHECKPOINT…", help="Checkpoints of runs (RUN/checkpoints/…), model folders, or runs'."
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The model folder to write; it must be new.")],
) -> None:
    """Average the weights of several checkpoints of a model (6.1).

    The result is a model folder.
    """
    from regard.engine.loading import model_folder
    from regard.training.checkpoints.averaging import average_models

    model = average_models([model_folder(place) for place in places], out)
    typer.echo(f"the mean of {len(places)} model{'s' * (len(places) != 1)} is in {model}")
