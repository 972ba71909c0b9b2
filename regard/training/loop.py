"""The training loop: steps, validations and checkpoints, in the folder of a run.

A run can be killed at any moment and started again: it continues from its newest checkpoint and ends with the
same weights, to the bit, as if it had never stopped. (On a GPU, whose kernels add in any order, to rounding.)
That needs the same number of threads, which a checkpoint stores, the same processor and the same version of
torch; a resumed run reports what has changed (`arithmetic.py`).
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.bundle import describe_bundle, save_bundle
from regard.config import RunConfig
from regard.data.batches import one_pass
from regard.data.batches.stream import BatchStream, Division, StepBatches
from regard.durable import remove_folder
from regard.engine.loading import BEST, LAST
from regard.errors import BundleError, RegardError
from regard.tasks.task import Event, Lesson, Listener, Validator
from regard.training.arithmetic import Arithmetic, using_threads, usual_threads
from regard.training.checkpoints.averaging import mean_of, with_weights
from regard.training.checkpoints.checkpoint import (
    checkpoints,
    prune,
    step_of,
    whole_weights,
    write_checkpoint,
)
from regard.training.checkpoints.run_folder import CHECKPOINTS, JOURNAL, Journal, claim
from regard.training.distributed.world import World
from regard.training.learner import Learner, StepOutcome, refuse_clash
from regard.training.memory import parts_that_fit
from regard.training.schedule import learning_rate
from regard.training.starting import Start
from regard.training.stopping import (
    INTERRUPTED,
    DivergedError,
    Progress,
    limits_note,
    limits_of,
    reason_to_stop,
    share_done,
    stop_requests,
    watch_loss,
)

if TYPE_CHECKING:
    from regard.bundle.weights import Model

MIN_CHECKPOINTS = 3
"""Minimum number of checkpoints kept."""
Probe = Callable[[Any, int], None]
"""Takes the model and the step, at each validation and before the first step."""


@dataclass(frozen=True, eq=False)
class IssuedStep:
    """A step that the device has been given."""

    step: int
    rate: float
    n_tokens: int
    outcome: StepOutcome


SCORE = "valid_bleu"
"""What a validator calls its score, if it has one."""


class TrainingLoop:
    """Trains a model in a folder, from the start or from its newest checkpoint."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        lesson: Lesson,
        *,
        world: World | None = None,
        sharded: bool = False,
        listeners: Sequence[Listener] = (),
        validator: Validator = lambda _: {},
        probe: Probe = lambda *_: None,
        start: Start | None = None,
        threads: int | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Build the model, or restore it from a checkpoint.

        Args:
            folder: the run's folder.
            config: the configuration, which must be that of the folder's checkpoints, except for the limits.
            lesson: the data and the loss.
            world: the processes that train together; by default this one alone, on the CPU.
            sharded: divide the weights among the processes.
            listeners: hear every event that goes to the journal, with `share_done` added.
            validator: is given the model at each validation, and returns more to report.
            probe: is given the model at each validation and before the first step.
            start: the model whose weights are taken; by default they are drawn.
            threads: CPU threads; by default those of the checkpoint, or as many as torch has cores for.
            stop: interrupts the run after the current step when it is set.
        """
        self.folder, self.config, self.lesson = folder, config, lesson
        self.world = World(torch.device("cpu")) if world is None else world
        self.listeners, self.validator, self.probe = list(listeners), validator, probe
        refuse_clash(config.training, sharded=sharded)
        if self.world.is_main:
            claim(folder, config)
        self.world.wait()
        model = lesson.shaped(config.model)
        self.learner = Learner(model, lesson, config.training, self.world, sharded=sharded, start=start)
        found = checkpoints(folder / CHECKPOINTS)
        state = self.learner.restore(found[-1]) if found else {}
        self.progress = Progress(**state.get("progress", {}))
        self._limits_before: dict[str, Any] = state.get("limits", limits_of(config.training))
        if self._keeps_best and found:
            # A run that ended keeps its average, or a last model, until a later one is better.
            kept = self.world.gather(self._kept_loss())[0]
            self.progress.best_loss = min(self.progress.best_loss, kept)
        self.journal = Journal(folder / JOURNAL) if self.world.is_main else None
        if self.journal is not None:
            self.journal.cut(state.get("journal", 0))
        # What the last checkpoint was computed with; None in a new run.
        self._before: dict[str, Any] | None = state.get("arithmetic", {}) if state else None
        stored = (self._before or {}).get("threads") if self.world.device.type == "cpu" else None
        self._stop, self._starts = stop, start is not None
        self.threads: int = threads or stored or usual_threads()
        self._clock, self._interrupted, self._issued = self.progress.seconds, False, deque[IssuedStep]()
        self._open_stream(state)

    @property
    def model(self) -> Model:
        """The model that is trained."""
        return self.learner.model

    def train(self) -> str:
        """Train until a limit is reached or a signal asks to stop; returns which."""
        usual = usual_threads()
        with using_threads(self.threads) as count:
            self.arithmetic = Arithmetic.here(self.world, count)
            for note in self._resume_notes(usual) if self.world.is_main else ():
                for listener in self.listeners:
                    listener({"message": note})
            return self._train()

    def _resume_notes(self, usual: int) -> Iterator[str]:
        """What differs from the time of the checkpoint: the limits, and what the last bits depend on."""
        training, d_model = self.config.training, self.config.model.d_model
        if note := limits_note(self._limits_before, training, d_model, self.progress, self.stream.epochs):
            yield note
        if self._before is not None and self.reason_to_stop() is None:
            yield from self.arithmetic.notes(self._before, usual_threads=usual)

    def _train(self) -> str:
        training = self.config.training
        if self.progress.step == 0 and self._is_whole:
            self.probe(self.model, 0)
        with self.stream, stop_requests(self._stop) as requested:
            if self.progress.step == 0 and self._starts and self._keeps_best:
                self._validate()  # training further must not end with a worse model
            reason = self.reason_to_stop()
            # Several processes must stop at the same step: a request travels with the next step's sums.
            while reason is None and not (self._interrupted or (self.world.size == 1 and requested())):
                started = time.perf_counter()
                self._step(requested())
                # A GPU is given its next step before the last one is read, so that it never waits.
                self._settle(leave=0 if self.world.device.type == "cpu" else 1)
                if self.progress.step % training.validate_every == 0:
                    self._validate()
                self._clock += time.perf_counter() - started
                reason = self.reason_to_stop()
                if reason is None and self.progress.step % training.checkpoint_every == 0:
                    self._checkpoint()
            return self._finish(reason)

    def time_steps(self, count: int, longest: float = math.inf) -> float:
        """Seconds of a full step, by the fastest of some: what else the machine does must not count.

        `count` steps are taken, or after `longest` seconds at least two: the first one is slow.
        """
        tokens: list[int] = []
        self.listeners.append(lambda event: tokens.append(event["tokens"]))
        with using_threads(self.threads), self.stream:
            seconds: list[float] = []
            while len(seconds) < count and (len(seconds) < 2 or sum(seconds) < longest):
                started = time.perf_counter()
                self._step(interrupted=False)
                self._settle()
                seconds.append(time.perf_counter() - started)
        fastest = min(each / max(1, n) for each, n in zip(seconds, tokens, strict=True))
        return fastest * max(tokens)

    @property
    def _is_whole(self) -> bool:
        """Whether this is the main process, with all of the model."""
        return self.world.is_main and not self.learner.sharded

    @property
    def _keeps_best(self) -> bool:
        """Departure 18: whether the model that is best on the validation set is kept, instead of the last."""
        return self.config.training.selection != "last"

    def reason_to_stop(self) -> str | None:
        """The limit that is reached, in words; None before."""
        return reason_to_stop(self.config.training, self.progress, self.stream.epochs)

    @property
    def share_done(self) -> float:
        """How much of the run is done, by the limit that comes first."""
        return share_done(self.config.training, self.progress, self.stream.epochs)

    # --- batches ------------------------------------------------------------------------------------------

    def _open_stream(self, state: dict[str, Any]) -> None:
        training, world, train = self.config.training, self.world, self.lesson.train
        # A compiled step needs batches of fixed size. A run keeps the kind of batches that it began with.
        fixed = state.get("fixed", self.learner.compiled)
        self.learner.compile_only_if(fixed)
        self.budget = self.lesson.budget(training.batch_tokens, fixed=fixed)
        self.budget.check(train)
        if not self.progress.parts or state.get("world_size") != world.size:
            self.progress.parts = self._parts()
        self.division = Division(
            lesson=self.lesson,
            budget=self.budget,
            longest=tuple(side.longest for side in train.facts.sides),
            n_parts=self.progress.parts,
            rank=world.rank,
            world_size=world.size,
        )
        self.stream = BatchStream(
            train, self.division, budget=self.budget, seed=training.seed, state=state.get("stream")
        )

    def _parts(self) -> int:
        """The number of parts of a process's share: as configured, or as memory demands."""
        training, model, world = self.config.training, self.model, self.world
        if training.accumulate:
            return training.accumulate
        share = -(-training.batch_tokens // world.size)
        parts = parts_that_fit(model.config, model.n_parameters, model.compute_dtype, share, world)
        return max(world.gather(parts))  # sharded weights are gathered part by part, on all processes

    # --- a step -------------------------------------------------------------------------------------------

    def _step(self, interrupted: bool) -> None:
        """Give a step to the device; one that does not fit into memory is repeated in smaller parts."""
        step, done = self.progress.step + 1, self.share_done
        rate = learning_rate(self.config.training, self.config.model.d_model, step, done)
        batches = next(self.stream)
        seconds = self._clock if self.world.is_main else 0.0
        outcome = None
        while outcome is None:
            if batches.wanted_parts != self.division.n_parts:
                batches = self.division(batches.store, batches.indices)
            with suppress(torch.OutOfMemoryError):
                outcome = self.learner.step(batches, rate, step, interrupted=interrupted, seconds=seconds)
            if outcome is None:  # outside the handler, nothing refers to what the step had computed
                self._divide_further(batches, step)
        self.progress.step = step
        n_tokens = self.lesson.n_tokens(batches.store, batches.indices)
        self._issued.append(IssuedStep(step, rate, n_tokens, outcome))

    def _divide_further(self, batches: StepBatches, step: int) -> None:
        """Take steps in twice as many parts from now on.

        Raises:
            RegardError: no part can be divided.
        """
        self.learner.forget_gradients()
        if self.learner.sharded or len(batches.batches) < self.progress.parts:
            raise RegardError(
                "out of memory, and the step cannot be divided further; lower training.batch_tokens or "
                "model.max_length, or use a smaller model",
                code="out_of_memory",
            )
        self.progress.parts = self.division.n_parts = 2 * self.progress.parts
        self._settle()
        message = f"out of memory: from now on, a step is divided into {self.progress.parts} parts"
        self._record({"step": step, "message": message})

    def _settle(self, leave: int = 0) -> None:
        """Read the outcomes of issued steps, all but the last `leave`, and record them."""
        while len(self._issued) > leave:
            issued = self._issued.popleft()
            sums, interrupted, seconds, norm = issued.outcome.read()
            self._interrupted = self._interrupted or interrupted
            self.progress.seconds = seconds
            if trouble := watch_loss(self.progress, sums.loss, norm):
                raise DivergedError(f"step {issued.step:,}: {trouble}; {self._advice()}", code="diverged")
            self._record(
                {
                    "step": issued.step,
                    "loss": sums.loss,
                    "accuracy": sums.accuracy,
                    "tokens": issued.n_tokens,
                    "learning_rate": issued.rate,
                    "seconds": round(seconds, 3),
                }
            )

    def _advice(self) -> str:
        """What is left of a run that diverged, and what to try."""
        best = self.progress.best_step if self._keeps_best else self.progress.validated
        kept = f"{self.folder / 'best'} has the model of step {best:,}" if best else "no model was saved yet"
        return (
            f"{kept}. Train in another folder with a lower training.learning_rate, a longer "
            "training.warmup_steps, or training.clip_norm=1"
        )

    # --- validations, models, checkpoints -----------------------------------------------------------------

    def _validate(self) -> None:
        self._settle()
        progress = self.progress
        progress.validated = progress.step
        with self.learner.published():
            facts = self._measure()
            more = self._judged()
            if self._is_whole:
                self.probe(self.model, progress.step)
            better = self._is_better(facts, more)
            if better:
                progress.best_step = progress.step
            if better or not self._keeps_best:
                self._save(BEST, facts)
        if self.world.is_main:  # that of a checkpoint before the first validation, or of an earlier end
            remove_folder(self.folder / LAST)
        progress.stale = 0 if better else progress.stale + 1
        self._record({"step": progress.step, **facts, **more})

    def _judged(self) -> dict[str, Any]:
        """What the validator returns; of several processes, all know the score."""
        more = self.validator(self.model) if self._is_whole else {}
        if not self._starts:
            return more
        score = self.world.gather(more.get(SCORE))[0]
        return more if score is None else {**more, SCORE: score}

    def _is_better(self, facts: Mapping[str, float], more: Mapping[str, Any]) -> bool:
        """Whether a model is the best so far; if so, it is remembered.

        It has the lowest loss, and no lower score than the model that the run starts from: with the rest of
        its abilities, a model can lose BLEU while its loss still falls.
        """
        progress = self.progress
        if progress.step == 0:
            progress.least_score = more.get(SCORE, -math.inf)
        better = (
            facts["valid_loss"] < progress.best_loss and more.get(SCORE, math.inf) >= progress.least_score
        )
        if better:
            progress.best_loss = facts["valid_loss"]
        return better

    def _measure(self) -> dict[str, float]:
        valid = self.lesson.valid
        # Batches as large as the parts of a step, which fit into memory; and room for the longest sequence.
        part = self.config.training.batch_tokens // (self.world.size * self.progress.parts)
        longest = max(side.longest for side in valid.facts.sides) + 1
        parts = one_pass(valid, self.lesson.budget(max(part, longest)))
        return self.learner.measure(self.lesson.batch(valid, part) for part in parts)

    def _finish(self, reason: str | None) -> str:
        """At the end a last validation and the last model; when interrupted, a checkpoint to resume from."""
        self._settle()
        if reason is not None and self.progress.validated < self.progress.step:
            self._validate()
        if self.progress.step not in map(step_of, checkpoints(self.folder / CHECKPOINTS)):
            self._checkpoint()
        if reason is None:
            return INTERRUPTED
        with self.learner.published():
            self._save(LAST, {})
        self._average_checkpoints()
        if self.journal is not None:
            self.journal.sync()
        return reason

    def _average_checkpoints(self) -> None:
        """The mean of the last checkpoints is kept (6.1); Departure 18: only if its loss is the lowest.

        Checkpoints of interruptions do not count: the result must not depend on when they happened.
        """
        training, found = self.config.training, checkpoints(self.folder / CHECKPOINTS)
        if training.ema_decay and not self._keeps_best:
            return
        due = [place for place in found[:-1] if step_of(place) % training.checkpoint_every == 0]
        places = [*due, *found[-1:]][-training.average_checkpoints :]
        if len(places) < 2:
            return
        with with_weights(self.model, mean_of(places)):
            facts = {"averaged": len(places), **self._measure()}
            judged = self._judged() if self._starts else {}
            if self._is_better(facts, judged) or not self._keeps_best:
                self._save(BEST, facts)
        self._record({"step": self.progress.step, **facts})

    def _save(self, name: str, metrics: dict[str, Any]) -> None:
        model = self.learner.copy()
        if model is not None:
            save_bundle(
                self.folder / name,
                model,
                subwords=self.lesson.subwords,
                labels=self.lesson.labels,
                metrics={"step": self.progress.step, **metrics},
                decoding=self.config.decoding,
                task=self.config.task,
                overwrite=True,
            )
        self.world.wait()

    def _kept_loss(self) -> float:
        """The validation loss of the kept model if it is of this step; otherwise infinity."""
        with suppress(BundleError):
            facts = describe_bundle(self.folder / BEST).metrics
            if facts.get("step") == self.progress.step:
                return float(facts.get("valid_loss", math.inf))
        return math.inf

    def _checkpoint(self) -> None:
        self._settle()
        if not self.progress.validated:  # an interrupted run has a model from its first checkpoint on
            with self.learner.published():
                self._save(LAST, {})
        weights, moments = whole_weights(self.model), self.learner.moments()
        if self.journal is not None:
            state = {
                "progress": asdict(replace(self.progress, seconds=self._clock)),
                "stream": self.stream.state(),
                "journal": self.journal.sync(),
                "precision": self.learner.precision,
                "fixed": self.budget.fixed,
                "world_size": self.world.size,
                "arithmetic": asdict(self.arithmetic),
                "limits": limits_of(self.config.training),
            }
            folder = self.folder / CHECKPOINTS
            write_checkpoint(folder, weights, moments, self.progress.step, state)
            training = self.config.training
            kept = max(MIN_CHECKPOINTS, training.average_checkpoints)
            prune(folder, kept, training.checkpoint_every)
        self.world.wait()

    def _record(self, event: Event) -> None:
        """Write an event to the journal, and pass it to the listeners."""
        if self.journal is not None:
            self.journal.write(**event)
            for listener in self.listeners:
                listener({**event, "share_done": self.share_done})
