"""The models of a server, each with its scheduler, and the choice of a model for a request."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from regard.engine.engines.protocol import Engines
from regard.engine.loading import BEST, EngineName, model_folder
from regard.engine.options import ClassifyOptions, GenerateOptions
from regard.engine.results import Aligner, Classification, Continuation
from regard.errors import ConfigError
from regard.loaded import load
from regard.serve.http.errors import ApiError, bad_value, not_found
from regard.serve.http.metrics import Metrics
from regard.serve.work.apart import AskingAligner, AskingEngines
from regard.serve.work.items import (
    GREEDY,
    ContinueItem,
    LabelItem,
    LogitsItem,
    ScheduledAligner,
    ScheduledEngines,
    streamed,
)
from regard.serve.work.jobs import RequestJob
from regard.serve.work.process import AskingJob
from regard.serve.work.scheduler import Scheduler
from regard.tasks.loaded import LoadedModel
from regard.tasks.loaded.classifier import LoadedClassifier
from regard.tasks.loaded.generator import LoadedGenerator
from regard.tasks.loaded.translator import LoadedTranslator
from regard.tasks.task import task_of
from regard.text.languages import known_code

if TYPE_CHECKING:
    from regard.engine.generator import Generator

JOURNAL = "journal.jsonl"
CHECKPOINT = re.compile(r"step-(\d{8})")
"""The name of a checkpoint's folder, in `checkpoints` of its run."""
L = TypeVar("L", bound=LoadedModel)
S = TypeVar("S", bound="ServedModel[Any]")


class ServedModel(Generic[L]):
    """A model with its scheduler."""

    verb: ClassVar[str]
    """What it does: translate, generate or classify."""

    def __init__(self, name: str, path: Path, model: L, metrics: Metrics | None = None) -> None:
        """Describe it, and `start` it if there are metrics."""
        self.id, self.path, self.folder, self.model = name, path, model_folder(path), model
        self.run = next((each for each in (path, path.parent) if (each / JOURNAL).is_file()), None)
        """The folder of the run that it comes from, if any."""
        self.task = task_of(model.description).name
        self.template = model.task.templates[0]
        """What it reads, with named fields in braces; empty if it reads plain texts."""
        languages = model.task.directions if self.verb == "translate" else ()
        self.directions = [(source, target) for source, target in languages if source and target]
        """Source and target languages; empty if the model folder names none."""
        self.of_checkpoint: TemporaryDirectory[str] | None = None
        """The folder written for a checkpoint; deleted with this."""
        if metrics is not None:
            self.start(metrics)

    def start(self, metrics: Metrics) -> None:
        """Start its scheduler; the process for large work (`work/apart.py`) has none."""
        self.scheduler = self._scheduler(metrics)
        depth = self.scheduler.__len__
        metrics.watch("regard_queue_depth", "Sentences that wait for a lane.", depth, self.id)

    def open(self) -> None:
        """Open what runs it, with threads like the one that calls this."""

    @property
    def summary(self) -> str:
        """One line about it, for the terminal."""
        return self.task

    def preload(self) -> None:
        """Read the weights that looking inside needs."""
        _ = self.model.bundle

    def _scheduler(self, metrics: Metrics) -> Scheduler:
        # A lane has no state.
        return Scheduler(on_batch=metrics.batch_observer(self.id), open_express=lambda: True)


class ServedTranslator(ServedModel[LoadedTranslator]):
    """A model that translates, summarises, answers or converses."""

    verb = "translate"

    def __init__(
        self, name: str, path: Path, model: LoadedTranslator, metrics: Metrics | None = None
    ) -> None:
        super().__init__(name, path, model, metrics)
        self._aligner: Aligner | None = None
        self._loading = threading.Lock()

    @property
    def summary(self) -> str:
        """Its languages; or its task."""
        if self.task != "translate":
            return self.task
        return ", ".join(f"{a} → {b}" for a, b in self.directions) or "languages unknown"

    def open(self) -> None:
        """Open its engines, with threads like the one that calls this."""
        _ = self.model.engines.first

    def for_job(self, job: RequestJob, *, aligning: bool = False) -> LoadedTranslator:
        """The model for one job: its engines wait for their turn, or ask the server, which has them."""
        if isinstance(job, AskingJob):
            ask = partial(_ask, job, self.id)
            return self.model.with_engines(AskingEngines(ask), AskingAligner(ask) if aligning else None)
        return self.model.with_engines(self.engines_for(job), self.aligner_for(job) if aligning else None)

    def engines_for(self, job: RequestJob) -> Engines:
        """The engines for one job: every call waits for its turn."""
        return ScheduledEngines(self.scheduler, job, self.model.engines)

    def aligner_for(self, job: RequestJob) -> Aligner:
        """What aligns words for one job, when its turn comes."""
        capacity = self.model.engines.first.batch_capacity(GREEDY)
        return ScheduledAligner(self.scheduler, job, self._loaded_aligner(), capacity)

    def translates(self, source: str | None, target: str | None) -> bool:
        """Whether it translates between two languages, of which either may be None for any.

        A model for summaries, answers or replies has no languages.
        """
        if self.task != "translate" and (source or target):
            return False
        return not self.directions or self.direction(source, target) != (None, None)

    def direction(self, source: str | None, target: str | None) -> tuple[str | None, str | None]:
        """The first of its directions between two languages, in its own codes; None if there is none."""
        fitting = (
            pair
            for pair in self.directions
            if same_language(source, pair[0]) and same_language(target, pair[1])
        )
        return next(fitting, (None, None))

    def preload(self) -> None:
        """Read the weights that looking inside and aligning need."""
        self._loaded_aligner()

    def _scheduler(self, metrics: Metrics) -> Scheduler:
        engines = self.model.engines
        observer = metrics.batch_observer(self.id)
        return Scheduler(engines.first.lanes, engines.lane, observer, engines.express)

    def _loaded_aligner(self) -> Aligner:
        with self._loading:
            self._aligner = self._aligner or self.model.aligner()
        return self._aligner


