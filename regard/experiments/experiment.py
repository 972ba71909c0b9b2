"""An experiment: what it claims, and how to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.experiments.findings import Both, Findings, as_document

Size = Literal["short", "normal", "long"]
"""Seconds, to see that it runs; minutes, to see what it shows; or as long as it takes to be sure."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One claim that can be run."""

    name: str
    claim: Both
    """What texts assert."""
    run: Callable[[Size, Sequence[int]], Findings]
    """Of a size, once for each seed where something is trained or drawn."""
    on_model: Callable[[Path], Experiment] | None = None
    """The same on a model folder, of an experiment that looks at a model which others trained."""
    seeded: bool = True
    """Whether something is trained or drawn; if not, there are no seeds."""


@dataclass(frozen=True, slots=True)
class Run:
    """An experiment that was run, and what it found."""

    experiment: Experiment
    size: Size
    seeds: tuple[int, ...]
    findings: Findings

    def document(self) -> dict[str, Any]:
        """The run as JSON has it."""
        return {
            "name": self.experiment.name,
            "claim": as_document(self.experiment.claim),
            "size": self.size,
            "seeds": list(self.seeds),
            **as_document(self.findings),
        }


def run(experiment: Experiment, size: Size, n_seeds: int) -> Run:
    """Run an experiment with the seeds 1, 2, 3, …, where it has any."""
    seeds = tuple(range(1, n_seeds + 1)) if experiment.seeded else ()
    return Run(experiment, size, seeds, experiment.run(size, seeds))
