"""The task `classify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.bundle.bundle import Description
from regard.config import registries
from regard.tasks.loaded.classifier import LoadedClassifier
from regard.tasks.task import Task


@registries.tasks.register("classify")
class Classify(Task):
    """Labels for texts: one each, or several."""

    name = "classify"
    architecture = "encoder"
    preset = "classifier"
    settings = ("model.architecture=encoder", "model.n_labels=2")  # the data tells how many labels there are
    verb = "classify"

    @classmethod
    def load(
        cls, described: Sequence[Description], *, device: str = "auto", **_engine: Any
    ) -> LoadedClassifier:
        """Load finished models of this task; torch runs them, so options of the engine do not apply."""
        return LoadedClassifier(described, device=device)
