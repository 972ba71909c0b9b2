"""`regard classify`: labels of texts, line by line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import DeviceOption, JsonOption
from regard.cli.telling import SPOILT
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.engine.classification import Classification


def classify(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to label; by default, lines of standard input."),
    ] = None,
    *,
    model: Annotated[Path, typer.Option("--model", metavar="MODEL", help="A model folder, or a run's.")],
    too_long: Annotated[
        str,
        typer.Option(metavar="WAY", help="What to do about texts that are too long: error, or cut."),
    ] = "error",
    threshold: Annotated[
        float,
        typer.Option(help="Where a text may have several labels, it gets those that are so probable."),
    ] = 0.5,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Label texts: for each, its label, a tab and how probable that is; of several, those of each.

    A line that cannot be labelled becomes an empty one, is told on stderr, and makes the exit status 2.
    """
    from regard.cli.arriving import Line, arriving
    from regard.engine.classification import Labelling
    from regard.loaded import load

    Labelling(too_long=too_long, threshold=threshold)  # type: ignore[arg-type]
    loaded, spoilt = load(model, device=device), 0
    _ = loaded.classifier  # which refuses a model for another task, before any line does
    between = loaded.task.label_separator or ""
    blocks = arriving(sys.stdin.buffer) if texts is None else iter([[Line(0, text) for text in texts]])
    for block in blocks:
        for line in block:
            found, problem = None, line.problem
            if problem is None:
                try:
                    found = loaded.classify(line.text, too_long=too_long, threshold=threshold)
                except RequestError as error:
                    where = f"standard input:{line.number}: " if line.number else ""
                    problem = f"{where}{error}".replace("text 1 ", "the text ")
            spoilt += found is None
            _tell(line.number, found, problem)
            print(_as_json(found, problem) if as_json else _as_columns(found, between))
        sys.stdout.flush()
    if spoilt:
        raise typer.Exit(SPOILT)


def _tell(number: int, found: Classification | None, problem: str | None) -> None:
    """What people should know of a text."""
    where = f"standard input:{number}: " if number else ""
    if problem is not None:
        print(f"regard: {problem}", file=sys.stderr)
    elif found is not None and found.cut:
        print(f"regard: {where}the last {found.cut:,} tokens were not read", file=sys.stderr)
    if found is not None and found.unseen:
        told = f"{len(found.unseen):,} characters are in no subword, and were read as bytes"
        print(f"regard: {where}{told}: {' '.join(found.unseen[:20])}", file=sys.stderr)


def _as_columns(found: Classification | None, between: str) -> str:
    if found is None:
        return ""
    probabilities = (f"{found.probabilities[label]:.4f}" for label in found.labels)
    return f"{between.join(found.labels)}\t{between.join(probabilities)}"


def _as_json(found: Classification | None, problem: str | None) -> str:
    if found is None:
        return json.dumps({"label": None, "error": problem}, ensure_ascii=False)
    return json.dumps(asdict(found), ensure_ascii=False)
