"""The models of a server, each with its scheduler, and which of them a request means."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.bundle.bundle import Description
from regard.config import TaskConfig
from regard.engine.engines.protocol import Engines
from regard.engine.loading import BEST, EngineName, model_folder
from regard.engine.results import Aligner
from regard.errors import ConfigError
from regard.loaded import load
from regard.serve.http.errors import Refusal, bad_value, not_found
from regard.serve.http.metrics import Metrics
from regard.serve.work.job import Job
from regard.serve.work.lone_engine import LoneEngine
from regard.serve.work.scheduler import Scheduler
from regard.serve.work.turns import AlignsInTurn, Scheduled
from regard.tasks.loaded import LoadedModel
from regard.text.languages import known_code

JOURNAL = "journal.jsonl"
TRANSLATE, GENERATE, CLASSIFY = "translate", "generate", "classify"
TASKS = {"encoder-decoder": TRANSLATE, "decoder": GENERATE, "encoder": CLASSIFY}
"""What a model does, by its stacks."""


class Served:
    """A model that is being served."""

    def __init__(self, name: str, path: Path, model: LoadedModel, scheduler: Scheduler) -> None:
        self.id = name
        self.folder = model_folder(path)
        self.run = next((each for each in (path, path.parent) if (each / JOURNAL).is_file()), None)
        """The folder of the run that it comes from, where there is one."""
        self.description: Description = model.description
        self.task = TASKS[self.description.config.architecture]
        """What it does."""
        self.does = self.description.task.name if self.task == TRANSLATE else self.task
        """The same, told apart by what was trained on: summaries, answers, conversations."""
        self.template = self.description.task.templates[0]
        """What it reads, with named fields in braces; empty where that is a text."""
        self.model, self.scheduler = model, scheduler
        self.directions = directions(self.description.task)
        self._aligner: Aligner | None = None
        self._opening = threading.Lock()

    def for_job(self, job: Job, *, aligning: bool = False) -> Any:
        """The model, as one job may use it: in turn with all others."""
        aligner = AlignsInTurn(self.scheduler, job, self._opened()) if aligning else None
        return self.model.with_engines(  # type: ignore[attr-defined]
            Scheduled(self.scheduler, job), aligner
        )

    def open_inside(self) -> None:
        """Read the weights that looking takes, and aligning, generating or labelling."""
        match self.task:
            case "translate":
                self._opened()
            case "generate":
                _ = self.model.generator
            case "classify":
                _ = self.model.classifier

    def _opened(self) -> Aligner:
        """Who aligns words; the weights that takes are read when first asked for, once."""
        with self._opening:
            self._aligner = self._aligner or self.model.aligner()
        return self._aligner

    def translates(self, source: str | None, target: str | None) -> bool:
        """Whether it goes from one language into the other; where nobody says which, it does.

        What writes summaries, answers or replies goes from none into any.
        """
        if self.does != TRANSLATE and (source or target):
            return False
        fits = not self.directions or self.direction(source, target) != (None, None)
        return self.task == TRANSLATE and fits

    def direction(self, source: str | None, target: str | None) -> tuple[str | None, str | None]:
        """The first of its directions between these languages, in its own codes; None where none is."""
        fitting = (pair for pair in self.directions if agree(source, pair[0]) and agree(target, pair[1]))
        return next(fitting, (None, None))


class Catalogue:
    """All models of a server."""

    def __init__(self, models: Sequence[Served]) -> None:
        self._models = {each.id: each for each in models}

    def __iter__(self) -> Iterator[Served]:
        return iter(self._models.values())

    def named(self, name: str) -> Served:
        """The model of this name.

        Raises:
            Refusal: there is none.
        """
        if name not in self._models:
            raise not_found(f"There is no model {name!r}; there are {', '.join(self._models)}.", "model")
        return self._models[name]

    def choose(self, name: str | None = None, source: str | None = None, target: str | None = None) -> Served:
        """The model that is named, or the first that goes from one language into the other.

        Raises:
            Refusal: there is none.
        """
        models = [self.named(name)] if name else list(self)
        if name and models[0].task != TRANSLATE:
            raise wrong_task(models[0], TRANSLATE)
        for each in models:
            if each.translates(source, target):
                return each
        asked = f"from {source or 'any language'} into {target or 'any'}"
        who = f"Model {name!r} does not translate" if name else "No model here translates"
        there = f"; there is {ways}" if (ways := self._ways(models)) else ""
        raise bad_value(f"{who} {asked}{there}.", "target" if target else "source")

    def for_task(self, task: str, name: str | None = None) -> Served:
        """The model that is named, or the first that does this.

        Raises:
            Refusal: there is none, or it does something else.
        """
        models = [self.named(name)] if name else list(self)
        for each in models:
            if each.task == task:
                return each
        raise wrong_task(models[0], task)

    def any(self, name: str | None = None) -> Served:
        """The model that is named, or the first, whatever it does.

        Raises:
            Refusal: there is none of that name.
        """
        return self.named(name) if name else next(iter(self))

    @property
    def languages(self) -> list[str]:
        """Every language that a model reads, in the order of the models."""
        return list(dict.fromkeys(source for each in self for source, _ in each.directions))

    def targets(self, source: str) -> list[str]:
        """What a language can be translated into."""
        pairs = (pair for each in self for pair in each.directions)
        return list(dict.fromkeys(target for one, target in pairs if one == source))

    def close(self) -> None:
        """Finish what waits and stop."""
        for each in self:
            each.scheduler.close()

    @staticmethod
    def _ways(models: Sequence[Served]) -> str:
        ways = [f"{source} → {target}" for each in models for source, target in each.directions]
        return ", ".join(dict.fromkeys(ways))


def directions(task: TaskConfig) -> list[tuple[str, str]]:
    """From which languages into which a model translates; nothing where its folder does not say."""
    return [(source, target) for source, target in task.directions if source and target]


def serve_models(
    paths: Sequence[Path],
    metrics: Metrics,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
) -> Catalogue:
    """Load models and start their schedulers.

    Raises:
        ConfigError: two have one name, or one cannot be served.
        BundleError: a model folder is missing or damaged.
    """
    models: dict[str, Served] = {}
    for path in paths:
        name = model_id(path)
        if name in models:
            raise ConfigError(f"two models would be called {name!r}: rename the folder {path}")
        model = load(path, engine=engine, device=device, threads=threads)
        lone = model.description.config.architecture != "encoder-decoder"
        scheduler = Scheduler(Engines([LoneEngine]) if lone else model.engines, metrics.ran(name))
        metrics.watch("regard_queue_depth", "Sentences that wait for a lane.", scheduler.__len__, name)
        models[name] = Served(name, path, model, scheduler)
    return Catalogue(list(models.values()))


def model_id(path: Path) -> str:
    """What a model is called: its folder's name, or its run's."""
    path = path.resolve()
    named = path.parent if path.name in (BEST, "last") else path
    return re.sub(r"[^A-Za-z0-9._-]+", "-", named.name).strip("-") or "model"


def wrong_task(model: Served, wanted: str) -> Refusal:
    """What a model is asked that it is not for."""
    message = f"Model {model.id!r} is for the task {model.does!r}, and cannot {wanted}."
    return Refusal(409, "wrong_task", message, param="model")


def agree(asked: str | None, has: str) -> bool:
    """Whether a language that is asked for is the one that there is; a code of no region means any."""
    if asked is None:
        return True
    asked, has = known_code(asked) or asked, known_code(has) or has
    return asked == has or asked.split("-")[0] == has or asked == has.split("-")[0]
