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
    RunFlags,
    ThreadsOption,
    with_flags,
)
from regard.cli.shared.reporting import UNREADABLE_INPUT
from regard.errors import RequestError
from regard.text.languages import language_of

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.engine.direction import Directions
    from regard.engine.results import Score
    from regard.tasks.loaded import LoadedModel


def score(
    sources: Annotated[Path, typer.Argument(metavar="SRC", help="Sources, one per line; - for stdin.")],
    targets: Annotated[Path, typer.Argument(metavar="TGT", help="Their translations, line by line.")],
    *,
    models: ModelOption = BUNDLED,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Language of TGT; default: as its name says, or detected from the first lines.",
        ),
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
    from regard.cli.shared.writing import load_models
    from regard.text.files.parallel import read_parallel

    loaded = load_models("score", models, RunFlags(engine=engine, device=device, threads=threads))
    to, failed = target or _language(loaded.directions, targets), False
    for block in read_parallel((sources, targets)):
        read, written = block.columns
        if to is None and (direction := loaded.directions.of_document("\n".join(read))):
            to = direction.target
        for number, each in zip(count(block.first), _scores(loaded, read, written, to), strict=False):
            if isinstance(each, RequestError):
                failed = True
                print(f"regard: {sources}:{number}: {with_flags(each)}", file=sys.stderr)
            print(_shown(each, as_json=as_json))
    if failed:
        raise typer.Exit(UNREADABLE_INPUT)


def _language(directions: Directions, file: Path) -> str | None:
    """The language that the name of a file shows, if the model can write several and this is one of them."""
    written = [each.target for each in directions.known]
    return language if len(written) > 1 and (language := language_of(file)) in written else None


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
