"""`regard evaluate FILE`: models for other tasks than translation, each scored on a file of its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from regard.bundle import Description, describe_bundle
from regard.bundle.bundle import read_labels
from regard.cli.corpora import columns_of
from regard.config.task import TEMPLATES
from regard.engine.loading import model_folder
from regard.errors import ConfigError

TOGETHER = "the mean of their answers"
"""What the score of several classifiers that are asked together is called."""


def evaluate_tasks(
    file: Path,
    models: Sequence[Path],
    columns: str | None,
    beam: int | None,
    beside: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """Score models on a file, one after another; and several classifiers of the same labels together, too.

    Raises:
        ConfigError: a model translates, or what stands `beside` is for translations.
    """
    each = {model: describe_bundle(model_folder(model)) for model in models}
    for model, described in each.items():
        if described.config.architecture == "encoder-decoder" and described.task.name not in TEMPLATES:
            raise ConfigError(f"{model}: translates, and is scored on two files: regard evaluate SRC REF")
    if given := [name for name, value in beside.items() if value]:
        raise ConfigError(f"{', '.join(given)}: for translations, which are scored on two files, SRC and REF")

    from regard.scores.tasks import measures, score_on, score_together

    named = columns_of(columns)
    scores = {str(model): score_on(model, file, columns=named, beam_size=beam) for model in models}
    if len(models) > 1 and _label_alike(list(each.values())):
        scores[TOGETHER] = score_together(models, file, columns=named)
    if as_json:
        told = {name: asdict(score) | measures(score) for name, score in scores.items()}
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    for name, score in scores.items():
        typer.echo(f"{name}\n  " + str(score).replace("\n", "\n  "))


def _label_alike(described: Sequence[Description]) -> bool:
    """Whether all are classifiers with the same labels."""
    if {each.config.architecture for each in described} != {"encoder"}:
        return False
    labels = {frozenset(read_labels(each.folder, each.config.n_labels)) for each in described}
    return len(labels) == 1 and len({each.task.label_separator is None for each in described}) == 1
