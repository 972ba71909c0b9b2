"""`regard experiment`: test a claim about the Transformer."""

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import ConfigError, RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.experiments.experiment import ExperimentRun, Size

FOLDER = Path("runs/experiments")
"""Default folder of results."""


def experiment(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The experiment; without a name, all are listed.")
    ] = None,
    *,
    long: Annotated[bool, typer.Option("--long", help="As long as a reliable result takes.")] = False,
    short: Annotated[bool, typer.Option("--short", help="Seconds, only to try it.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 3,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="Another Chinese-English model, where one is examined."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="FOLDER", help=f"Folder for numbers and pictures; {FOLDER} by default."
        ),
    ] = None,
) -> None:
    """Test a claim about the Transformer.

    Prints numbers and a verdict in English and Chinese, and draws a picture.
    """
    if long and short:
        raise ConfigError("--long and --short exclude each other: remove one", code="conflicting_options")
    if name is None:
        _list(as_json=as_json)
        return

    from regard.experiments.experiment import run_experiment
    from regard.experiments.registry import find_experiment
    from regard.experiments.report import report
    from regard.experiments.small_models import one_thread
    from regard.host import keep_freed_memory

    chosen = find_experiment(name)
    if model is not None:
        if chosen.on_model is None:
            problem = f"{name} trains its own models: remove --model"
            raise ConfigError(problem, code="conflicting_options")
        chosen = chosen.on_model(model)
    keep_freed_memory()
    _show_progress()
    size: Size = "long" if long else "short" if short else "normal"
    with one_thread():
        done = run_experiment(chosen, size, seeds)
    if as_json:
        typer.echo(json.dumps(done.document(), ensure_ascii=False))
    else:
        typer.echo(report(done))
    if out is not None or not as_json:
        for file in _write(done, out or FOLDER):
            typer.echo(file, err=as_json)


def _list(*, as_json: bool) -> None:
    from regard.experiments.registry import NAMES, find_experiment

    for name in NAMES:
        claim = find_experiment(name).claim
        if as_json:
            typer.echo(json.dumps({"name": name, "en": claim.en, "zh": claim.zh}, ensure_ascii=False))
        else:
            typer.echo(f"{name}\n  {claim.en}\n  {claim.zh}")


def _show_progress() -> None:
    if sys.stderr.isatty():
        logging.basicConfig(format="%(message)s", stream=sys.stderr)
        logging.getLogger("regard.experiments").setLevel(logging.INFO)


def _write(run: "ExperimentRun", folder: Path) -> list[Path]:
    """Write the numbers and the picture, also as PNG if a rasteriser is installed."""
    from regard.durable import write_atomically
    from regard.experiments.picture import picture
    from regard.look.figures.svg import rasterised

    folder.mkdir(parents=True, exist_ok=True)
    numbers, drawn, pixels = (folder / f"{run.experiment.name}.{suffix}" for suffix in ("json", "svg", "png"))
    write_atomically(numbers, json.dumps(run.document(), ensure_ascii=False) + "\n")
    write_atomically(drawn, svg := picture(run))
    try:
        pixels.write_bytes(rasterised(svg))
    except RequestError:
        return [numbers, drawn]
    return [numbers, drawn, pixels]
