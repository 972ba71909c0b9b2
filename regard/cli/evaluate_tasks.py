"""`regard evaluate FILE`: models for other tasks than translation, each scored on a file of its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from regard.bundle import describe_bundle
from regard.cli.corpora import columns_of
from regard.config.task import TEMPLATES
from regard.engine.loading import model_folder
from regard.errors import ConfigError


def evaluate_tasks(
    file: Path,
    models: Sequence[Path],
    columns: str | None,
    beam: int | None,
    beside: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """Score models on a file, one after another.

    Raises:
        ConfigError: a model translates, or what stands `beside` is for translations.
    """
    for model in models:
        described = describe_bundle(model_folder(model))
        if described.config.architecture == "encoder-decoder" and described.task.name not in TEMPLATES:
            raise ConfigError(f"{model}: translates, and is scored on two files: regard evaluate SRC REF")
    if given := [name for name, value in beside.items() if value]:
        raise ConfigError(f"{', '.join(given)}: for translations, which are scored on two files, SRC and REF")

    from regard.evaluate.tasks import measures, score_on

    scores = {
        str(model): score_on(model, file, columns=columns_of(columns), beam_size=beam) for model in models
    }
    if as_json:
        told = {name: asdict(score) | measures(score) for name, score in scores.items()}
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    for name, score in scores.items():
        typer.echo(f"{name}\n  " + str(score).replace("\n", "\n  "))
