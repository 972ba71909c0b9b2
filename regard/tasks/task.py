"""What a task is: the interface that training, evaluation, serving and the command line share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from regard.config import RunConfig
from regard.config.model import Architecture


class Task:
    """What a model is trained for.

    A subclass is registered under a name, which the configuration and the model folder store:

        @registries.tasks.register("my-task")
        class MyTask(Task): ...
    """

    name: ClassVar[str]
    """The name in the registry, in `task.name` and for `regard train --task`."""
    architecture: ClassVar[Architecture] = "encoder-decoder"
    """What kind of model the task needs."""
    preset: ClassVar[str] = "small"
    """The preset of a run that names none."""
    settings: ClassVar[Sequence[str]] = ()
    """Settings that differ from the preset, like `data.max_ratio=none`; a user's settings come after them."""
    verb: ClassVar[str] = "translate"
    """The command that runs a finished model: translate, generate or classify."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
