"""`regard export`: write a model folder in another format."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import typer

from regard.cli.shared.options import model_option
from regard.errors import RequestError
from regard.exchange.ctranslate2.weights_file import Quantisation


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """What to write, and how to verify it."""

    model: Path
    out: Path
    quantisation: str
    n_texts: int
    """Texts whose outputs are compared; 0 for none."""
    texts: Path | None


def _ctranslate2(asked: Export) -> str:
    from regard.exchange.ctranslate2.convert import write_ctranslate2

    return str(write_ctranslate2(asked.model, asked.out, asked.quantisation))


def _huggingface(asked: Export) -> str:
    from regard.exchange.huggingface import write_huggingface
    from regard.loaded import load

    original = None
    if asked.n_texts:
        original = load(asked.model, engine="torch", device="cpu", quantisation="float32")
    return str(
        write_huggingface(asked.model, asked.out, original=original, n_texts=asked.n_texts, texts=asked.texts)
    )


def _onnx(asked: Export) -> str:
    from regard.exchange.onnx.export import write_onnx

    return str(write_onnx(asked.model, asked.out))


FORMATS: dict[str, Callable[[Export], str]] = {
    "ctranslate2": _ctranslate2,
    "huggingface": _huggingface,
    "onnx": _onnx,
}
"""The formats by name: what writes a new folder, and returns the result of the verification.

A writer imports its libraries when it is called."""
INT8 = "int8"


def export(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; it must be new.")],
    *,
    model: Annotated[Path, model_option()],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    quantisation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"For ctranslate2: {', '.join(get_args(Quantisation))}. Default: {INT8}.",
        ),
    ] = None,
    verify: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="For huggingface: compare the outputs for N texts; 0 for none."
        ),
    ] = 100,
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For huggingface: texts to compare, one per line. Default: validation texts of the run, or "
            "sentences of random words.",
        ),
    ] = None,
) -> None:
    """Write a model in another format, and verify it.

    The exported model is run, and the largest difference from the original is printed.
    """
    from regard.engine.loading import model_folder

    if to not in FORMATS:
        problem = f"unknown format {to!r}: choose one of {', '.join(FORMATS)}"
        raise RequestError(problem, code="unknown_format")
    if quantisation not in (None, "float32") and to != "ctranslate2":
        problem = f"--quantisation {quantisation} is for ctranslate2 only; {to} is written in float32"
        raise RequestError(problem, code="unknown_quantisation")
    if texts is not None and to != "huggingface":
        problem = f"--texts is for huggingface only; remove it, {to} is verified by log-probabilities"
        raise RequestError(problem, code="unused_option")
    verified = FORMATS[to](
        Export(
            model=model_folder(model),
            out=out,
            quantisation=quantisation or INT8,
            n_texts=verify,
            texts=texts,
        )
    )
    typer.echo(f"{model} is in {out}, as {to}")
    typer.echo(verified)