class ServedGenerator(ServedModel[LoadedGenerator]):
    """A model that continues texts."""

    verb = "generate"

    def generate(
        self, job: RequestJob, prompts: Sequence[str], options: GenerateOptions
    ) -> list[Continuation]:
        """The continuation of each text, when its turn comes."""
        generator = self.model.generator
        contended = self.scheduler.is_contended
        items = [ContinueItem(generator, text, options, job, contended) for text in prompts]
        return self.scheduler.run(job, items)

    def stream(
        self, job: RequestJob, prompts: Sequence[str], options: GenerateOptions
    ) -> Iterator[tuple[int, str | Continuation]]:
        """Pieces of each continuation with the index of its text, and then the whole; one after another."""
        generator = self.model.generator
        for i, prompt in enumerate(prompts):
            length = len(self.model.subwords.encode_one(prompt)) + 1
            start = partial(_started, generator, prompt, options, job)
            for piece in streamed(self.scheduler, job, start, length, pauses=True):
                yield i, piece


class ServedClassifier(ServedModel[LoadedClassifier]):
    """A model that labels texts."""

    verb = "classify"

    def classify(
        self, job: RequestJob, texts: Sequence[str], options: ClassifyOptions
    ) -> list[Classification]:
        """The label of each text, when its turn comes."""
        return self._run(LabelItem, job, texts, options)

    def raw_scores(
        self, job: RequestJob, texts: Sequence[str], options: ClassifyOptions
    ) -> list[dict[str, float]]:
        """The logits of the labels of each text, when its turn comes."""
        return self._run(LogitsItem, job, texts, options)

    def _run(
        self, item: type[LabelItem], job: RequestJob, texts: Sequence[str], options: ClassifyOptions
    ) -> list[Any]:
        classifier = self.model.classifier
        return self.scheduler.run(job, [item(classifier, text, options) for text in texts])


def _ask(job: AskingJob, model: str, what: str, *arguments: Any) -> Any:
    return job.ask(what, model, *arguments)


def _started(
    generator: Generator, prompt: str, options: GenerateOptions, job: RequestJob, _lane: None
) -> Iterator[str | Continuation]:
    stream = generator.stream(prompt, options, lambda: job.cancelled is None)
    yield from stream
    yield stream.result


KINDS: dict[str, Any] = {kind.verb: kind for kind in (ServedTranslator, ServedGenerator, ServedClassifier)}
"""How a loaded model is served, by its verb."""


