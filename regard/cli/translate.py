"""`regard translate`: text in, text out, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import (
    BUNDLED,
    DeviceOption,
    EngineOption,
    JsonOption,
    ModelOption,
    ThreadsOption,
)
from regard.cli.telling import SPOILT, Telling
from regard.errors import ConfigError, RequestError

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.cli.arriving import Line
    from regard.engine.result import Result
    from regard.engine.translator import Translator


def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to translate; by default, lines of standard input."),
    ] = None,
    *,
    model: ModelOption = BUNDLED,
    source: Annotated[
        str | None, typer.Option("--from", metavar="CODE", help="The language of the text, to be sure of it.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--to", metavar="CODE", help="The language to translate into; else each text tells."),
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(help="Translations of each line, parted by tabs.")] = 1,
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Phrases and what they must become, parted by a tab, one a line."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How each translation must begin.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="What must stay as it is, wherever it stands; may be repeated."),
    ] = None,
    too_long: Annotated[
        str,
        typer.Option(metavar="WAY", help="What to do about sentences that are too long: split, or error."),
    ] = "split",
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Tell where each word comes from; with --json.")
    ] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Put its score and a tab before each translation.")
    ] = False,
    sentences: Annotated[
        bool,
        typer.Option("--sentences", help="Translate each sentence of a line for itself, and keep lists."),
    ] = False,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say which engine runs.")] = False,
) -> None:
    """Translate texts, or each line of standard input: line i of the output belongs to line i of the input.

    A line that cannot be read becomes an empty one, is told on stderr, and makes the exit status 2.
    """
    from regard.cli.arriving import Line, arriving
    from regard.loaded import load

    if alignment and not as_json:
        raise ConfigError("--alignment is told as JSON: add --json")
    loaded = load(model, engine=engine, device=device, threads=threads)  # type: ignore[arg-type]
    translator = loaded.translator(
        source=source,
        to=target,
        beam_size=beam,
        n_best=n_best,
        glossary=glossary,
        prefix=prefix,
        keep=keep or (),
        too_long=too_long,
        alignment=alignment,
        token_scores=scores and as_json,
        whole_lines=not sentences,
    )
    blocks: Iterator[list[Line]]
    blocks = arriving(sys.stdin.buffer) if texts is None else iter([[Line(0, text) for text in texts]])
    telling = Telling(progress=texts is None, engines=verbose)
    strictly = too_long == "error"
    for block in ([_told(line, translator, strictly=strictly) for line in block] for block in blocks):
        results = iter(translator([line.text for line in block if line.problem is None]))
        for line in block:
            result = None if line.problem else next(results)
            telling.hear(line, result)
            print(_as_json(line, result) if as_json else _as_columns(result, scores=scores))
        sys.stdout.flush()
        telling.progressed(len(block))
    telling.end()
    if telling.n_spoilt:
        raise typer.Exit(SPOILT)


def _told(line: Line, translator: Translator, *, strictly: bool) -> Line:
    """A line as it came; one that does not tell which way to translate it, or is too long, cannot be read."""
    from regard.cli.arriving import NAME

    if line.problem is not None:
        return line
    advice = " with --to"
    try:
        translator.direction(line.text)
        if strictly:
            advice = ""
            translator.check(line.text)
    except RequestError as error:
        where = f"{NAME}:{line.number}: " if line.number else ""
        return line._replace(text="", problem=f"{where}{error}{advice}")
    return line


def _as_columns(result: Result | None, *, scores: bool) -> str:
    if result is None:
        return ""
    every = [result, *result.alternatives]
    if not result.text.strip() or (not scores and len(every) == 1):
        return result.text
    columns = [
        column for each in every for column in ((f"{each.score:.4f}",) if scores else ()) + (each.text,)
    ]
    return "\t".join(column.replace("\t", " ") for column in columns)


def _as_json(line: Line, result: Result | None) -> str:
    if result is None:
        return json.dumps({"text": "", "error": line.problem}, ensure_ascii=False)
    return json.dumps(_table(result), ensure_ascii=False)


def _table(result: Result) -> dict[str, Any]:
    return {**asdict(result), "alternatives": [_table(each) for each in result.alternatives]}
