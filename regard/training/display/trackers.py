"""Trackers: the numbers of a run, sent to TensorBoard, Weights & Biases or MLflow.

They are optional, and imported only when used. A resumed run repeats the steps since its checkpoint; no
tracker shows such a step twice.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from os import environ
from pathlib import Path
from typing import Any

from regard.config import RunConfig, to_toml
from regard.config.checking import did_you_mean
from regard.durable import write_atomically
from regard.errors import ConfigError
from regard.look.figures.curves import is_number

PROJECT = "regard"
"""The project name, for trackers that have projects."""


@contextmanager
def open_tracker(
    name: str, run_folder: Path, config: RunConfig
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Follow a run with a tracker; yields a listener.

    Args:
        name: tensorboard, wandb or mlflow. The last two have settings of their own for where they send to:
            `wandb login` or WANDB_MODE, MLFLOW_TRACKING_URI.
        run_folder: holds TensorBoard's files, and the state of the others.
        config: sent to the tracker, so that runs can be compared by their settings.

    Raises:
        ConfigError: the tracker is unknown, its package is missing, or it does not start.
    """
    tracker = _known(name)(run_folder, config)
    try:
        yield tracker.hear
    except BaseException:
        tracker.close(failed=True)
        raise
    tracker.close(failed=False)


def check_trackers(names: Sequence[str]) -> None:
    """Check that these can be used, before a run starts.

    Raises:
        ConfigError: a tracker is unknown, or its package is missing.
    """
    for name in names:
        _known(name).imported()


def _known(name: str) -> type[Tracker]:
    if name not in TRACKERS:
        known = f"known are {', '.join(TRACKERS)}{did_you_mean(name, [*TRACKERS])}"
        raise ConfigError(f"there is no tracker {name!r}; {known}", code="unknown_choice")
    return TRACKERS[name]


def numbers_of(event: dict[str, Any]) -> dict[str, float]:
    """The numbers of an event by name; those of averaged weights have a prefix."""
    prefix = "averaged_" if "averaged" in event else ""
    skipped = ("step", "averaged", "share_done")
    return {
        prefix + name: float(value)
        for name, value in event.items()
        if name not in skipped and is_number(value)
    }


class Tracker(ABC):
    """Hears events and sends their numbers; the first event starts it."""

    module: str
    """The module to import."""
    package: str
    """The package to install."""

    def __init__(self, run_folder: Path, config: RunConfig) -> None:
        self.folder, self.config = run_folder, config
        self.started = self.failed = False
        self.library = self.imported()

    @classmethod
    def imported(cls) -> Any:
        """The tracker's library."""
        try:
            return import_module(cls.module)
        except ImportError as error:
            raise ConfigError(
                f"{cls.package} cannot be imported ({error}); "
                f"pip install 'regard[track]', or {cls.package} alone",
                code="missing_package",
            ) from error

    def hear(self, event: dict[str, Any]) -> None:
        """Send the numbers of an event; events without a step or a number are ignored."""
        step = event.get("step")
        if not isinstance(step, int) or not (numbers := numbers_of(event)):
            return
        if not self.started:
            self.start(step)
            self.started = True
        self.tell(step, numbers)

    def close(self, *, failed: bool) -> None:
        """Send what is left."""
        self.failed = failed
        if self.started:
            self.end()

    @abstractmethod
    def start(self, step: int) -> None:
        """Begin, or continue what an earlier process began."""

    @abstractmethod
    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """Send numbers."""

    @abstractmethod
    def end(self) -> None:
        """Finish what was started."""


class Tensorboard(Tracker):
    """Event files in RUN/tensorboard; `tensorboard --logdir RUN` shows them."""

    module, package = "torch.utils.tensorboard", "tensorboard"

    def start(self, step: int) -> None:
        """Begin an event file that replaces earlier ones from this step on."""
        self.writer = self.library.SummaryWriter(self.folder / "tensorboard", purge_step=step, flush_secs=10)
        self.writer.add_text("config", "```toml\n" + to_toml(self.config) + "```", step)

    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """One point for each number."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def end(self) -> None:
        """Write what is left; the file does not say how a run ended."""
        self.writer.close()


class _StatefulTracker(Tracker):
    """A tracker that cannot delete points, so none is sent twice.

    A resumed run gives the same numbers to the bit, so those of the earlier process are kept. The tracker's
    id of the run and the last step of each number are stored in RUN/wandb.json or RUN/mlflow.json.
    """

    def start(self, step: int) -> None:
        """Continue the stored run; a run that starts at its first step is a new one."""
        self.memory = self.folder / f"{self.package}.json"
        known: dict[str, Any] = {}
        try:
            if step > 1 and self.memory.exists():
                known = json.loads(self.memory.read_text(encoding="utf-8"))
            self.id = self.open(known.get("id"))
        except Exception as error:  # any error of the library: no login, no such server, a deleted run
            raise ConfigError(f"{self.package} did not start: {error}", code="tracker_failed") from error
        self.told: dict[str, int] = known.get("told", {})

    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """Send what is new, and store that it was sent."""
        news = {name: value for name, value in numbers.items() if self.told.get(name, 0) < step}
        if news:
            self.send(step, news)
            self.told |= dict.fromkeys(news, step)
            self._remember()

    def _remember(self) -> None:
        # Not synced: it must survive a killed process, and is written at every step.
        write_atomically(self.memory, json.dumps({"id": self.id, "told": self.told}), sync=False)

    @abstractmethod
    def open(self, run_id: str | None) -> str:
        """Continue a run, or begin one; returns its id."""

    @abstractmethod
    def send(self, step: int, numbers: dict[str, float]) -> None:
        """Send new numbers."""


class Wandb(_StatefulTracker):
    """A run of Weights & Biases, in the project `regard` unless WANDB_PROJECT names another."""

    module = package = "wandb"

    def open(self, run_id: str | None) -> str:
        """Begin or continue; the capture of the terminal is off, since it conflicts with the live panel."""
        self.run = self.library.init(
            project=None if "WANDB_PROJECT" in environ else PROJECT,
            dir=self.folder,
            id=run_id,
            resume="allow",
            name=self.folder.name,
            config=asdict(self.config),
            settings=self.library.Settings(console="off"),
        )
        return str(self.run.id)

    def send(self, step: int, numbers: dict[str, float]) -> None:
        """One row of the history; wandb joins rows of one step."""
        self.run.log(numbers, step=step)

    def end(self) -> None:
        """Upload the rest."""
        self.run.finish(exit_code=int(self.failed))


class Mlflow(_StatefulTracker):
    """A run of MLflow, configured by MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

    module = package = "mlflow"

    def open(self, run_id: str | None) -> str:
        """A new run gets the settings; an existing one keeps those that it has."""
        run = self.library.start_run(run_id=run_id, run_name=None if run_id else self.folder.name)
        if run_id is None:
            sections = asdict(self.config)
            self.library.log_params(
                {f"{s}.{name}": value for s in sections for name, value in sections[s].items()}
            )
        return str(run.info.run_id)

    def send(self, step: int, numbers: dict[str, float]) -> None:
        """A thread of mlflow sends: a slow server must not slow the training."""
        self.library.log_metrics(numbers, step=step, synchronous=False)

    def end(self) -> None:
        """Wait until everything is sent, which ending the run does not guarantee."""
        self.library.flush_async_logging()
        self.library.end_run("FAILED" if self.failed else "FINISHED")


TRACKERS: dict[str, type[Tracker]] = {"tensorboard": Tensorboard, "wandb": Wandb, "mlflow": Mlflow}
