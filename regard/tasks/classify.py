"""The task `classify`."""

from __future__ import annotations

from regard.config import registries
from regard.tasks.task import Task


@registries.tasks.register("classify")
class Classify(Task):
    """Labels for texts: one each, or several."""

    name = "classify"
    architecture = "encoder"
    preset = "classifier"
    settings = ("model.architecture=encoder", "model.n_labels=2")  # the data tells how many labels there are
    verb = "classify"
