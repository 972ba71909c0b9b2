"""`regard export`: a model folder in other people's formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import typer

from regard.errors import RequestError
from regard.exchange.ctranslate2.weights_file import Quantisation

Writer = Callable[[Path, Path, str | None], str]
"""Writes a model folder to a new place, with its weights kept as asked for; gives back what was verified."""


def _ctranslate2(model: Path, out: Path, quantisation: str | None) -> str:
    from regard.exchange.ctranslate2.export import write_ctranslate2

    return str(write_ctranslate2(model, out, quantisation or "float32"))


def _huggingface(model: Path, out: Path, quantisation: str | None) -> str:
    from regard.exchange.huggingface.export import write_huggingface

    if quantisation not in (None, "float32"):
        raise RequestError(f"--quantisation {quantisation} is not for huggingface, which gets float32")
    return str(write_huggingface(model, out))


def _onnx(model: Path, out: Path, quantisation: str | None) -> str:
    from regard.exchange.onnx.export import write_onnx

    if quantisation not in (None, "float32"):
        raise RequestError(f"ONNX is written in float32, not in {quantisation}")
    return str(write_onnx(model, out))


FORMATS: dict[str, Writer] = {"ctranslate2": _ctranslate2, "huggingface": _huggingface, "onnx": _onnx}
"""By the name that `--to` takes. Each imports what it needs when it is called."""


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run's.")],
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; it must be new.")],
    *,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    quantisation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"How ctranslate2 keeps weights: {', '.join(get_args(Quantisation))}."
        ),
    ] = None,
) -> None:
    """Write a model in another format, and verify it.

    What was written is run, and how far it differs is told.
    """
    from regard.engine.loading import model_folder

    if to not in FORMATS:
        raise RequestError(f"there is no format {to!r}; there are {', '.join(FORMATS)}")
    verified = FORMATS[to](model_folder(model), out, quantisation)
    typer.echo(f"{model} is in {out}, as {to}")
    typer.echo(verified)
