"""What a task is: the interface that training, evaluation, serving and the command line share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from regard.bundle.bundle import Description
from regard.config import RunConfig, registries
from regard.config.model import Architecture

if TYPE_CHECKING:
    from regard.tasks.loaded import LoadedModel


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

    @classmethod
    def load(cls, described: Sequence[Description], **options: Any) -> LoadedModel:
        """Load finished models of this task, several as an ensemble; `regard.load` has the options."""
        from regard.tasks.loaded.translator import LoadedTranslator

        return LoadedTranslator(described, **options)


def task_of(described: Description) -> type[Task]:
    """The task of a model folder; of one that does not say, the usual task of its architecture."""
    task: type[Task] = registries.tasks[described.task.name]
    if task.architecture != described.config.architecture:
        task = registries.tasks[USUAL[described.config.architecture]]
    return task


USUAL: dict[Architecture, str] = {
    "encoder-decoder": "translate",
    "decoder": "generate",
    "encoder": "classify",
}
"""The task of a model folder that names no task for its architecture, as imported ones may."""
