"""`regard train`: from text files to a scored model."""

import json
import time
import tomllib
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import ConfigOption, PresetOption, SetOption
from regard.config import RunConfig, read_config
from regard.errors import ConfigError, CorpusError
from regard.text.languages import known_code, language_of

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.train.loop import Progress, Run
    from regard.train.preparation import PairsSource, Prepared
    from regard.train.step import Score

BUILTIN = "numerals"
INTERRUPTED = 130
"""Exit status of a run that was stopped before its end: what comes after `&&` must not start."""


def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SRC TGT", help="Two files in step: line i of one translates line i of the other."
        ),
    ] = None,
    *,
    valid: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="SRC TGT", help="To validate with; else split off.")
    ] = None,
    test: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="SRC TGT", help="To score with; else split off.")
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
    preset: PresetOption = None,
    file: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Train a translator on two text files and score it; run the same command again to go on with it."""
    _check_words(files, builtin, {"--valid": valid, "--test": test, "--from": source, "--to": target})
    settings = [setting.strip() for setting in settings or ()]
    usual = None if "preset" in _table(file) else BUILTIN if builtin else "small"
    config = read_config(preset=preset or usual, file=file, settings=settings)
    languages = ("zh", "en") if builtin else _languages(files or [], source, target)
    run = out or Path("runs") / (builtin or "-".join(languages))
    sized = any(setting.startswith("model.vocab_size") for setting in settings)
    sized = sized or "vocab_size" in _table(file).get("model", {})
    vocab_size = config.model.vocab_size if builtin or sized else None
    try:
        _run(run, config, _source(files or [], valid, test, languages, run, config, vocab_size))
    except OSError as error:
        raise ConfigError(f"{error.filename or run}: {error.strerror or error}") from error


def _check_words(files: list[Path] | None, builtin: str | None, others: dict[str, object]) -> None:
    if builtin is None and len(files or ()) != 2:
        raise ConfigError("give two files, SRC and TGT, or --builtin numerals")
    if builtin is None:
        return
    if files or builtin != BUILTIN:
        raise ConfigError(f"--builtin takes {BUILTIN}, and no files beside it")
    if beside := [name for name, value in others.items() if value is not None]:
        raise ConfigError(f"--builtin has sets and languages of its own; leave out {', '.join(beside)}")


def _source(
    files: list[Path],
    valid: tuple[Path, Path] | None,
    test: tuple[Path, Path] | None,
    languages: tuple[str, str],
    run: Path,
    config: RunConfig,
    vocab_size: int | None,
) -> "PairsSource":
    """The pairs to train on, from files or built in, once the folder is known to be this run's."""
    from regard.data.corpus import parallel, refuse_shared_files
    from regard.train.builtin import numerals
    from regard.train.loop import DATA, claim
    from regard.train.preparation import PairsSource

    max_tokens, seed = config.model.max_length, config.training.seed
    corpora = {"training": parallel(*files)} if files else {}
    corpora |= {"validation": parallel(*valid)} if valid else {}
    corpora |= {"the test": parallel(*test)} if test else {}
    refuse_shared_files(corpora)
    claim(run, config)
    if not files:
        return numerals(run / DATA / "text", max_tokens=max_tokens, vocab_size=vocab_size, seed=seed)
    return PairsSource(
        train=corpora["training"],
        valid=corpora.get("validation"),
        test=corpora.get("the test"),
        languages=languages,
        vocab_size=vocab_size,
        max_tokens=max_tokens,
        seed=seed,
    )


def _run(run: Path, config: RunConfig, pairs: "PairsSource") -> None:
    """Prepare, train, then score the best model on the test set."""
    from regard.allocator import keep_freed_memory
    from regard.train.loop import ASKED_TO_STOP, DATA, Run, has_begun
    from regard.train.preparation import key_of, prepare_pairs

    keep_freed_memory()
    if has_begun(run) and key_of(run / DATA) not in (None, pairs.key()):
        raise CorpusError(
            f"{run}: the data has changed since the run began; choose another folder with --out"
        )
    prepared = prepare_pairs(run / DATA, pairs, lambda words: typer.echo(words, err=True))
    training = Run(run, config, prepared.data)
    training.on_step = _Lines(training)
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

    def __call__(self, progress: "Progress", score: "Score") -> None:
        self.tokens += score.n_tokens
        elapsed = time.perf_counter() - self.since
        if elapsed < self.EVERY:
            return
        limit, done = self.run.config.training.max_steps, max(1e-9, self.run.share_done)
        left = progress.seconds * max(0.0, 1.0 / done - 1.0)
        best = f"  best valid loss {progress.best_loss:.3f}" if progress.best_step else ""
        typer.echo(
            f"step {progress.step:,} of {limit:,}  loss {score.loss:.3f}"
            f"  perplexity {exp(min(score.loss, 99.0)):.2f}"
            f"  {self.tokens / elapsed:,.0f} tokens/s{best}  about {left:,.0f} s left",
            err=True,
        )
        self.tokens, self.since = 0, time.perf_counter()


def _languages(files: list[Path], source: str | None, target: str | None) -> tuple[str, str]:
    """The two languages, from the flags or from the names of the files."""
    given = [source, target]
    found = [
        (known_code(word) or word) if word else language_of(file)
        for word, file in zip(given, files, strict=True)
    ]
    problems = [
        f"{file}: the name does not tell its language; say it with {flag}, as in {flag} en"
        for file, code, flag in zip(files, found, ("--from", "--to"), strict=True)
        if code is None
    ]
    if problems:
        raise ConfigError(problems)
    return found[0] or "", found[1] or ""


def _table(file: Path | None) -> dict[str, Any]:
    """What a configuration file holds; nothing where it cannot be read, which `read_config` reports."""
    try:
        return {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
