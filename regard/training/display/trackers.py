"""Trackers: the numbers of a run sent to TensorBoard, Weights & Biases or MLflow, to compare it with others.

None of them is needed to train, and each is imported only when asked for. A run that is resumed goes again
over the steps since its checkpoint; no tracker shows such a step twice.
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
from regard.errors import ConfigError
from regard.look.figures.curves import is_number

PROJECT = "regard"
"""Where runs are filed by trackers that know projects."""


@contextmanager
def open_tracker(
    name: str, run_folder: Path, config: RunConfig
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Follow a run with a tracker; what is yielded wants to hear every event.

    Args:
        name: tensorboard, wandb or mlflow. Where the last two send to is theirs to know: `wandb login` or
            WANDB_MODE, MLFLOW_TRACKING_URI.
        run_folder: holds what TensorBoard reads, and what the others must remember.
        config: told to the tracker, so that runs can be compared by their settings.

    Raises:
        ConfigError: there is no such tracker, its package is missing, or it refuses to start.
    """
    tracker = _known(name)(run_folder, config)
    try:
        yield tracker.hear
    except BaseException:
        tracker.close(failed=True)
        raise
    tracker.close(failed=False)


def check_trackers(names: Sequence[str]) -> None:
    """Find out whether these can follow a run, before anything is done for it.

    Raises:
        ConfigError: there is no such tracker, or its package is missing.
    """
    for name in names:
        _known(name).imported()


def _known(name: str) -> type[Tracker]:
    if name not in TRACKERS:
        known = f"there are {', '.join(TRACKERS)}"
        raise ConfigError(f"there is no tracker {name!r}; {known}{did_you_mean(name, [*TRACKERS])}")
    return TRACKERS[name]


def numbers_of(event: dict[str, Any]) -> dict[str, float]:
    """The numbers of an event by name; those of averaged weights and of the test keep apart from the rest."""
    prefix = "averaged_" if "averaged" in event else ""
    found = {prefix + name: float(value) for name, value in event.items() if is_number(value)}
    for name in ("step", "averaged"):
        found.pop(prefix + name, None)
    scores = event.get("test")
    scores = scores if isinstance(scores, dict) else {}
    return found | {f"test_{name}": float(score) for name, score in scores.items() if is_number(score)}


class Tracker(ABC):
    """Hears events and passes their numbers on; the first tells where the run is, and starts it."""

    module: str
    """What is imported."""
    package: str
    """What is installed for it."""

    def __init__(self, run_folder: Path, config: RunConfig) -> None:
        self.folder, self.config = run_folder, config
        self.started = self.failed = False
        self.library = self.imported()

    @classmethod
    def imported(cls) -> Any:
        """The library that it stands for."""
        try:
            return import_module(cls.module)
        except ImportError as error:
            raise ConfigError(
                f"{cls.package} cannot be imported ({error}); "
                f"pip install 'regard[track]', or {cls.package} alone"
            ) from error

    def hear(self, event: dict[str, Any]) -> None:
        """Pass the numbers of one event on; what has no step or no number is left to others."""
        step = event.get("step")
        if not isinstance(step, int) or not (numbers := numbers_of(event)):
            return
        if not self.started:
            self.start(step)
            self.started = True
        self.tell(step, numbers)

    def close(self, *, failed: bool) -> None:
        """Have everything arrive."""
        self.failed = failed
        if self.started:
            self.end()

    @abstractmethod
    def start(self, step: int) -> None:
        """Begin, or go on with what an earlier process began."""

    @abstractmethod
    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """Pass numbers on."""

    @abstractmethod
    def end(self) -> None:
        """Finish what was started."""


class Tensorboard(Tracker):
    """Event files in RUN/tensorboard; `tensorboard --logdir RUN` shows them."""

    module, package = "torch.utils.tensorboard", "tensorboard"

    def start(self, step: int) -> None:
        """A new event file, before which everything from this step on no longer counts."""
        self.writer = self.library.SummaryWriter(self.folder / "tensorboard", purge_step=step, flush_secs=10)
        self.writer.add_text("config", "```toml\n" + to_toml(self.config) + "```", step)

    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """One point for each number."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def end(self) -> None:
        """Write what is left; the file does not say how a run ended."""
        self.writer.close()


class _RememberingTracker(Tracker):
    """A tracker that cannot take points back, so it is not told again what it has heard.

    A resumed run gives the same numbers to the bit, so those of the earlier process may stand. The run's
    name with the tracker and the last step of each number are kept in RUN/wandb.json or RUN/mlflow.json.
    """

    def start(self, step: int) -> None:
        """Go on with the run that is remembered; one that starts from its first step is another."""
        self.memory = self.folder / f"{self.package}.json"
        known: dict[str, Any] = {}
        try:
            if step > 1 and self.memory.exists():
                known = json.loads(self.memory.read_text(encoding="utf-8"))
            self.id = self.open(known.get("id"))
        except Exception as error:  # theirs, of whatever kind: no login, no such server, a run that is gone
            raise ConfigError(f"{self.package} did not start: {error}") from error
        self.told: dict[str, int] = known.get("told", {})

    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """Send what is new, and remember it."""
        news = {name: value for name, value in numbers.items() if self.told.get(name, 0) < step}
        if news:
            self.send(step, news)
            self.told |= dict.fromkeys(news, step)
            self._remember()

    def _remember(self) -> None:
        # Renamed into its place, but not synced: it must outlive a killed process, at every step.
        partial = self.memory.with_name(f".{self.memory.name}.partial")
        partial.write_text(json.dumps({"id": self.id, "told": self.told}), encoding="utf-8")
        partial.replace(self.memory)

    @abstractmethod
    def open(self, run_id: str | None) -> str:
        """Go on with a run, or begin one; gives the name to go on with."""

    @abstractmethod
    def send(self, step: int, numbers: dict[str, float]) -> None:
        """Pass on what is new."""


class Wandb(_RememberingTracker):
    """A run of Weights & Biases, in the project `regard` unless WANDB_PROJECT names another."""

    module = package = "wandb"

    def open(self, run_id: str | None) -> str:
        """Their capture of the terminal is off: it would fight with the live panel."""
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
        """One row of their history; they join rows of one step."""
        self.run.log(numbers, step=step)

    def end(self) -> None:
        """Upload the rest."""
        self.run.finish(exit_code=int(self.failed))


class Mlflow(_RememberingTracker):
    """A run of MLflow, wherever MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME say."""

    module = package = "mlflow"

    def open(self, run_id: str | None) -> str:
        """A new run is given the settings; an old one keeps those it began with."""
        run = self.library.start_run(run_id=run_id, run_name=None if run_id else self.folder.name)
        if run_id is None:
            sections = asdict(self.config)
            self.library.log_params(
                {f"{s}.{name}": value for s in sections for name, value in sections[s].items()}
            )
        return str(run.info.run_id)

    def send(self, step: int, numbers: dict[str, float]) -> None:
        """A thread of theirs does the sending: a slow server must not slow the training."""
        self.library.log_metrics(numbers, step=step, synchronous=False)

    def end(self) -> None:
        """Wait until all is sent; the end of a run alone does not promise it."""
        self.library.flush_async_logging()
        self.library.end_run("FAILED" if self.failed else "FINISHED")


TRACKERS: dict[str, type[Tracker]] = {"tensorboard": Tensorboard, "wandb": Wandb, "mlflow": Mlflow}
