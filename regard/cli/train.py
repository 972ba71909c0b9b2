"""`regard train`: from text files to a scored model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import ConfigOption, PresetOption, SetOption
from regard.config import RunConfig, read_config
from regard.errors import ConfigError
from regard.text.languages import known_code, language_of

if TYPE_CHECKING:  # the verb's help must not wait for torch
    from regard.train.loop import Run
    from regard.train.preparation import PairsSource, Prepared

Pair = Annotated[tuple[Path, Path] | None, typer.Option(metavar="SRC TGT")]
BUILTIN = "numerals"


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
    if builtin is None and len(files or ()) != 2:
        raise ConfigError("give two files, SRC and TGT, or --builtin numerals")
    if builtin is not None and (files or builtin != BUILTIN):
        raise ConfigError(f"--builtin takes {BUILTIN}, and no files beside it")
    chosen = preset or (BUILTIN if builtin else "small")
    config = read_config(preset=chosen if file is None else preset, file=file, settings=settings or ())
    languages = ("zh", "en") if builtin else _languages(files or [], source, target)
    run = out or Path("runs") / (builtin or "-".join(languages))
    vocab_size = config.model.vocab_size if builtin or _is_set(settings, file) else None

    from regard.allocator import keep_freed_memory
    from regard.data.corpus import parallel, refuse_shared_files
    from regard.train.builtin import numerals
    from regard.train.loop import DATA, refuse_strangers
    from regard.train.preparation import PairsSource, prepare_pairs

    keep_freed_memory()
    refuse_strangers(run)
    max_tokens, seed = config.model.max_length, config.training.seed
    if builtin:
        pairs = numerals(run / DATA / "text", max_tokens=max_tokens, vocab_size=vocab_size, seed=seed)
    else:
        corpora = {"training": parallel(*files or [])}
        corpora |= {"validation": parallel(*valid)} if valid else {}
        corpora |= {"the test": parallel(*test)} if test else {}
        refuse_shared_files(corpora)
        pairs = PairsSource(
            train=corpora["training"],
            valid=corpora.get("validation"),
            test=corpora.get("the test"),
            languages=languages,
            vocab_size=vocab_size,
            max_tokens=max_tokens,
            seed=seed,
        )
    prepared = prepare_pairs(run / DATA, pairs, lambda words: typer.echo(words, err=True))
    _train(run, config, pairs, prepared)


def _train(run: Path, config: RunConfig, pairs: "PairsSource", prepared: "Prepared") -> None:
    """Train, then score the best model on the test set."""
    from regard.bundle import load_bundle
    from regard.evaluate.translation import score_translations
    from regard.model.transformer import Transformer
    from regard.train.loop import Run
    from regard.train.testing import translate

    model = replace(config.model, vocab_size=prepared.subwords.vocab_size)
    training = Run(run, replace(config, model=model), prepared.data)
    training.on_step = _Lines(training)
    typer.echo(f"{training.model.n_parameters:,} parameters, {training.model.compute_dtype}", err=True)
    reason = training.train()
    typer.echo(f"{reason}, after {training.progress.seconds:,.0f} s of training", err=True)
    if reason == "asked to stop":
        typer.echo("the same command goes on from here", err=True)
        return
    best = load_bundle(run / ("best" if (run / "best").exists() else "last")).model
    assert isinstance(best, Transformer)
    sources, references = ([row[side] for row in prepared.test] for side in (0, 1))
    outputs = translate(best, prepared.subwords, sources, config.decoding)
    for row in list(zip(sources, outputs, strict=True))[:5]:
        typer.echo("  {}  →  {}".format(*row))
    typer.echo(str(score_translations(outputs, references, pairs.languages[1])))
    typer.echo(f"the model is in {run / 'best'}; regard info {run / 'best'} describes it")


class _Lines:
    """A line on stderr every few seconds: step, loss, speed, time left."""

    EVERY = 5.0

    def __init__(self, run: "Run") -> None:
        import time

        self.clock = time.perf_counter
        self.run, self.tokens, self.since = run, 0, self.clock()

    def __call__(self, progress: object, score: object) -> None:
        from math import exp

        from regard.train.loop import Progress
        from regard.train.step import Score

        assert isinstance(progress, Progress)
        assert isinstance(score, Score)
        self.tokens += score.n_tokens
        elapsed = self.clock() - self.since
        if elapsed < self.EVERY:
            return
        limit = self.run.config.training.max_steps
        left = (limit - progress.step) * progress.seconds / max(1, progress.step)
        best = f"  best valid loss {progress.best_loss:.3f}" if progress.best_step else ""
        typer.echo(
            f"step {progress.step:,} of {limit:,}  loss {score.loss:.3f}  perplexity {exp(score.loss):.2f}"
            f"  {self.tokens / elapsed:,.0f} tokens/s{best}  about {left:,.0f} s left",
            err=True,
        )
        self.tokens, self.since = 0, self.clock()


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


def _is_set(settings: list[str] | None, file: Path | None) -> bool:
    """Whether somebody chose the size of the vocabulary; otherwise the data does."""
    in_file = file is not None and "vocab_size" in file.read_text(encoding="utf-8")
    return in_file or any(setting.startswith("model.vocab_size") for setting in settings or ())
