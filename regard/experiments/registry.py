"""The experiments there are. Their modules need torch, so each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

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


def find(name: str) -> Experiment:
    """The experiment of a name.

    Raises:
        RequestError: there is none.
    """
    if name not in NAMES:
        advice = did_you_mean(name, NAMES) or f"; there are {', '.join(NAMES)}"
        raise RequestError(f"there is no experiment {name}{advice}")
    found = import_module(f"regard.experiments.claims.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(found, Experiment), f"{name}: EXPERIMENT is {found!r}"
    return found
