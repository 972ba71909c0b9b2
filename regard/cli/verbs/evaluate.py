"""`regard evaluate`: scores of models, or of translations that are there already, on a test set."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.bundle import describe_bundle
from regard.cli.evaluate_tasks import evaluate_tasks
from regard.cli.shared.options import EngineOption
from regard.config import TaskConfig
from regard.engine.loading import engine_name, model_folder
from regard.errors import ConfigError, CorpusError
from regard.text.files import display_name
from regard.text.files.parallel import read_parallel
from regard.text.languages import known_code, language_name, language_of


def evaluate(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC | FILE",
            help="The lines to translate; - is standard input. For other tasks, a file as for training: "
            "labels and texts, plain text, or JSONL with fields.",
        ),
    ],
    reference: Annotated[
        Path | None, typer.Argument(metavar="REF", help="Right translations of SRC, in step.")
    ] = None,
    *,
    models: Annotated[
        list[Path] | None,
        typer.Option("--model", metavar="MODEL", help="A model or run folder to score; may be repeated."),
    ] = None,
    outputs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Translations of SRC to score as they are; may be repeated."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Columns of a table for another task, as in training."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="CODE", help="Language of REF, if its name does not tell.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Hypotheses kept at each step; else as each model says.")
    ] = None,
    engine: EngineOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead.")] = False,
) -> None:
    """Score models, or translations that are there, on a test set.

    Translations of SRC are compared with REF: BLEU, chrF and chrF++ with signatures and 95% intervals. Where
    there are several, all others are compared with the first: might the difference be chance? Models
    for other tasks are scored on FILE: labels by accuracy and F1, text by perplexity, summaries by ROUGE,
    answers by exact match and F1; of several classifiers, the mean of their answers is scored, too.
    """
    models, outputs = models or [], outputs or []
    _check_names(models, outputs)
    if reference is None:
        beside = {"--outputs": outputs, "--to": target, "--engine": engine != "auto"}
        evaluate_tasks(source, models, columns, beam, beside, as_json=as_json)
        return
    if columns is not None:
        raise ConfigError("--columns is for a table that another task is scored on, and not for SRC and REF")
    named = engine_name(engine)
    tasks = {model: describe_bundle(model_folder(model)).task for model in models}
    language = (known_code(target) or target) if target else language_of(reference)
    if language is None and any(task.both_directions for task in tasks.values()):
        raise ConfigError("the model translates both ways: say the language of REF, as in --to en")
    language = language or next((task.target for task in tasks.values() if task.target), None)
    sources, references, *given = _columns([source, reference, *outputs])

    from regard.loaded import load
    from regard.scores.comparison import compare

    systems: dict[str, list[str]] = {}
    for model in models:
        if sys.stderr.isatty():
            typer.echo(f"translating {len(sources):,} lines with {model}", err=True)
        made = load(model, engine=named).translate_lines(sources, to=language, beam_size=beam)
        systems[f"{model} ({made.how})"] = made.lines
    systems |= dict(zip(map(display_name, outputs), given, strict=True))
    comparison, notes = compare(systems, references, language), _notes(language, tasks)
    if as_json:
        typer.echo(json.dumps({**asdict(comparison), "notes": notes}, ensure_ascii=False))
    else:
        typer.echo("\n".join([str(comparison), *(f"note: {note}" for note in notes)]))


def _check_names(models: list[Path], outputs: list[Path]) -> None:
    named = [*models, *outputs]
    if not named:
        raise ConfigError("what is to be scored? Name a model with --model, or translations with --outputs")
    if twice := {str(name) for name in named if named.count(name) > 1}:
        raise ConfigError(f"{', '.join(sorted(twice))}: named twice, and would be compared with itself")


def _columns(files: list[Path]) -> list[list[str]]:
    """The lines of files in step, all of them usable."""
    columns: list[list[str]] = [[] for _ in files]
    for block in read_parallel(files):
        for i, why in block.unusable.items():
            raise CorpusError(f"{block.name}:{block.first + i}: {why}, here or in a file in step; shorten it")
        for column, lines in zip(columns, block.columns, strict=True):
            column += lines
    if not columns[0]:
        raise CorpusError(f"{display_name(files[0])}: has no lines, so there is nothing to score")
    return columns


def _notes(language: str | None, tasks: dict[Path, TaskConfig]) -> list[str]:
    """What a reader of the scores should know."""
    from regard.scores.translation import tokenizer_of

    found = []
    if language is None:
        found.append("the language of REF is not known, and was cut as most are (tok:13a); --to CODE says it")
    elif tokenizer_of(language) == "char":
        name = language_name(language)
        found.append(f"{name} is cut into characters here (tok:char); other tokenizers give other BLEU")
    found += [
        f"{model} was trained to write {task.target}, and REF is in {language}"
        for model, task in tasks.items()
        if task.target and language and not task.both_directions
        if task.target.split("-")[0] != language.split("-")[0]
    ]
    return found
