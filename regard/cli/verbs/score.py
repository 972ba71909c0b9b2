"""`regard score`: how likely a model finds given translations."""

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
    from regard.engine.model import Model
    from regard.engine.result import Score


def score(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Sources, one a line; - is standard input.")],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Their translations, line by line.")],
    *,
    model: ModelOption = BUNDLED,
    to: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of TGT; else each line of SRC tells.")
    ] = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the log-probability of given translations.

    The end of each counts, too. A pair that is too long for the model gets an empty line, is told on stderr,
    and makes the exit status 2.
    """
    from regard.engine.loading import load
    from regard.text.files.parallel import read_parallel

    loaded = load(model, engine=engine, device=device, threads=threads)  # type: ignore[arg-type]
    spoilt = False
    for block in read_parallel((source, target)):
        sources, targets = block.columns
        for number, each in zip(count(block.first), _scores(loaded, sources, targets, to), strict=False):
            if isinstance(each, RequestError):
                spoilt = True
                print(f"regard: {source}:{number}: {with_flags(each)}", file=sys.stderr)
            print(_shown(each, as_json=as_json))
    if spoilt:
        raise typer.Exit(UNREADABLE_INPUT)


def _scores(
    model: Model, sources: list[str], targets: list[str], to: str | None
) -> list[Score | RequestError]:
    """Of each pair its score, or why it has none."""
    try:
        return [*model.score(sources, targets, to=to)]
    except RequestError as error:
        if len(sources) == 1:
            return [error]
    # Half by half, so that one pair that cannot be scored does not cost the others their batch.
    middle = len(sources) // 2
    return [
        *_scores(model, sources[:middle], targets[:middle], to),
        *_scores(model, sources[middle:], targets[middle:], to),
    ]


def _shown(each: Score | RequestError, *, as_json: bool) -> str:
    if isinstance(each, RequestError):
        return json.dumps({"error": with_flags(each)}, ensure_ascii=False) if as_json else ""
    return json.dumps(asdict(each), ensure_ascii=False) if as_json else f"{each.log_prob:.4f}"
