"""`regard train SRC TGT`: a translator from pairs of texts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from regard.cli.asked import BUILTIN, Asked, shaped_like, taught_like
from regard.cli.corpora import NamedSets, columns_of
from regard.cli.training import carried_out, joined, say
from regard.config import RunConfig
from regard.errors import ConfigError, RequestError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.data.reading import Corpus, Row
    from regard.look.alignment.alignment import AligningHeads
    from regard.training.preparation import PairsSource
    from regard.training.starting import Start
    from regard.training.translation import Tested, TranslatorRun


def train_pairs(asked: Asked, source: str | None, target: str | None, builtin: str | None) -> None:
    """Train a translator, and score it."""
    _check_words(
        asked,
        builtin,
        {"--columns": asked.columns, "--valid": asked.valid, "--test": asked.test},
        source,
        target,
    )
    sets = None
    if not builtin:
        sets = NamedSets(asked.files, asked.valid, asked.test, columns_of(asked.columns))
    start = asked.start()
    config = shaped_like(asked, start)
    source, target = source or config.task.source, target or config.task.target
    languages = ("zh", "en") if sets is None else sets.languages(source, target)
    config = replace(config, task=replace(config.task, source=languages[0], target=languages[1]))
    config = taught_like(asked, config, start)
    if start is not None and config.task.has_tags:
        start.check_tags(languages)
    run = asked.out or Path("runs") / (builtin or "-".join(languages))
    corpora = {} if sets is None else sets.corpora()
    with joined(run, config, asked.device) as world:
        from regard.training.translation import TranslatorRun

        pairs = partial(_source, sets, corpora, languages, run, config, asked.vocab_size, start)
        task = TranslatorRun(
            run, config, pairs, world, start=start, sharded=asked.shard, tell=say, follow=_followed
        )
        carried_out(task, asked.log_to, partial(_conclude, run))


def _conclude(run: Path, task: TranslatorRun) -> None:
    _tell_alignment(task.align)
    _tell_score(run, task.test())


def _check_words(
    asked: Asked, builtin: str | None, others: dict[str, object], source: str | None, target: str | None
) -> None:
    if builtin is None:
        return
    if asked.files or builtin != BUILTIN:
        raise ConfigError(f"--builtin takes {BUILTIN}, and no files beside it")
    others |= {"--from": source, "--to": target}
    if beside := [name for name, value in others.items() if value]:
        raise ConfigError(f"--builtin has sets and languages of its own; leave out {', '.join(beside)}")


def _source(
    sets: NamedSets | None,
    corpora: dict[str, Corpus],
    languages: tuple[str, str],
    run: Path,
    config: RunConfig,
    vocab_size: int | None,
    start: Start | None,
) -> PairsSource:
    """The pairs to train on: from files, from standard input, which is kept in the folder, or built in."""
    from regard.data.reading import keep_stdin, table_corpus
    from regard.training.builtin import numerals
    from regard.training.checkpoints.folder import DATA, has_begun
    from regard.training.preparation import PairsSource

    texts = run / DATA / "text"
    asked: Any = {
        "vocab_size": vocab_size,
        "max_tokens": config.model.max_length,
        "seed": config.training.seed,
        "data": config.data,
        "both_directions": config.task.both_directions,
        "language_tag": config.task.language_tag,
        "subwords": None if start is None else start.subwords,
    }
    if sets is None:
        return numerals(texts, **asked)
    if sets.from_stdin:
        kept = keep_stdin(texts / "stdin.gz", fixed=has_begun(run))
        corpora = {"training": table_corpus(kept, columns=sets.columns), **corpora}
    return PairsSource(
        train=corpora["training"],
        valid=corpora.get("validation"),
        test=corpora.get("the test"),
        languages=languages,
        **asked,
    )


def _tell_alignment(align: Callable[[], AligningHeads]) -> None:
    try:
        found = align()
    except RequestError as error:  # a model that cannot be measured is a model all the same
        say(f"which heads align words could not be measured: {error}")
        return
    names = ", ".join(f"{layer}.{head}" for layer, head in found.heads)
    say(f"words are aligned by heads {names} (layer.head): {found.accuracy:.0%} of links in held-out pairs")


def _tell_score(run: Path, tested: list[Tested]) -> None:
    for each in tested:
        typer.echo(f"{each.direction}: {each.score}" if len(tested) > 1 else str(each.score))
        typer.echo("for example:")
        for row in list(zip(each.sources, each.outputs, strict=True))[:5]:
            typer.echo("  {}  →  {}".format(*row))
    example = shlex.quote(next(iter(tested[0].sources), ""))
    typer.echo(f"the model is in {run / 'best'}. Next:")
    typer.echo(f"  regard translate --model {shlex.quote(str(run))} {example}")
    typer.echo(f"  regard info {shlex.quote(str(run / 'best'))}")


def _followed(rows: Iterator[Row], total: int) -> Iterator[Row]:
    """Rows as they pass, with a bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return iter(
        track(rows, "encoding", total, console=console, transient=True, disable=not console.is_interactive)
    )
