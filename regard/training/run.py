"""The whole way of a run: configure, prepare, train, test. What `regard train` and `regard.train` do.

Everything that happens is an event, a dictionary that listeners hear:

    {"message": …}                                  for the user
    {"activity": …, "done": …, "total": …}          progress of something long, such as encoding
    {"started": RUN, "parameters": …, "step": …}    training begins, or continues
    {"step": …, "loss": …, "share_done": …, …}      a step
    {"step": …, "valid_loss": …, "sample": …, …}    a validation
    {"finished": RUN, "reason": …}                  training ends

Steps and validations are in RUN/journal.jsonl, too.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.bundle import describe_bundle
from regard.config import RunConfig, read_config
from regard.config.checking import counted
from regard.durable import write_atomically
from regard.engine.loading import model_folder
from regard.errors import ConfigError, CorpusError, reason
from regard.host import keep_freed_memory
from regard.loaded import load
from regard.look.figures.curves import curves_svg
from regard.tasks.data_folder import key_of
from regard.tasks.task import (
    DataFiles,
    Event,
    Job,
    Listener,
    Prepared,
    Reporter,
    Task,
    TestResult,
    task_of,
)
from regard.text.files.tables import Column
from regard.training.arguments import (
    Data,
    as_begun,
    as_paths,
    as_words,
    chosen_task,
    configured,
    data_files,
    is_planned,
    refuse_builtin,
    refuse_options,
    shaped_like,
    with_dataset,
    written_settings,
)
from regard.training.checkpoints.checkpoint import checkpoints, read_state
from regard.training.checkpoints.run_folder import (
    CHECKPOINTS,
    CONFIG,
    DATA,
    JOURNAL,
    Journal,
    claim,
    has_begun,
    locked,
    refuse_other,
)
from regard.training.display.display import Display
from regard.training.display.trackers import check_trackers, open_tracker
from regard.training.distributed.world import World, join_world
from regard.training.loop import TrainingLoop
from regard.training.planning import plan, with_room
from regard.training.probes import Probing
from regard.training.schedule import doubt
from regard.training.starting import Start
from regard.training.stopping import INTERRUPTED

if TYPE_CHECKING:
    from regard.tasks.loaded import LoadedModel

NOTHING = "none"
"""What `start_from` is for random weights."""
PRETRAINING = "pretraining"
"""Where a classifier learns from texts without labels: a run of its own, in the folder of the run."""
BAD_ROWS = frozenset(
    (
        "bad_quotation",
        "field_count_mismatch",
        "missing_field",
        "not_json",
        "not_text",
        "not_utf_8",
        "bad_turns",
    )
)
"""Codes of errors about one row, without which a file can be read."""


@dataclass(eq=False)
class Run:
    """A run that has ended, or was interrupted and can be resumed."""

    folder: Path
    config: RunConfig
    task: Task
    reason: str
    """Why it ended."""
    result: TestResult | None = None
    """What the best model did on the test set; None for a run that was interrupted."""
    messages: list[str] = field(default_factory=list, repr=False)
    """What was reported."""

    @property
    def interrupted(self) -> bool:
        """Whether a signal has stopped it; the same call resumes it."""
        return self.reason == INTERRUPTED

    @property
    def scores(self) -> Any:
        """The scores on the test set, as the task gives them."""
        return None if self.result is None else self.result.score

    @cached_property
    def model(self) -> LoadedModel:
        """The best model, as `regard.load` opens it."""
        return load(self.folder)

    @property
    def events(self) -> list[Event]:
        """Every step and validation, from the journal."""
        return list(Journal(self.folder / JOURNAL))


def train(
    *data: Data,
    task: str | type[Task] | Task | None = None,
    out: Path | str | None = None,
    valid: Data = (),
    test: Data = (),
    pretrain: Data = (),
    columns: Sequence[Column] = (),
    source: str | None = None,
    target: str | None = None,
    builtin: str | None = None,
    skip_bad: bool = False,
    start_from: Path | str | None = None,
    preset: str | None = None,
    config: Path | str | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    device: str = "auto",
    threads: int | None = None,
    shard: bool = False,
    trackers: Sequence[str] = (),
    stop: threading.Event | None = None,
    listeners: Sequence[Listener] = (),
    display: bool = False,
) -> Run:
    """Train a model, and score it. The same call resumes a run, also with other limits of its length.

    Args:
        data: files to train on, as the task wants them: `"train.zh", "train.en"`; or the folder of a data set
            of Hugging Face; or one list of rows.
        task: the name of a task, a subclass of `Task`, or an instance of one; by default translation.
        out: the folder of the run; by default one in `runs`.
        valid: files or rows to validate with; by default they are split off.
        test: files or rows to score with; by default they are split off.
        pretrain: texts without labels, from which a classifier learns first.
        columns: which columns of tables, by name or by number from 1.
        source: language code of the inputs, where file names do not say it.
        target: language code of the outputs.
        builtin: a built-in corpus instead of files: numerals, or rooms for summaries, answers and
            conversations.
        skip_bad: leave out and count rows that cannot be read, instead of refusing their file.
        start_from: a model folder whose weights and subwords to start from; "none" for random weights where
            a task would start from the bundled model.
        preset: the preset to configure; by default sizes are chosen from the data and the machine.
        config: a TOML file of settings.
        settings: single settings, like `{"training.max_steps": 200}`; they override the file.
        device: cpu, cuda, mps (the GPU of a Mac) or auto.
        threads: CPU threads of each process; by default one per core, and in a resumed run as before.
        shard: divide the weights among the processes of torchrun.
        trackers: tensorboard, wandb or mlflow.
        stop: when it is set, from any thread, the run is interrupted after the current step, as by a signal.
        listeners: functions that hear every event.
        display: show progress on stderr.

    Raises:
        ConfigError: settings or files do not fit together, or the folder is in use.
        CorpusError: data cannot be used.
        DivergedError: the loss is not finite, or has risen too far.
    """
    check_trackers(trackers)
    file = None if config is None else Path(config)
    words = as_words(settings) if isinstance(settings, Mapping) else [word.strip() for word in settings]
    words += ["data.skip_bad=true"] if skip_bad else []
    chosen = chosen_task(task, file, words)
    written = written_settings(file, words)
    messages: list[str] = []
    with ExitStack() as stack:
        hearing = [
            lambda event: messages.append(event["message"]) if "message" in event else None,
            *listeners,
        ]
        if display:
            hearing.append(stack.enter_context(Display()))
        files = DataFiles(
            **data_files(chosen, stack, data, valid, test, columns),
            pretrain=as_paths(pretrain),
            languages=(source, target),
            builtin=builtin,
        )
        refuse_builtin(chosen, files)
        report = Reporter(hearing if _is_main() else ())
        job = Job(
            folder=Path(out or "."),
            files=with_dataset(files, report),
            report=report,
            **configured(chosen, preset, file, words, builtin),
        )
        refuse_options(chosen, files, both_directions=job.config.task.both_directions)
        planned = is_planned(chosen, preset, file, builtin)
        start = None if start_from is None or str(start_from) == NOTHING else Start.of(start_from)
        job = _starting(job, start, written)
        job = replace(job, config=chosen.configured(job, written))
        job = replace(job, folder=Path(out) if out else chosen.default_folder(job))
        with _skipping_advised(job):
            opened = chosen.open_files(job)
        if planned and start_from is None and not any(name.startswith("model.") for name in written):
            with _skipping_advised(job):
                usual = chosen.usual_start(job, opened)
            start = None if usual is None else Start.of(usual)
            job = _starting(job, start, written)
        job = replace(job, began=has_begun(job.folder))
        if planned and job.began:
            job = replace(job, config=as_begun(job.config, job.folder, written))
        if note := doubt(job.config.training, job.config.model.d_model, planned=planned):
            job.report(note)
        with _joined(job, device) as world:
            job = replace(job, device=world.device)
            whole = WholeRun(
                job,
                chosen,
                world,
                start,
                written=written if planned else None,
                shard=shard,
                threads=threads,
                trackers=trackers,
                stop=stop,
            )
            return replace(whole.carry_out(opened), messages=messages)


def evaluate(
    model: Path | str,
    *files: Path | str,
    columns: Sequence[Column] = (),
    beam_size: int | None = None,
) -> Any:
    """Score a model on files like those that it was trained on; the task decides how.

    Args:
        model: a model folder, or a run's.
        files: for a translator, texts and their translations; for other tasks, one file.
        columns: which columns of tables.
        beam_size: hypotheses kept at each step; by default as the folder says.

    Raises:
        ConfigError: the model's task is not registered, or wants other files.
        CorpusError: a file cannot be used.
    """
    described = describe_bundle(model_folder(model))
    paths = [Path(file) for file in files]
    return task_of(described)().evaluate(described, paths, columns=columns, beam_size=beam_size)


def _starting(job: Job, start: Start | None, written: Sequence[str]) -> Job:
    """The run with the shape and the vocabulary of the model that it starts from, if there is one."""
    if start is None:
        return job
    return replace(job, start=start.bundle, config=shaped_like(job, start, written))


def _is_main() -> bool:
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def _joined(job: Job, device: str) -> Iterator[World]:
    """This process among those that train together; the main process has claimed and locked the folder."""
    keep_freed_memory()
    try:
        with join_world(device) as world, _claimed(job) if world.is_main else nullcontext():
            try:
                yield world
            except KeyboardInterrupt:
                job.report("stopped; the same command resumes the run")
                raise
    except OSError as error:
        where = error.filename or job.folder
        raise ConfigError(f"{where}: {reason(error)}", code="file_error") from error


@contextmanager
def _skipping_advised(job: Job) -> Iterator[None]:
    """An error about a row says how to leave such rows out."""
    try:
        yield
    except CorpusError as error:
        if error.code not in BAD_ROWS or job.config.data.skip_bad:
            raise
        problem = f"{error}\n`skip_bad` leaves out such rows, and counts them"
        raise CorpusError(problem, code=error.code) from error


@contextmanager
def _claimed(job: Job) -> Iterator[None]:
    refuse_other(job.folder, job.config)
    with locked(job.folder, job.report):
        claim(job.folder, job.config)
        yield


class WholeRun:
    """A run in its folder, from files that have been checked to a tested model."""

    def __init__(
        self,
        job: Job,
        task: Task,
        world: World,
        start: Start | None = None,
        *,
        written: Sequence[str] | None = None,
        shard: bool = False,
        threads: int | None = None,
        trackers: Sequence[str] = (),
        stop: threading.Event | None = None,
    ) -> None:
        """`written`: the settings that stay while the others are chosen from the data; None: all stay."""
        self.job, self.task, self.world, self.start, self.written = job, task, world, start, written
        self.shard, self.threads, self.trackers, self.stop = shard, threads, trackers, stop

    def carry_out(self, opened: Any) -> Run:
        """Prepare, train and test; an interrupted run is not tested."""
        prepared = self.prepare(opened)
        if self.written is not None:
            self.plan(prepared, self.written)
        reason = self.train(prepared)
        result = None
        if self.world.is_main and reason != INTERRUPTED:
            result = self.task.test(self.job, prepared)
            text = json.dumps(result.record, ensure_ascii=False, indent=1)
            write_atomically(self.job.folder / "scores.json", text)
        return Run(self.job.folder, self.job.config, self.task, reason, result)

    def prepare(self, opened: Any) -> Prepared:
        """The prepared data; the main process makes it where it is missing.

        Raises:
            CorpusError: the data of a run with a checkpoint has changed.
        """
        job, data = self.job, self.job.folder / DATA
        if self.world.is_main:
            with _skipping_advised(job):
                source = self.task.source(job, opened)
            if job.began and key_of(data) not in (None, source.key()):
                raise CorpusError(
                    f"{job.folder}: the data has changed since the run began; choose another with `out`",
                    code="data_changed",
                )
            with _skipping_advised(job):
                self.task.prepare(data, source, job.report)
        self.world.wait()
        return self.task.prepared(data, job.config)

    def plan(self, prepared: Prepared, written: Sequence[str]) -> None:
        """Choose what is not written; the main process does, and the others read what it has written.

        A run that has begun keeps its plan, and gets steps enough for the limits that are written.
        """
        job = self.job
        if job.began:
            state = read_state(checkpoints(job.folder / CHECKPOINTS)[-1])
            self.job = replace(job, config=with_room(job.config, prepared.lesson, written, state))
            return
        if self.world.is_main:
            config, start = job.config, self.start
            job.report("choosing sizes: some steps are timed")
            chosen = plan(config, prepared.lesson, written, self.world, start=start, threads=self.threads)
            job.report(chosen.text)
            claim(job.folder, chosen.config)
        self.world.wait()
        self.job = replace(job, config=read_config(file=job.folder / CONFIG))

    def train(self, prepared: Prepared) -> str:
        """Train, after the pretraining if there is one; returns why it ended."""
        job, report = self.job, self.job.report
        if prepared.pretraining is not None:
            if not job.began:
                report(f"pretraining on hidden tokens, in {job.folder / PRETRAINING}")
                loop = self._pretraining_loop(prepared)
                if (reason := self._train_loop(loop)) == INTERRUPTED:
                    return reason
                self.threads = loop.threads
                report("training on labels")
            self.start = Start.of(job.folder / PRETRAINING)
        before = () if self.start is None else self.start.named_labels
        if before and before != tuple(prepared.lesson.labels) and not job.began:
            report(f"the labels were {', '.join(before[:10])}; the output layer is learned anew")
        return self._train_loop(self.loop(prepared))

    def loop(self, prepared: Prepared) -> TrainingLoop:
        """The training loop, with its validator and its probes."""
        job, lesson, training = self.job, prepared.lesson, self.job.config.training
        probing = Probing(
            job.folder,
            lesson.valid,
            prepared.subwords,
            sentences=training.probe_sentences if lesson.has_probes else 0,
            every=training.validate_every,
            labels=lesson.labels,
        )
        loop = TrainingLoop(
            job.folder,
            job.config,
            lesson,
            world=self.world,
            sharded=self.shard,
            validator=self.task.validator(job, prepared) if self.world.is_main else lambda _: {},
            probe=probing,
            start=self.start,
            threads=self.threads,
            stop=self.stop,
        )
        if self.world.is_main:
            probing.resume_at(loop.progress.step)
        return loop

    def _pretraining_loop(self, prepared: Prepared) -> TrainingLoop:
        assert prepared.pretraining is not None
        config = self.job.config
        steps = config.training.pretrain_steps
        training = replace(config.training, max_steps=steps, max_epochs=None, patience=0)
        return TrainingLoop(
            self.job.folder / PRETRAINING,
            replace(config, training=training),
            prepared.pretraining,
            world=self.world,
            sharded=self.shard,
            start=self.start,
            threads=self.threads,
            stop=self.stop,
        )

    def _train_loop(self, loop: TrainingLoop) -> str:
        """Train while listeners and trackers hear of it."""
        report, progress, model = self.job.report, loop.progress, loop.model
        with ExitStack() as stack:
            if self.world.is_main:
                trackers = [
                    stack.enter_context(open_tracker(name, loop.folder, loop.config))
                    for name in self.trackers
                ]
                loop.listeners += [*report.listeners, *trackers, _curves(loop)]
            report.send(
                {
                    "started": loop.folder,
                    "step": progress.step,
                    "max_steps": loop.config.training.max_steps,
                    "unit": loop.lesson.unit,
                    "parameters": model.n_parameters,
                    "precision": loop.learner.precision,
                    "device": self.world.device.type,
                }
            )
            try:
                reason = loop.train()
            finally:
                report.send({"finished": loop.folder})
        report(f"{reason}, after {progress.seconds:,.0f} s of training")
        if reason == INTERRUPTED:
            report("the same command resumes the run")
        elif self.world.is_main and (note := warmup_note(loop)):
            report(note)
        return reason


def warmup_note(loop: TrainingLoop) -> str | None:
    """What to report about a run that has ended before its warm-up."""
    steps, warmup = loop.progress.step, loop.config.training.warmup_steps
    if steps >= warmup:
        return None
    rates = [event["learning_rate"] for event in Journal(loop.folder / JOURNAL) if "learning_rate" in event]
    # A schedule that ends with the run may fall before the warm-up is over.
    rising = "the learning rate was still rising: " if rates[-2:-1] < rates[-1:] else ""
    return (
        f"{rising}training.warmup_steps is {warmup:,}, and the run had {counted(steps, 'step')}; a short run "
        "may learn more with fewer warm-up steps"
    )


def _curves(loop: TrainingLoop) -> Callable[[Event], None]:
    """A listener that draws the curves at each validation."""

    def draw(event: Event) -> None:
        if "valid_loss" in event:
            title, journal = loop.folder.resolve().name, Journal(loop.folder / JOURNAL)
            write_atomically(loop.folder / "curves.svg", curves_svg(journal, title, loop.lesson.unit))

    return draw
