"""The task `generate`."""

from __future__ import annotations

from regard.config import registries
from regard.tasks.task import Task


@registries.tasks.register("generate")
class Generate(Task):
    """Continuation of a text."""

    name = "generate"
    architecture = "decoder"
    preset = "generator"
    settings = ("model.architecture=decoder",)
    verb = "generate"
