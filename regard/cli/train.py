"""`regard train`: from text files to a scored model."""

import json
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.corpora import NamedSets, columns_of
from regard.cli.options import ConfigOption, PresetOption, SetOption
from regard.config import RunConfig, read_config
from regard.errors import ConfigError, CorpusError

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.data.corpus import Corpus
    from regard.train.loop import Run
    from regard.train.preparation import PairsSource, Prepared

BUILTIN = "numerals"
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
    builtin: Annotated[
        str | None, typer.Option(metavar="NAME", help="A built-in corpus instead of files: numerals.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run; the same one goes on with it.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where to train: auto, cpu or cuda.")] = "auto",
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
    config, vocab_size = _configured(preset, file, settings or [], builtin)
    sets = None
    if not builtin:
        sets = NamedSets(tuple(files or ()), tuple(valid or ()), tuple(test or ()), columns_of(columns))
    languages = ("zh", "en") if sets is None else sets.languages(source, target)
    run = out or Path("runs") / (builtin or "-".join(languages))
    try:
        corpora = {} if sets is None else sets.corpora()
        with _claimed(run, config):
            _run(run, config, _source(sets, corpora, languages, run, config, vocab_size), device)
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
def _claimed(run: Path, config: RunConfig) -> Iterator[None]:
    """The folder, as this run's and for this process alone; another's is left as it is."""
    from regard.train.folder import claim, refuse_other
    from regard.train.lock import locked

    refuse_other(run, config)
    with locked(run, lambda words: typer.echo(words, err=True)):
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

    max_tokens, seed, texts = config.model.max_length, config.training.seed, run / DATA / "text"
    if sets is None:
        return numerals(texts, max_tokens=max_tokens, vocab_size=vocab_size, seed=seed, data=config.data)
    if sets.from_stdin:
        kept = spooled(texts / "stdin.gz", fixed=has_begun(run))
        corpora = {"training": table(kept, columns=sets.columns), **corpora}
    return PairsSource(
        train=corpora["training"],
        valid=corpora.get("validation"),
        test=corpora.get("the test"),
        languages=languages,
        vocab_size=vocab_size,
        max_tokens=max_tokens,
        seed=seed,
        data=config.data,
    )


def _run(run: Path, config: RunConfig, pairs: "PairsSource", device: str) -> None:
    """Prepare, train, then score the best model on the test set."""
    from regard.allocator import keep_freed_memory
    from regard.train.ending import ASKED_TO_STOP
    from regard.train.folder import DATA, has_begun
    from regard.train.loop import Run
    from regard.train.preparation import key_of, prepare_pairs
    from regard.train.world import World, choose_device

    keep_freed_memory()
    if has_begun(run) and key_of(run / DATA) not in (None, pairs.key()):
        raise CorpusError(
            f"{run}: the data has changed since the run began; choose another folder with --out"
        )
    prepared = prepare_pairs(run / DATA, pairs, lambda words: typer.echo(words, err=True))
    training = Run(run, config, prepared.data, world=World(choose_device(device)))
    training.listeners.append(_Lines(training))
    typer.echo(f"{training.model.n_parameters:,} parameters, {training.model.compute_dtype}", err=True)
    reason = training.train()
    typer.echo(f"{reason}, after {training.progress.seconds:,.0f} s of training", err=True)
    if reason == ASKED_TO_STOP:
        typer.echo("the same command goes on from here", err=True)
        raise typer.Exit(INTERRUPTED)
    _score(run, config, pairs, prepared)


def _score(run: Path, config: RunConfig, pairs: "PairsSource", prepared: "Prepared") -> None:
    from regard.bundle import load_bundle
    from regard.durable import write_whole
    from regard.evaluate.translation import score_translations
    from regard.model.transformer import Transformer
    from regard.text.normalisation import composed
    from regard.train.testing import translate

    best = load_bundle(run / "best").model
    assert isinstance(best, Transformer)
    sources, references = ([composed(row[side]) for row in prepared.test] for side in (0, 1))
    outputs = translate(best, prepared.subwords, sources, config.decoding)
    score = score_translations(outputs, references, pairs.languages[1])
    write_whole(run / "scores.json", json.dumps({"decoding": "greedy", **asdict(score)}, indent=1))
    typer.echo(str(score))
    typer.echo("greedily decoded, for example:")
    for row in list(zip(sources, outputs, strict=True))[:5]:
        typer.echo("  {}  →  {}".format(*row))
    typer.echo(f"the model is in {run / 'best'}; regard info {run / 'best'} describes it")


class _Lines:
    """A line on stderr every few seconds: step, loss, speed, time left."""

    EVERY = 5.0

    def __init__(self, run: "Run") -> None:
        self.run, self.tokens, self.since = run, 0, time.perf_counter()

    def __call__(self, event: dict[str, Any]) -> None:
        if "loss" not in event:
            typer.echo(str(event), err=True)
            return
        progress, loss = self.run.progress, event["loss"]
        self.tokens += event["tokens"]
        elapsed = time.perf_counter() - self.since
        if elapsed < self.EVERY:
            return
        limit, done = self.run.config.training.max_steps, max(1e-9, self.run.share_done)
        left = progress.seconds * max(0.0, 1.0 / done - 1.0)
        best = f"  best valid loss {progress.best_loss:.3f}" if progress.best_step else ""
        typer.echo(
            f"step {progress.step:,} of {limit:,}  loss {loss:.3f}"
            f"  perplexity {exp(min(loss, 99.0)):.2f}"
            f"  {self.tokens / elapsed:,.0f} tokens/s{best}  about {left:,.0f} s left",
            err=True,
        )
        self.tokens, self.since = 0, time.perf_counter()


def _table(file: Path | None) -> dict[str, Any]:
    """What a configuration file holds; nothing where it cannot be read, which `read_config` reports."""
    try:
        return {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
