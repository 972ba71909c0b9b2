"""What a task is: the interface that training, evaluation, serving and the command line share.

A task is one object: it reads rows from files, turns them into examples in token stores, says what is
learned from a batch of them (`Lesson`), what is shown at each validation, and how a finished model is scored
and used.
"""

from __future__ import annotations

import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from regard.config import DataConfig, ModelConfig, RunConfig, TrainingConfig, registries
from regard.config.model import Architecture
from regard.config.task import COMMANDS
from regard.errors import ConfigError
from regard.text.files.tables import Column

if TYPE_CHECKING:  # asking for a task's name or preset must not wait for torch
    import numpy as np
    import torch
    from torch import nn

    from regard.bundle import Bundle, Description
    from regard.bundle.weights import Model
    from regard.data.batches import Budget
    from regard.data.batches.examples import Batch
    from regard.data.store import Store
    from regard.look.figures.curves import Unit
    from regard.tasks.loaded import LoadedModel
    from regard.text.vocabularies.vocabulary import Vocabulary

T = TypeVar("T")
Event = dict[str, Any]
"""Something that happened in a run: a step, a validation, a message. The keys say what it is."""
Listener = Callable[[Event], None]
"""Hears every event of a run."""
Validator = Callable[[Any], dict[str, Any]]
"""Takes the model at a validation; returns more scores, and a `sample` with source, output and reference."""


SET_NAMES = {"train": "training", "valid": "validation", "test": "the test"}
"""The sets of data, for messages."""
PROGRESS_EVERY = 1000
"""Rows between two events about the progress of an activity."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Sends messages and other events to listeners."""

    listeners: Sequence[Listener] = ()

    def __call__(self, message: str) -> None:
        """Send a message for the user."""
        self.send({"message": message})

    def send(self, event: Event) -> None:
        """Send an event."""
        for listener in self.listeners:
            listener(event)

    def progress(self, rows: Iterable[T], activity: str, total: int) -> Iterator[T]:
        """The same rows, with an event about every thousandth: `activity`, `done` and `total`."""
        for done, row in enumerate(rows):
            if done % PROGRESS_EVERY == 0:
                self.send({"activity": activity, "done": done, "total": total})
            yield row
        self.send({"activity": activity, "done": total, "total": total})


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFiles:
    """The files that a run is given. Which combinations make sense is for the task to check."""

    train: tuple[Path, ...] = ()
    valid: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    pretrain: tuple[Path, ...] = ()
    """Texts without labels, from which a classifier learns first."""
    columns: tuple[Column, ...] = ()
    """Which columns of tables, by name or by number."""
    languages: tuple[str | None, str | None] = (None, None)
    """Codes of the languages of inputs and outputs."""
    builtin: str | None = None
    """A built-in corpus instead of files."""
    folder: Path | None = None
    """The data set that the training files are from, if a folder was named."""
    found: frozenset[str] = frozenset()
    """The sets that were not named, but found in that folder."""

    @property
    def sets(self) -> dict[str, tuple[Path, ...]]:
        """The files of every set that is given."""
        named = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: files for name, files in named.items() if files}


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training run, as its task sees it."""

    folder: Path
    config: RunConfig
    files: DataFiles = field(default_factory=DataFiles)
    vocab_size: int | None = None
    """Size of the vocabulary; None: chosen from the data."""
    start: Bundle | None = None
    """The model that the run starts from."""
    began: bool = False
    """Whether the run has a checkpoint; from then on its data must not change."""
    device: torch.device | str = "cpu"
    report: Reporter = field(default_factory=Reporter)

    def source_settings(self) -> dict[str, Any]:
        """The fields that every `Source` has."""
        return {
            "vocab_size": self.vocab_size,
            "subwords": None if self.start is None else self.start.subwords,
            "max_tokens": self.config.model.max_length,
            "seed": self.config.training.seed,
            "data": self.config.data,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Source(ABC):
    """What data is prepared from: files, and the settings of the preparation."""

    CONTINUES: ClassVar[bool] = False
    """Whether a model is to continue the texts, which wants fewer subwords."""
    vocab_size: int | None = None
    """Size of the vocabulary; None: chosen from the data."""
    subwords: bytes | None = None
    """An existing vocabulary; None: one is learned."""
    max_tokens: int
    """Longest sequence in tokens."""
    seed: int = 1
    data: DataConfig = field(default_factory=DataConfig)

    @abstractmethod
    def key(self) -> str:
        """A hash of everything that the prepared data depends on."""

    def data_settings(self) -> dict[str, Any]:
        """The settings of the data, for the key; a key from before a setting existed stays valid."""
        settings = asdict(self.data)
        if not self.data.skip_bad:
            del settings["skip_bad"]
        return settings


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data that is ready to train on, and to test with."""

    lesson: Lesson
    subwords: Vocabulary
    test: Any
    """The test set, as the task wants it."""
    pretraining: Lesson | None = None
    """What is learned first, in a run of its own."""


