"""`regard evaluate`: scores of models, or of given translations, on a test set."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.bundle import Description, describe_bundle
from regard.cli.shared.data_files import parse_columns
from regard.cli.shared.options import BUNDLED, model_option
from regard.config import TaskConfig
from regard.engine.loading import engine_name, model_folder
from regard.errors import ConfigError
from regard.text.files import display_name
from regard.text.files.tables import Column
from regard.text.languages import known_code, language_name, language_of

TOGETHER = "the mean of their answers"
"""The name of the score of several models that answer together."""


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
        Path | None, typer.Argument(metavar="REF", help="Reference translations of SRC, line by line.")
    ] = None,
    *,
    models: Annotated[
        list[Path] | None,
        model_option("; several are compared. Default: the bundled translator, unless there are --outputs"),
    ] = None,
    outputs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Existing translations of SRC to score; may be repeated."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Columns of a table for another task, as in training."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of REF, if its name does not say it.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Beam size. Default: as the model folder says.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="torch, in the precision of the test at the end of `regard train`; ctranslate2, in that of "
            "`regard translate`; or auto: the fastest.",
        ),
    ] = "torch",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score models, or existing translations, on a test set.

    Translations of SRC are compared with REF: BLEU, chrF and chrF++ with signatures and 95% intervals. Of
    several, the others are compared with the first by a significance test. Models for other tasks are scored
    on FILE: labels by accuracy and F1, text by perplexity, summaries by ROUGE, answers by exact match and F1;
    of several classifiers, the mean of their answers is scored, too.
    """
    models, outputs = models or ([] if outputs or reference is None else [*BUNDLED]), outputs or []
    _check_names(models, outputs)
    described = {model: describe_bundle(model_folder(model)) for model in models}
    if reference is None:
        for_translations = {"--outputs": outputs, "--target": target, "--engine": engine != "torch"}
        if given := [name for name, value in for_translations.items() if value]:
            raise ConfigError(
                f"{', '.join(given)}: only for translations, which are scored on two files, SRC and REF",
                code="option_not_for_task",
            )
        scores = _scores(described, source, parse_columns(columns), beam)
        _print_scores(scores, as_json=as_json)
        return
    if columns is not None:
        raise ConfigError(
            "--columns is for a table of another task, not for SRC and REF", code="option_not_for_task"
        )
    tasks = {model: each.task for model, each in described.items()}
    language = _language(target, reference, tasks.values())

    from regard.scores.comparison import compare
    from regard.tasks.translate import lines_in_step, scoring_translator

    named = engine_name(engine)
    sources, references, *given_lines = lines_in_step([source, reference, *outputs])
    systems: dict[str, list[str]] = {}
    for model in models:
        if sys.stderr.isatty():
            typer.echo(f"translating {len(sources):,} lines with {model}", err=True)
        translator = scoring_translator(described[model], engine=named)
        made = translator.translate_lines(sources, to=language, beam_size=beam)
        systems[f"{model} ({made.how})"] = made.lines
    systems |= dict(zip(map(display_name, outputs), given_lines, strict=True))
    comparison, notes = compare(systems, references, language), _notes(language, tasks)
    if as_json:
        typer.echo(json.dumps({**asdict(comparison), "notes": notes}, ensure_ascii=False))
    else:
        typer.echo("\n".join([str(comparison), *(f"note: {note}" for note in notes)]))


def _language(target: str | None, reference: Path, tasks: Collection[TaskConfig]) -> str | None:
    """The language of the references: as given, by the name of their file, or as models write it.

    Raises:
        ConfigError: a model that translates both ways needs to know it.
    """
    language = (known_code(target) or target) if target else language_of(reference)
    if language is None and any(task.both_directions for task in tasks):
        raise ConfigError(
            "the model translates both ways: say the language of REF, as in --target en",
            code="unknown_language",
        )
    return language or next((task.target for task in tasks if task.target), None)


def _scores(
    models: Mapping[Path, Description], file: Path, columns: Sequence[Column], beam: int | None
) -> dict[str, Any]:
    """The score of every model on a file; of models that can answer together, also that of all."""
    from regard.tasks.task import task_of

    tasks = {model: task_of(described) for model, described in models.items()}
    scores = {
        str(model): tasks[model]().evaluate(described, [file], columns=columns, beam_size=beam)
        for model, described in models.items()
    }
    if len(models) > 1 and len({*tasks.values()}) == 1:
        (task,) = {*tasks.values()}
        together = task().evaluate_together([*models.values()], [file], columns=columns)
        scores |= {} if together is None else {TOGETHER: together}
    return scores


def _print_scores(scores: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        numbers = {
            name: asdict(score) | (score.measures() if hasattr(score, "measures") else {})
            for name, score in scores.items()
        }
        typer.echo(json.dumps(numbers, ensure_ascii=False))
        return
    for name, score in scores.items():
        typer.echo(f"{name}\n  " + str(score).replace("\n", "\n  "))


def _check_names(models: list[Path], outputs: list[Path]) -> None:
    named = [*models, *outputs]
    if not named:
        raise ConfigError("name a model, as in `regard evaluate RUN FILE`", code="no_model")
    if twice := {str(name) for name in named if named.count(name) > 1}:
        raise ConfigError(f"{', '.join(sorted(twice))}: named twice", code="named_twice")


def _notes(language: str | None, tasks: dict[Path, TaskConfig]) -> list[str]:
    """Notes for the reader of the scores."""
    from regard.scores.translation import tokenizer_of

    found = []
    if language is None:
        found.append("the language of REF is unknown; tokenised as most are (tok:13a); give --target CODE")
    elif tokenizer_of(language) == "char":
        name = language_name(language)
        found.append(f"{name} is tokenised into characters (tok:char); other tokenizers give other BLEU")
    found += [
        f"{model} was trained to write {task.target}, and REF is in {language}"
        for model, task in tasks.items()
        if task.target and language and not task.both_directions
        if task.target.split("-")[0] != language.split("-")[0]
    ]
    return found
