"""`regard experiment`: run a claim about the Transformer, and see whether it holds."""

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import ConfigError, RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.experiments.experiment import Run, Size

FOLDER = Path("runs/experiments")
"""Where pictures go, unless told otherwise."""


def experiment(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which; without it, all are listed.")
    ] = None,
    *,
    long: Annotated[bool, typer.Option("--long", help="As long as it takes to be sure.")] = False,
    short: Annotated[bool, typer.Option("--short", help="Seconds, only to see that it runs.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="How often all that is trained is trained.")] = 3,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Another Chinese-English translator, where one is looked at."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="FOLDER", help=f"Where numbers and pictures go; {FOLDER} by default."
        ),
    ] = None,
) -> None:
    """Run a claim about the Transformer: does it hold?

    Its numbers, its picture, and a verdict in English and Chinese.
    """
    if long and short:
        raise ConfigError("--long and --short contradict each other; leave one out")
    if name is None:
        _list(as_json=as_json)
        return

    from regard.experiments.costs import one_thread
    from regard.experiments.experiment import run
    from regard.experiments.registry import find
    from regard.experiments.report import report
    from regard.host import keep_freed_memory

    wanted = find(name)
    if model is not None:
        if wanted.on_model is None:
            raise ConfigError(f"{name} trains models of its own; leave --model out")
        wanted = wanted.on_model(model)
    keep_freed_memory()
    _show_progress()
    size: Size = "long" if long else "short" if short else "normal"
    with one_thread():
        done = run(wanted, size, seeds)
    if as_json:
        typer.echo(json.dumps(done.document(), ensure_ascii=False))
    else:
        typer.echo(report(done))
    if out is not None or not as_json:
        for file in _write(done, out or FOLDER):
            typer.echo(file, err=as_json)


def _list(*, as_json: bool) -> None:
    from regard.experiments.registry import NAMES, find

    for name in NAMES:
        claim = find(name).claim
        if as_json:
            typer.echo(json.dumps({"name": name, "en": claim.en, "zh": claim.zh}, ensure_ascii=False))
        else:
            typer.echo(f"{name}\n  {claim.en}\n  {claim.zh}")


def _show_progress() -> None:
    if sys.stderr.isatty():
        logging.basicConfig(format="%(message)s", stream=sys.stderr)
        logging.getLogger("regard.experiments").setLevel(logging.INFO)


def _write(run: "Run", folder: Path) -> list[Path]:
    """The numbers and the picture; as pixels too, where something can draw them."""
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
