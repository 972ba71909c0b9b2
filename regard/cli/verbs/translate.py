"""`regard translate`: text in, text out, line by line."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.shared.options import (
    BUNDLED,
    DeviceOption,
    EngineOption,
    JsonOption,
    MinPOption,
    ModelOption,
    RayOption,
    SeedOption,
    ThreadsOption,
    TopKOption,
    TopPOption,
    with_flags,
)
from regard.cli.shared.reporting import UNREADABLE_INPUT, LineReporter
from regard.errors import ConfigError

if TYPE_CHECKING:  # the verb's help must not wait for engines
    from regard.engine.line_by_line import Written


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
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw tokens instead of searching for the likeliest.")
    ] = False,
    temperature: Annotated[
        float, typer.Option(help="With --sample: below 1 the likely get likelier, above 1 less likely.")
    ] = 1.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    seed: SeedOption = 1,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say which engine runs.")] = False,
    ray: RayOption = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="With --ray: workers, of --threads cores each; by default, all cores."),
    ] = None,
    shards: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --ray: keep what is done, and go on from what is there."),
    ] = None,
) -> None:
    """Translate texts, or each line of standard input.

    Line i of the output belongs to line i of the input. A line that cannot be read becomes an empty one, is
    told on stderr, and makes the exit status 2.
    """
    if alignment and not as_json:
        raise ConfigError("--alignment is told as JSON: add --json")
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
    if not sample:
        _refuse_idle(drawing)
    options = {
        "source": source,
        "to": target,
        "beam_size": beam,
        "n_best": n_best,
        "glossary": glossary,
        "prefix": prefix,
        "keep": keep or (),
        "too_long": too_long,
        "alignment": alignment,
        "token_scores": scores and as_json,
        "whole_lines": not sentences,
        "sample": sample,
        **drawing,
    }
    asked = Asked(model, engine, device, threads, scores, as_json, options)
    reporter = LineReporter(progress=texts is None, engines=verbose)
    if ray is None and (workers or shards):
        raise ConfigError("--workers and --shards are for a Ray cluster: add --ray local, or its address")
    blocks = _here(asked, texts) if ray is None else _on_a_cluster(asked, texts, ray, workers, shards)
    with closing(blocks):
        for block in blocks:
            for written in block:
                reporter.add(written)
                print(with_flags(written.text) if written.spoilt else written.text)
            sys.stdout.flush()
            reporter.advance(len(block))
    reporter.close()
    if reporter.n_unreadable:
        raise typer.Exit(UNREADABLE_INPUT)


def _refuse_idle(drawing: dict[str, float]) -> None:
    """Raise where it is said how to draw, and nothing is drawn."""
    from regard.engine.engines.protocol import Search

    usual = Search()
    for name, value in drawing.items():
        if value != getattr(usual, name):
            raise ConfigError(f"`{name}` is for outputs that are drawn: add `sample`")


class Asked(NamedTuple):
    """What lines are translated by, and what is written of them."""

    model: list[Path]
    engine: str
    device: str
    threads: int | None
    scores: bool
    as_json: bool
    options: dict[str, Any]


def _here(asked: Asked, texts: list[str] | None) -> Generator[list[Written]]:
    """By this process, as the lines arrive."""
    from regard.cli.shared.input_lines import input_blocks
    from regard.engine.line_by_line import LineByLine
    from regard.loaded import load

    loaded = load(asked.model, engine=asked.engine, device=asked.device, threads=asked.threads)  # type: ignore[arg-type]
    strictly = asked.options["too_long"] == "error"
    translator = loaded.translator(**asked.options)
    write = LineByLine(translator, strictly=strictly, scores=asked.scores, as_json=asked.as_json)
    yield from map(write, input_blocks(texts))


def _on_a_cluster(
    asked: Asked, texts: list[str] | None, address: str, workers: int | None, shards: Path | None
) -> Generator[list[Written]]:
    """By the workers of a Ray cluster, shard by shard."""
    from regard.cli.shared.input_lines import input_blocks
    from regard.scale.corpus import CorpusRun, lines_of
    from regard.scale.workers import WorkerSettings
    from regard.text.files import STDIN

    settings = WorkerSettings(
        engine=asked.engine,  # type: ignore[arg-type]
        device=asked.device,
        threads=asked.threads or 1,
        scores=asked.scores,
        as_json=asked.as_json,
        options=asked.options,
    )
    run = CorpusRun(asked.model, settings, address=address, workers=workers, shards=shards)
    try:
        yield from run.written(lines_of([STDIN]) if texts is None else input_blocks(texts))
    except (KeyboardInterrupt, GeneratorExit):  # here, or where it was printed
        print(f"regard: what is done is kept: --shards {run.shards} goes on from there", file=sys.stderr)
        raise