@dataclass(frozen=True, slots=True)
class LossSums:
    """Sums over the targets (tokens, labels) of a step or of a validation set."""

    smoothed: float
    nll: float
    correct: float
    n_targets: int

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood of a target."""
        return self.nll / self.n_targets

    @property
    def accuracy(self) -> float:
        """Share of targets that were more likely than every alternative."""
        return self.correct / self.n_targets


@dataclass(frozen=True, eq=False)
class Lesson(ABC):
    """What is learned: two token stores, and how their examples become batches and a loss."""

    compiles: ClassVar[bool] = False
    """Whether batches can be filled to one size, which a compiled step needs."""
    unit: ClassVar[Unit] = "token"
    """What the loss is a mean over. Of tokens, it is also shown as perplexity; of others, with accuracy."""
    has_probes: ClassVar[bool] = True
    """Whether the attention of held-out examples is stored at each validation."""

    train: Store
    valid: Store
    """The best model is chosen by it."""
    subwords: bytes | None = field(default=None, kw_only=True)
    """Goes into the model folder."""
    labels: Sequence[str] = field(default=(), kw_only=True)
    """The labels of a classifier; go into the model folder."""

    def shaped(self, model: ModelConfig) -> ModelConfig:
        """The model with the sizes that follow from the data: there may be fewer subwords than configured."""
        return replace(model, vocab_size=self.train.facts.vocab_size)

    @abstractmethod
    def budget(self, tokens: int, *, fixed: bool = False) -> Budget:
        """The size of batches with at most `tokens` tokens, for each side."""

    @abstractmethod
    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Examples as a batch for the objective."""

    @abstractmethod
    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """The number of targets that the loss of these examples is a mean over."""

    def n_tokens(self, store: Store, indices: np.ndarray) -> int:
        """The number of tokens by which speed is measured; of pairs, the output tokens."""
        return self.n_targets(store, indices)

    @abstractmethod
    def objective(self, model: Model, training: TrainingConfig, *, compiled: bool) -> nn.Module:
        """A module that takes a batch and returns the loss, and `[smoothed, nll, correct]` without gradient.

        All are sums over targets. Where `compiles` is true, the module has an attribute `compiled`.
        """

    def facts(self, sums: LossSums) -> Mapping[str, float]:  # noqa: ARG002 - some lessons report more
        """More numbers about a validation, by name."""
        return {}


@dataclass(frozen=True, kw_only=True)
class TestResult:
    """What a finished model did on the test set."""

    __test__: ClassVar[bool] = False  # not a test case of pytest

    score: Any
    """The task's score: BLEU, perplexity, accuracy. Of several directions, a dictionary of scores."""
    record: Mapping[str, Any]
    """The same as JSON, for `scores.json`."""
    text: str
    """The same for people, with an example."""
    example: str = ""
    """An input to try the model with."""


