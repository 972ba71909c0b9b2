"""`regard train`: from text files to a scored model."""

import shlex
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.corpora import NamedSets, columns_of
from regard.cli.options import ConfigOption, PresetOption, SetOption
from regard.config import RunConfig, read_config
from regard.errors import ConfigError, RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.data.corpus import Corpus, Row
    from regard.look.aligning_heads import AligningHeads
    from regard.train.loop import Listener, Run
    from regard.train.preparation import PairsSource
    from regard.train.translation import Tested
    from regard.train.world import World

BUILTIN = "numerals"
DIVERGED = 2
INTERRUPTED = 130
"""Exit status of a run that was stopped before its end: what comes after `&&` must not start."""


def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SRC TGT | TABLE",
            help="Two files in step: line i of one translates line i of the other. Or a table, TSV or JSONL, "
            "with --columns; - is standard input.",
        ),
    ] = None,
    *,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="SRC,TGT",
            help="Columns of tables, by name or, where TSV has no head, by number from 1; a.b is b in a.",
        ),
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="SRC TGT | TABLE", help="To validate with; else split off."),
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="SRC TGT | TABLE", help="To score with; else split off.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="CODE", help="Language of SRC, if its name does not tell.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="CODE", help="Language of TGT, if its name does not tell.")
    ] = None,
    both_directions: Annotated[
        bool, typer.Option("--both-directions", help="Train one model for both, SRC to TGT and TGT to SRC.")
    ] = False,
    builtin: Annotated[
        str | None, typer.Option(metavar="NAME", help="A built-in corpus instead of files: numerals.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run; the same one goes on with it.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after so many steps.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Stop after so many times through the data.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes.")] = None,
    device: Annotated[str, typer.Option(help="Where to train: auto, cpu or cuda.")] = "auto",
    shard: Annotated[
        bool, typer.Option("--shard", help="Share the weights among the processes of torchrun, too.")
    ] = False,
    log_to: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Tell tensorboard, wandb or mlflow, too; may be repeated."),
    ] = None,
    preset: PresetOption = None,
    file: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Train a translator on pairs of texts and score it; run the same command again to go on with it."""
    _check_words(
        files,
        builtin,
        {"--columns": columns, "--valid": valid, "--test": test, "--from": source, "--to": target},
    )
    limits = {"max_steps": max_steps, "max_epochs": max_epochs, "max_minutes": max_minutes}
    ways = ["task.both_directions=true"] if both_directions else []
    settings = [*(settings or ()), *ways, *(f"training.{k}={v}" for k, v in limits.items() if v is not None)]
    config, vocab_size = _configured(preset, file, settings, builtin)
    sets = None
    if not builtin:
        sets = NamedSets(tuple(files or ()), tuple(valid or ()), tuple(test or ()), columns_of(columns))
    source, target = source or config.task.source, target or config.task.target
    languages = ("zh", "en") if sets is None else sets.languages(source, target)
    config = replace(config, task=replace(config.task, source=languages[0], target=languages[1]))
    run = out or Path("runs") / (builtin or "-".join(languages))
    try:
        corpora = {} if sets is None else sets.corpora()
        with _joined(device) as world, _claimed(run, config) if world.is_main else nullcontext():
            pairs = partial(_source, sets, corpora, languages, run, config, vocab_size)
            _run(run, config, pairs, world, shard=shard, log_to=log_to or [])
    except OSError as error:
        raise ConfigError(f"{error.filename or run}: {error.strerror or error}") from error


def _check_words(files: list[Path] | None, builtin: str | None, others: dict[str, object]) -> None:
    if builtin is None:
        return
    if files or builtin != BUILTIN:
        raise ConfigError(f"--builtin takes {BUILTIN}, and no files beside it")
    if beside := [name for name, value in others.items() if value]:
        raise ConfigError(f"--builtin has sets and languages of its own; leave out {', '.join(beside)}")


def _configured(
    preset: str | None, file: Path | None, settings: list[str], builtin: str | None
) -> tuple[RunConfig, int | None]:
    """The configuration, and the size of the vocabulary, unless that is left to the data."""
    settings = [setting.strip() for setting in settings]
    usual = None if "preset" in _table(file) else BUILTIN if builtin else "small"
    config = read_config(preset=preset or usual, file=file, settings=settings)
    sized = any(setting.startswith("model.vocab_size") for setting in settings)
    sized = sized or "vocab_size" in _table(file).get("model", {})
    return config, config.model.vocab_size if builtin or sized else None


@contextmanager
def _joined(device: str) -> "Iterator[World]":
    """This process among those that train together, with memory kept as training likes it."""
    from regard.allocator import keep_freed_memory
    from regard.train.world import join_world

    keep_freed_memory()
    with join_world(device) as world:
        yield world


@contextmanager
def _claimed(run: Path, config: RunConfig) -> Iterator[None]:
    """The folder, as this run's and for this process alone; another's is left as it is."""
    from regard.train.folder import claim, refuse_other
    from regard.train.lock import locked

    refuse_other(run, config)
    with locked(run, _say):
        claim(run, config)
        yield


def _source(
    sets: NamedSets | None,
    corpora: dict[str, "Corpus"],
    languages: tuple[str, str],
    run: Path,
    config: RunConfig,
    vocab_size: int | None,
) -> "PairsSource":
    """The pairs to train on: from files, from standard input, which is kept in the folder, or built in."""
    from regard.data.corpus import table
    from regard.data.spool import spooled
    from regard.train.builtin import numerals
    from regard.train.folder import DATA, has_begun
    from regard.train.preparation import PairsSource

    texts = run / DATA / "text"
    asked: Any = {
        "vocab_size": vocab_size,
        "max_tokens": config.model.max_length,
        "seed": config.training.seed,
        "data": config.data,
        "both_directions": config.task.both_directions,
    }
    if sets is None:
        return numerals(texts, **asked)
    if sets.from_stdin:
        kept = spooled(texts / "stdin.gz", fixed=has_begun(run))
        corpora = {"training": table(kept, columns=sets.columns), **corpora}
    return PairsSource(
        train=corpora["training"],
        valid=corpora.get("validation"),
        test=corpora.get("the test"),
        languages=languages,
        **asked,
    )


def _run(
    run: Path,
    config: RunConfig,
    source: "Callable[[], PairsSource]",
    world: "World",
    *,
    shard: bool,
    log_to: list[str],
) -> None:
    """Prepare, train, then test the best model."""
    from regard.train.ending import ASKED_TO_STOP, DivergedError
    from regard.train.translation import TranslatorRun

    training = TranslatorRun(run, config, source, world, sharded=shard, tell=_say, follow=_followed)
    try:
        reason = training.train(lambda each: _watched(each, log_to) if world.is_main else nullcontext(()))
    except DivergedError:
        if world.is_main:  # it happened to all processes, and one tells it
            raise
        raise typer.Exit(DIVERGED) from None
    stopped = reason == ASKED_TO_STOP
    if world.is_main:
        _say(f"{reason}, after {training.run.progress.seconds:,.0f} s of training")
        if stopped:
            _say("the same command goes on from here")
        else:
            _tell_alignment(training.align)
            _tell_score(run, training.test())
    if stopped:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _watched(run: "Run", log_to: list[str]) -> "Iterator[list[Listener]]":
    """A display and the trackers that were asked for, for as long as a run lasts."""
    from rich.console import Console

    from regard.train.display import open_display
    from regard.train.journal import Journal
    from regard.train.trackers import open_tracker

    model, console = run.model, Console(stderr=True)
    _say(f"{model.n_parameters:,} parameters, {model.compute_dtype}, {run.world.device.type}")
    with ExitStack() as stack:
        trackers = [stack.enter_context(open_tracker(name, run.folder, run.config)) for name in log_to]
        steps = run.config.training.max_steps
        display = stack.enter_context(open_display(console, str(run.folder), steps, lambda: run.share_done))
        if console.is_interactive:  # a run that goes on shows where it was
            for event in Journal(run.folder / "journal.jsonl"):
                display(event)
        yield [display, *trackers]


def _tell_alignment(align: "Callable[[], AligningHeads]") -> None:
    try:
        found = align()
    except RequestError as error:  # a model that cannot be measured is a model all the same
        _say(f"which heads align words could not be measured: {error}")
        return
    names = ", ".join(f"{layer}.{head}" for layer, head in found.heads)
    _say(f"words are aligned by heads {names} (layer.head): {found.accuracy:.0%} of links in held-out pairs")


def _tell_score(run: Path, tested: "list[Tested]") -> None:
    for each in tested:
        typer.echo(f"{each.direction}: {each.score}" if len(tested) > 1 else str(each.score))
        typer.echo("for example:")
        for row in list(zip(each.sources, each.outputs, strict=True))[:5]:
            typer.echo("  {}  →  {}".format(*row))
    example = shlex.quote(next(iter(tested[0].sources), ""))
    typer.echo(f"the model is in {run / 'best'}. Next:")
    typer.echo(f"  regard translate --model {shlex.quote(str(run))} {example}")
    typer.echo(f"  regard info {shlex.quote(str(run / 'best'))}")


def _say(words: str) -> None:
    typer.echo(words, err=True)


def _followed(rows: "Iterator[Row]", total: int) -> "Iterator[Row]":
    """Rows as they pass, with a bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return iter(
        track(rows, "encoding", total, console=console, transient=True, disable=not console.is_interactive)
    )


def _table(file: Path | None) -> dict[str, Any]:
    """What a configuration file holds; nothing where it cannot be read, which `read_config` reports."""
    try:
        return {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
