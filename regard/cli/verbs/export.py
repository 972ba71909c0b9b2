"""`regard export`: write a model folder in another format."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import typer

from regard.cli.shared.options import model_option
from regard.errors import RequestError
from regard.exchange.ctranslate2.weights_file import Quantisation


def _ctranslate2(model: Path, out: Path, quantisation: str) -> str:
    from regard.exchange.ctranslate2.convert import write_ctranslate2

    return str(write_ctranslate2(model, out, quantisation))


def _huggingface(model: Path, out: Path, _: str) -> str:
    from regard.exchange.huggingface import write_huggingface

    return str(write_huggingface(model, out))


def _onnx(model: Path, out: Path, _: str) -> str:
    from regard.exchange.onnx.export import write_onnx

    return str(write_onnx(model, out))


Writer = Callable[[Path, Path, str], str]
"""Writes a model folder to a new folder in a quantisation; returns the result of the verification."""
FORMATS: dict[str, Writer] = {"ctranslate2": _ctranslate2, "huggingface": _huggingface, "onnx": _onnx}
"""The formats by name. A writer imports its libraries when it is called."""


def export(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; it must be new.")],
    *,
    model: Annotated[Path, model_option()],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    quantisation: Annotated[
        str, typer.Option(metavar="NAME", help=f"For ctranslate2: {', '.join(get_args(Quantisation))}.")
    ] = "float32",
) -> None:
    """Write a model in another format, and verify it.

    The exported model is run, and the largest difference from the original is printed.
    """
    from regard.engine.loading import model_folder

    if to not in FORMATS:
        problem = f"unknown format {to!r}: choose one of {', '.join(FORMATS)}"
        raise RequestError(problem, code="unknown_format")
    if quantisation != "float32" and to != "ctranslate2":
        problem = f"--quantisation {quantisation} is for ctranslate2 only; {to} is written in float32"
        raise RequestError(problem, code="unknown_quantisation")
    verified = FORMATS[to](model_folder(model), out, quantisation)
    typer.echo(f"{model} is in {out}, as {to}")
    typer.echo(verified)