class Task(ABC):
    """What a model is trained for.

    A subclass is registered under a name, which the configuration and the model folder store:

        @registries.tasks.register("my-task")
        class MyTask(PairsTask): ...

    A task keeps no state of a run: every method gets the run as a `Job`, in the order of a run.
    """

    name: ClassVar[str] = ""
    """The name in the registry, in `task.name` and for `regard train --task`."""
    architecture: ClassVar[Architecture] = "encoder-decoder"
    """The kind of model that the task needs."""
    preset: ClassVar[str | None] = None
    """The preset of a run that names none; None: sizes are chosen from the data."""
    settings: ClassVar[Sequence[str]] = ()
    """Settings that differ from the preset, like `data.max_ratio=none`; a user's settings override them."""
    verb: ClassVar[str] = "translate"
    """The command that runs a finished model: translate, generate or classify."""
    columns: ClassVar[tuple[str, ...]] = ("input", "output")
    """The names of the parts of a row that Python passes instead of a file."""
    options: ClassVar[frozenset[str]] = frozenset()
    """Fields of `DataFiles` that the task takes beside files: columns, languages, pretrain."""
    builtins: ClassVar[tuple[str, ...]] = ()
    """Names of built-in corpora, each of which has a preset of the same name."""

    @classmethod
    def load(cls, described: Sequence[Description], **options: Any) -> LoadedModel:
        """Load finished models of this task, several as an ensemble; `regard.load` has the options."""
        from regard.tasks.loaded.translator import LoadedTranslator

        return LoadedTranslator(described, **options)

    def configured(
        self,
        job: Job,
        written: Sequence[str],  # noqa: ARG002 - for tasks that complete it
    ) -> RunConfig:
        """The configuration with what follows from the files and from the model to start from.

        Args:
            job: the run, none of whose files has been opened.
            written: names of the settings that the user has written, which stay as they are.
        """
        return job.config

    def default_folder(self, job: Job) -> Path:
        """The folder of a run that names none: `runs/` and the name of the first file, or of the data set."""
        if job.files.folder is not None:
            return Path("runs") / (job.files.folder.resolve().name or self.name)
        return Path("runs") / job.files.train[0].name.partition(".")[0]

    @abstractmethod
    def open_files(self, job: Job) -> Any:
        """Check the files of a run, and return them as `source` wants them. Nothing is written.

        Raises:
            ConfigError: a file is missing, or the files do not fit together.
            CorpusError: a file cannot be used.
        """

    def usual_start(self, job: Job, opened: Any) -> Path | None:  # noqa: ARG002
        """The model that a run on these files starts from if it names none; None for random weights."""
        return None

    @abstractmethod
    def source(self, job: Job, opened: Any) -> Source:
        """What the data is prepared from; copies of input that can be read once go to the run's folder."""

    @abstractmethod
    def prepare(self, folder: Path, source: Any, report: Reporter) -> None:
        """Write the prepared data to a folder, unless it holds the same already."""

    @abstractmethod
    def prepared(self, folder: Path, config: RunConfig) -> Prepared:
        """Read what `prepare` wrote, perhaps in another process."""

    def validator(self, job: Job, prepared: Prepared) -> Validator:  # noqa: ARG002
        """What is measured and shown at each validation, beside the loss; by default nothing."""
        return lambda _: {}

    @abstractmethod
    def test(self, job: Job, prepared: Prepared) -> TestResult:
        """Score the best model of a finished run on the test set."""

    @abstractmethod
    def evaluate(
        self,
        model: Description,
        files: Sequence[Path],
        *,
        columns: Sequence[Column] = (),
        beam_size: int | None = None,
    ) -> Any:
        """Score a model folder on files like those that it was trained on.

        Raises:
            ConfigError: there are too few or too many files.
            CorpusError: a file cannot be used.
        """

    def evaluate_together(
        self,
        models: Sequence[Description],  # noqa: ARG002
        files: Sequence[Path],  # noqa: ARG002
        *,
        columns: Sequence[Column] = (),  # noqa: ARG002
    ) -> Any:
        """Score several models that answer together; None where they cannot."""
        return None

    def next_commands(self, run: Path, example: str) -> list[str]:
        """What to type after training."""
        command = COMMANDS.get(self.name, self.verb)
        return [f"regard {command} --model {shlex.quote(str(run))} {shlex.quote(example)}"]


USUAL: dict[Architecture, str] = {
    "encoder-decoder": "translate",
    "decoder": "generate",
    "encoder": "classify",
}
"""The task of a model folder that names no task for its architecture, as imported ones may."""


def task_named(name: str) -> type[Task]:
    """A registered task.

    Raises:
        ConfigError: no task of that name is registered.
    """
    task: type[Task] = registries.tasks[name]
    if not task.__dict__.get("name"):
        task.name = name
    return task


def task_of(described: Description) -> type[Task]:
    """The task of a model folder; of one that does not say, the usual task of its architecture.

    Raises:
        ConfigError: its task is not registered.
    """
    task = task_named(described.task.name)
    own = described.config.architecture
    return task if task.architecture == own else task_named(USUAL[own])


def one_file(task: Task, files: Sequence[Path]) -> Path:
    """The only file that a task other than translation is evaluated on.

    Raises:
        ConfigError: there is another number of files.
    """
    if len(files) != 1:
        raise ConfigError(
            f"a model for the task {task.name} is scored on one file, not on {len(files)}",
            code="wrong_number_of_files",
        )
    return files[0]


def rows_file(path: Path, task: Task, rows: Sequence[Any], columns: Sequence[Column] = ()) -> Path:
    """Rows of Python as a JSONL file: dictionaries as they are, tuples by the task's columns."""
    names = [str(column) for column in columns] or list(task.columns)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            cells = [row] if isinstance(row, str) else row
            record = row if isinstance(row, Mapping) else dict(zip(names, cells, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path
