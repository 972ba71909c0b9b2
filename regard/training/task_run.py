"""A run of any task, in a folder that is this run's: prepared once, trained, its curves drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from regard.config import RunConfig
from regard.durable import write_atomically
from regard.errors import CorpusError
from regard.look.figures.curves import curves_svg
from regard.training.checkpoints.folder import DATA, has_begun
from regard.training.checkpoints.journal import Journal
from regard.training.distributed.world import World
from regard.training.loop import Listener, Run
from regard.training.preparation import key_of

Watch = Callable[[Run], AbstractContextManager[Sequence[Listener]]]
"""Who hears of a run for as long as it lasts."""
P = TypeVar("P")


class Source(Protocol):
    """What to train on."""

    def key(self) -> str:
        """A hash of all that the prepared data depends on."""


S = TypeVar("S", bound=Source)


class TaskRun:
    """What runs of all tasks have in common.

    The first of several processes prepares the data and tests the model; the others find the data prepared,
    and have nothing to tell.
    """

    run: Run

    def __init__(self, folder: Path, config: RunConfig, world: World) -> None:
        self.folder, self.config, self.world = folder, config, world

    def train(self, watch: Watch) -> str:
        """Train until a limit is reached or somebody asks to stop; says which."""
        with watch(self.run) as listeners:
            self.run.listeners += [*listeners, self._draw]
            return self.run.train()

    def _prepare(
        self, source: Callable[[], S], prepare: Callable[[Path, S], object], prepared: Callable[[Path], P]
    ) -> P:
        """What is trained on; the first process makes it where it is not there yet.

        Raises:
            CorpusError: a run that has begun is given other data.
        """
        data = self.folder / DATA
        if self.world.is_main:
            found = source()
            if has_begun(self.folder) and key_of(data) not in (None, found.key()):
                changed = "the data has changed since the run began; choose another folder with --out"
                raise CorpusError(f"{self.folder}: {changed}")
            prepare(data, found)
        self.world.wait()
        return prepared(data)

    def _draw(self, event: dict[str, Any]) -> None:
        """Draw the curves anew at each validation."""
        if "valid_loss" in event:
            title, unit = self.folder.resolve().name, self.run.data.unit
            drawn = curves_svg(Journal(self.folder / "journal.jsonl"), title, unit)
            write_atomically(self.folder / "curves.svg", drawn)
