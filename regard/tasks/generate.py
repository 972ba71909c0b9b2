"""The task `generate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.bundle.bundle import Description
from regard.config import registries
from regard.tasks.loaded.generator import LoadedGenerator
from regard.tasks.task import Task


@registries.tasks.register("generate")
class Generate(Task):
    """Continuation of a text."""

    name = "generate"
    architecture = "decoder"
    preset = "generator"
    settings = ("model.architecture=decoder",)
    verb = "generate"

    @classmethod
    def load(
        cls, described: Sequence[Description], *, device: str = "auto", **_engine: Any
    ) -> LoadedGenerator:
        """Load finished models of this task; torch runs them, so options of the engine do not apply."""
        return LoadedGenerator(described, device=device)
