"""`regard score`: the log-probability of given translations."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.shared.options import (
    BUNDLED,
    DeviceOption,
    EngineOption,
    JsonOption,
    ModelOption,
    ThreadsOption,
    with_flags,
)
from regard.cli.shared.reporting import UNREADABLE_INPUT
from regard.errors import RequestError

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.engine.results import Score
    from regard.tasks.loaded import LoadedModel


def score(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Sources, one per line; - for stdin.")],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Their translations, line by line.")],
    *,
    model: ModelOption = BUNDLED,
    to: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Language of TGT; default: detected from SRC."),
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the log-probability of given translations.

    The end token counts, too. A pair that is too long for the model gives an empty line and a message on
    stderr, and the exit status is 2.
    """
    from regard.loaded import load
    from regard.text.files.parallel import read_parallel

    loaded = load(model, engine=engine, device=device, threads=threads)  # type: ignore[arg-type]
    loaded.require("translate")
    failed = False
    for block in read_parallel((source, target)):
        sources, targets = block.columns
        for number, each in zip(count(block.first), _scores(loaded, sources, targets, to), strict=False):
            if isinstance(each, RequestError):
                failed = True
                print(f"regard: {source}:{number}: {with_flags(each)}", file=sys.stderr)
            print(_shown(each, as_json=as_json))
    if failed:
        raise typer.Exit(UNREADABLE_INPUT)


def _scores(
    model: LoadedModel, sources: list[str], targets: list[str], to: str | None
) -> list[Score | RequestError]:
    """The score of each pair, or the error that it caused."""
    try:
        return [*model.score(sources, targets, to=to)]
    except RequestError as error:
        if len(sources) == 1:
            return [error]
    # Bisect, so that one bad pair does not cost the others their batch.
    middle = len(sources) // 2
    return [
        *_scores(model, sources[:middle], targets[:middle], to),
        *_scores(model, sources[middle:], targets[middle:], to),
    ]


def _shown(each: Score | RequestError, *, as_json: bool) -> str:
    if isinstance(each, RequestError):
        return json.dumps({"error": with_flags(each)}, ensure_ascii=False) if as_json else ""
    return json.dumps(asdict(each), ensure_ascii=False) if as_json else f"{each.log_prob:.4f}"
