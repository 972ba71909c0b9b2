"""`regard info`: describe a model folder without loading it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.bundle import Description, describe_bundle
from regard.cli.shared.options import model_option
from regard.engine.loading import model_folder


def info(
    *,
    model: Annotated[Path, model_option()],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Describe a model folder.

    Prints the architecture, sizes, files, metrics and the hash of the weights.
    """
    description = describe_bundle(model_folder(model))
    if as_json:
        typer.echo(json.dumps(asdict(description), default=str))
    else:
        typer.echo(_text(description))


def _text(description: Description) -> str:
    lines = [
        f"{description.folder}: {description.config.architecture}, {description.n_parameters:,} parameters, "
        f"{description.dtype}",
        f"written by regard {description.regard}, format {description.format}",
        f"weights {description.weights_hash}",
        *_section("model", asdict(description.config)),
        *_section("decoding", asdict(description.decoding)),
        *_section("task", {k: v for k, v in asdict(description.task).items() if v is not None}),
        *_section("files", {name: f"{size:,} bytes" for name, size in description.files.items()}),
        *_section("metrics", description.metrics),
    ]
    return "\n".join(lines)


def _section(title: str, values: dict[str, Any]) -> list[str]:
    width = max(map(len, values), default=0)
    return (
        ["", title, *(f"  {_shown(name):{width}}  {_shown(value)}" for name, value in values.items())]
        if values
        else []
    )


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    # Values of metrics.json are printed as JSON: on one line, and without control characters.
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)
