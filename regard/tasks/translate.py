"""The task `translate`."""

from __future__ import annotations

from regard.config import registries
from regard.tasks.task import Task


@registries.tasks.register("translate")
class Translate(Task):
    """Translation of one language into another, or both ways."""

    name = "translate"