class ModelRegistry:
    """All models of a server, by id."""

    def __init__(self, models: Sequence[ServedModel[Any]]) -> None:
        self._models = {each.id: each for each in models}

    def __iter__(self) -> Iterator[ServedModel[Any]]:
        return iter(self._models.values())

    def open(self) -> None:
        """Open what runs the models, with threads like the one that calls this."""
        for each in self:
            each.open()

    def start(self, metrics: Metrics) -> None:
        """Start the schedulers."""
        for each in self:
            each.start(metrics)

    def named(self, name: str) -> ServedModel[Any]:
        """The model with this id.

        Raises:
            ApiError: there is none.
        """
        if name not in self._models:
            raise not_found(f"There is no model {name!r}; there are {', '.join(self._models)}.", "model")
        return self._models[name]

    def any(self, name: str | None = None) -> ServedModel[Any]:
        """The model with this id, or the first one, of any task.

        Raises:
            ApiError: there is none with this id.
        """
        return self.named(name) if name else next(iter(self))

    def of_kind(self, kind: type[S], name: str | None = None) -> S:
        """The model with this id, or the first one that is of a kind.

        Raises:
            ApiError: there is none, or it is of another kind.
        """
        models = [self.named(name)] if name else list(self)
        for each in models:
            if isinstance(each, kind):
                return each
        raise wrong_task(models[0], kind.verb)

    def translator(
        self, name: str | None = None, source: str | None = None, target: str | None = None
    ) -> ServedTranslator:
        """The model with this id, or the first one, that translates between two languages.

        Raises:
            ApiError: there is none.
        """
        models = [self.of_kind(ServedTranslator, name)] if name else self.translators
        for each in models:
            if each.translates(source, target):
                return each
        languages = f"from {source or 'any language'} into {target or 'any'}"
        who = f"Model {name!r} does not translate" if name else "No model here translates"
        pairs = dict.fromkeys(f"{a} → {b}" for each in models for a, b in each.directions)
        known = f"; there is {', '.join(pairs)}" if pairs else ""
        raise bad_value(f"{who} {languages}{known}.", "target" if target else "source")

    @property
    def translators(self) -> list[ServedTranslator]:
        """The models that translate, summarise, answer or converse."""
        return [each for each in self if isinstance(each, ServedTranslator)]

    @property
    def languages(self) -> list[str]:
        """Every source language, in the order of the models."""
        return list(dict.fromkeys(source for each in self for source, _ in each.directions))

    def targets(self, source: str) -> list[str]:
        """The languages that a language can be translated into."""
        pairs = (pair for each in self for pair in each.directions)
        return list(dict.fromkeys(target for one, target in pairs if one == source))

    def close(self, seconds: float | None = None) -> bool:
        """Finish queued work and stop the schedulers; returns whether they stopped within some seconds."""
        closed = [each.scheduler.close(seconds) for each in self]
        for each in self:
            if each.of_checkpoint is not None:
                each.of_checkpoint.cleanup()
        return all(closed)


def load_models(
    paths: Sequence[Path],
    metrics: Metrics | None = None,
    *,
    engine: EngineName = "auto",
    device: str = "auto",
    threads: int | None = None,
) -> ModelRegistry:
    """Load models and, with metrics, start their schedulers.

    A checkpoint of a run is served as a model of its own.

    Raises:
        ConfigError: two models have one id, or one cannot be served.
        BundleError: a model folder is missing or damaged.
    """
    models: dict[str, ServedModel[Any]] = {}
    for path in paths:
        name = model_id(path)
        if name in models:
            raise ConfigError(
                f"two models would have the id {name!r}: rename the folder {path}", code="duplicate_model"
            )
        kept = _model_of_checkpoint(path) if CHECKPOINT.fullmatch(path.name) else None
        place = path if kept is None else Path(kept.name) / BEST
        models[name] = served_model(name, place, metrics, engine=engine, device=device, threads=threads)
        models[name].of_checkpoint = kept
    return ModelRegistry(list(models.values()))


def models_apart(places: Sequence[tuple[str, Path]]) -> ModelRegistry:
    """The models of a server, by name and folder, as its process for large work has them."""
    return ModelRegistry([served_model(name, path) for name, path in places])


def served_model(name: str, path: Path, metrics: Metrics | None = None, **options: Any) -> ServedModel[Any]:
    """A model, served as its task needs it."""
    model = load(path, **options)
    found: ServedModel[Any] = KINDS[model.verb](name, path, model, metrics)
    return found


def _model_of_checkpoint(path: Path) -> TemporaryDirectory[str]:
    """A folder with the model of a checkpoint, which holds weights alone."""
    from regard.training.checkpoints.averaging import model_of_checkpoint  # imports torch

    kept = TemporaryDirectory(prefix="regard-checkpoint-")
    model_of_checkpoint(path, Path(kept.name) / BEST)
    return kept


def model_id(path: Path) -> str:
    """The id of a model: the name of its folder, or of its run; for a checkpoint, with its step."""
    path = path.resolve()
    if found := CHECKPOINT.fullmatch(path.name):
        return f"{model_id(path.parent.parent)}-step-{int(found[1])}"
    named = path.parent if path.name in (BEST, "last") else path
    return re.sub(r"[^A-Za-z0-9._-]+", "-", named.name).strip("-") or "model"


def wrong_task(model: ServedModel[Any], verb: str) -> ApiError:
    """A request for something that the model does not do."""
    message = f"Model {model.id!r} is for the task {model.task!r} and cannot {verb}."
    return ApiError(409, message, code="wrong_task", param="model")


def same_language(requested: str | None, known: str) -> bool:
    """Whether a requested language is this one; None means any, and so does a code without a region."""
    if requested is None:
        return True
    requested, known = known_code(requested) or requested, known_code(known) or known
    return requested == known or requested.split("-")[0] == known or requested == known.split("-")[0]
