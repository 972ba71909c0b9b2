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
    from regard.engine.translator import OutputLine


def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Text to translate; by default, lines of standard input."),
    ] = None,
    *,
    model: ModelOption = BUNDLED,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="CODE", help="Source language; default: detected."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--to", metavar="CODE", help="Target language; default: detected."),
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(help="Translations per line, separated by tabs.")] = 1,
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Phrases and their translations, one tab-separated pair per line."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How each translation must begin.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Copy this untranslated wherever it occurs; may be repeated."),
    ] = None,
    check_numbers: Annotated[
        bool,
        typer.Option(
            "--check-numbers/--no-check-numbers",
            help="Compare the values of both texts: amounts, dates, times; correct or report changed ones.",
        ),
    ] = True,
    too_long: Annotated[
        str,
        typer.Option(metavar="WAY", help="For sentences that are too long: split, or error."),
    ] = "split",
    alignment: Annotated[bool, typer.Option("--alignment", help="Add word alignments; with --json.")] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the score and a tab before each translation.")
    ] = False,
    sentences: Annotated[
        bool,
        typer.Option("--sentences", help="Translate each sentence of a line separately; list markers stay."),
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Sample tokens instead of searching for the most likely.")
    ] = False,
    temperature: Annotated[
        float, typer.Option(help="With --sample: below 1 sharpens the distribution, above 1 flattens it.")
    ] = 1.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    seed: SeedOption = 1,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print which engine runs.")] = False,
    ray: RayOption = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="With --ray: workers, with --threads cores each; default: all cores."),
    ] = None,
    shards: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --ray: store finished shards here, and resume from them."),
    ] = None,
) -> None:
    """Translate texts, or each line of standard input.

    Line i of the output belongs to line i of the input. A line that cannot be translated gives an empty line
    and a message on stderr, and the exit status is 2.
    """
    if alignment and not as_json:
        raise ConfigError("--alignment needs --json", code="missing_option")
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
    if not sample:
        _reject_unused(sampling)
    options = {
        "source": source,
        "to": target,
        "beam_size": beam,
        "n_best": n_best,
        "glossary": glossary,
        "prefix": prefix,
        "keep": keep or (),
        "check_numbers": check_numbers,
        "too_long": too_long,
        "alignment": alignment,
        "token_scores": scores and as_json,
        "whole_lines": not sentences,
        "sample": sample,
        **sampling,
    }
    job = TranslationJob(model, engine, device, threads, scores, as_json, options)
    reporter = LineReporter(progress=texts is None, engines=verbose)
    if ray is None and (workers or shards):
        raise ConfigError("--workers and --shards need --ray local, or an address", code="missing_option")
    blocks = _here(job, texts) if ray is None else _on_cluster(job, texts, ray, workers, shards)
    with closing(blocks):
        for block in blocks:
            for written in block:
                reporter.add(written)
                print(with_flags(written.text) if written.failed else written.text)
            sys.stdout.flush()
            reporter.advance(len(block))
    reporter.close()
    if reporter.n_unreadable:
        raise typer.Exit(UNREADABLE_INPUT)


def _reject_unused(sampling: dict[str, float]) -> None:
    """Raise ConfigError for options of sampling without --sample."""
    from regard.engine.engines.protocol import Search

    defaults = Search()
    for name, value in sampling.items():
        if value != getattr(defaults, name):
            raise ConfigError(f"`{name}` needs `sample`", code="missing_option")


class TranslationJob(NamedTuple):
    """How lines are translated and printed."""

    model: list[Path]
    engine: str
    device: str
    threads: int | None
    scores: bool
    as_json: bool
    options: dict[str, Any]


def _here(job: TranslationJob, texts: list[str] | None) -> Generator[list[OutputLine]]:
    """Translate in this process, as lines arrive."""
    from regard.cli.shared.input_lines import input_blocks
    from regard.engine.translator import LineTranslator, mark_code
    from regard.loaded import load

    loaded = load(job.model, engine=job.engine, device=job.device, threads=job.threads)  # type: ignore[arg-type]
    strict = job.options["too_long"] == "error"
    translator = loaded.translator(**job.options)
    write = LineTranslator(translator, strict=strict, scores=job.scores, as_json=job.as_json)
    # Other tasks read lines, not documents.
    lines = input_blocks(texts)
    yield from map(write, mark_code(lines) if loaded.task.name == "translate" else lines)


def _on_cluster(
    job: TranslationJob, texts: list[str] | None, address: str, workers: int | None, shards: Path | None
) -> Generator[list[OutputLine]]:
    """Translate with the workers of a Ray cluster, shard by shard."""
    from regard.cli.shared.input_lines import input_blocks
    from regard.scale.corpus import CorpusRun, lines_of
    from regard.scale.workers import WorkerSettings
    from regard.text.files import STDIN

    settings = WorkerSettings(
        engine=job.engine,  # type: ignore[arg-type]
        device=job.device,
        threads=job.threads or 1,
        scores=job.scores,
        as_json=job.as_json,
        options=job.options,
    )
    run = CorpusRun(job.model, settings, address=address, workers=workers, shards=shards)
    try:
        yield from run.written(lines_of([STDIN]) if texts is None else input_blocks(texts))
    except (KeyboardInterrupt, GeneratorExit):  # the latter when printing was interrupted
        print(f"regard: finished shards are kept; resume with --shards {run.shards}", file=sys.stderr)
        raise
