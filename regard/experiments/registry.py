"""The experiments by name, and their recorded results. Modules that need torch are imported on demand."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import Any

from regard.config.checking import did_you_mean
from regard.errors import RequestError
from regard.experiments.experiment import Experiment

NAMES = (
    "scale",
    "positions",
    "heads",
    "depth",
    "values",
    "norms",
    "similarity",
    "recurrence",
    "complexity",
    "worked-example",
    "attention-is-it-explanation",
)


def find_experiment(name: str) -> Experiment:
    """The experiment of a name.

    Raises:
        RequestError: there is none.
    """
    if name not in NAMES:
        advice = did_you_mean(name, NAMES) or f"; there are {', '.join(NAMES)}"
        raise RequestError(f"unknown experiment {name}{advice}", code="unknown_experiment")
    experiment = import_module(f"regard.experiments.claims.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(experiment, Experiment), f"{name}: EXPERIMENT is {experiment!r}"
    return experiment


def recorded_results() -> list[dict[str, Any]]:
    """The results of the last release, which come with the package: documents of `ExperimentRun`."""
    folder = files("regard.experiments").joinpath("results")
    documents = [folder.joinpath(f"{name}.json") for name in NAMES]
    return [json.loads(file.read_text(encoding="utf-8")) for file in documents if file.is_file()]
