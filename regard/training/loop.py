"""A run: a folder, a configuration, two token stores, and a model that gets better.

Kill a run at any moment and start it again: it goes on from its newest checkpoint and ends with the same
weights, to the bit, as if it had never stopped. (On a GPU, whose kernels add up in any order, to rounding.)
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.bundle import save_bundle
from regard.config import RunConfig
from regard.data.batches import one_pass
from regard.data.batches.stream import BatchStream
from regard.data.store import Store
from regard.errors import RegardError
from regard.training.checkpoints.averaging import mean_of, with_weights
from regard.training.checkpoints.checkpoint import (
    checkpoints,
    prune,
    step_of,
    whole_weights,
    write_checkpoint,
)
from regard.training.checkpoints.folder import CHECKPOINTS, claim, sweep
from regard.training.checkpoints.journal import Journal
from regard.training.distributed.sharing import Sharing, Turn
from regard.training.distributed.world import World
from regard.training.ending import (
    ASKED_TO_STOP,
    DivergedError,
    Progress,
    asked_to_stop,
    reason_to_stop,
    share_done,
    watch_loss,
)
from regard.training.learner import Learner, refuse_clash
from regard.training.lesson import Lesson
from regard.training.memory import parts_that_fit
from regard.training.schedule import learning_rate
from regard.training.starting import Start
from regard.training.step import Outcome

if TYPE_CHECKING:
    from regard.bundle.weights import Model

KEPT = 3
"""Checkpoints that stay at least."""
Listener = Callable[[dict[str, Any]], None]
"""Hears of everything that happens, as the journal does: a step, a validation, words for the reader."""
Sample = Callable[[Any], dict[str, Any]]
Probe = Callable[[Any, int], None]


@dataclass(frozen=True, eq=False)
class Issued:
    """A step that was given to the device, and what is known of it so far."""

    step: int
    rate: float
    n_tokens: int
    outcome: Outcome


class Run:
    """Trains a model in a folder, from the start or from its newest checkpoint."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        data: Lesson,
        *,
        world: World | None = None,
        sharded: bool = False,
        listeners: Sequence[Listener] = (),
        sample: Sample = lambda _: {},
        probe: Probe = lambda *_: None,
        start: Start | None = None,
    ) -> None:
        """`sample(model)` is asked at each validation for more to tell: a score of outputs, an example.

        `probe(model, step)` is shown the model at each validation, and before the first step. The weights are
        drawn, or where `start` has them, taken from there.
        """
        self.folder, self.config, self.data = folder, config, data
        self.world = World(torch.device("cpu")) if world is None else world
        self.listeners, self.sample, self.probe = list(listeners), sample, probe
        refuse_clash(config.training, sharded=sharded)
        if self.world.is_main:
            claim(folder, config)
            sweep(folder)
        self.world.wait()
        model = data.shaped(config.model)
        self.learner = Learner(model, data, config.training, self.world, sharded=sharded, start=start)
        found = checkpoints(folder / CHECKPOINTS)
        state = self.learner.restore(found[-1]) if found else {}
        self.progress = Progress(**state.get("progress", {}))
        self.journal = Journal(folder / "journal.jsonl") if self.world.is_main else None
        if self.journal is not None:
            self.journal.cut(state.get("journal", 0))
        self._clock, self._asked, self._issued = self.progress.seconds, False, deque[Issued]()
        self._open_stream(state)

    @property
    def model(self) -> Model:
        """The model that learns."""
        return self.learner.model

    def train(self) -> str:
        """Train until a limit is reached or somebody asks to stop; says which."""
        training = self.config.training
        if self.progress.step == 0 and self._is_whole:
            self.probe(self.model, 0)
        with self.stream, asked_to_stop() as asked:
            reason = self.reason_to_stop()
            # Several processes must do the same: who is asked says so in the next step, and all learn it.
            while reason is None and not (self._asked or (self.world.size == 1 and asked())):
                started = time.perf_counter()
                self._step(asked())
                # A GPU is given its next step before the last one is read: it must never wait for us.
                self._settle(leave=0 if self.world.device.type == "cpu" else 1)
                if self.progress.step % training.validate_every == 0:
                    self._validate()
                self._clock += time.perf_counter() - started
                reason = self.reason_to_stop()
                if reason is None and self.progress.step % training.checkpoint_every == 0:
                    self._checkpoint()
            return self._leave(reason)

    @property
    def _is_whole(self) -> bool:
        """Whether this process has the whole model, and speaks for all."""
        return self.world.is_main and not self.learner.sharded

    def reason_to_stop(self) -> str | None:
        """The limit that is reached, in words; None while there is none."""
        return reason_to_stop(self.config.training, self.progress, self.stream.epochs)

    @property
    def share_done(self) -> float:
        """How much of the run is behind, by the limit that comes first."""
        return share_done(self.config.training, self.progress, self.stream.epochs)

    # --- what comes in ------------------------------------------------------------------------------------

    def _open_stream(self, state: dict[str, Any]) -> None:
        training, world, train = self.config.training, self.world, self.data.train
        # Batches of fixed size are what a compiled step wants. A run keeps to the kind that it began with.
        fixed = state.get("fixed", self.learner.compiled)
        self.learner.compile_only_if(fixed)
        self.budget = self.data.budget(training.batch_tokens, fixed=fixed)
        self.budget.check(train)
        self.sharing = Sharing(
            lesson=self.data,
            budget=self.budget,
            longest=tuple(side.longest for side in train.facts.sides),
            rank=world.rank,
            world_size=world.size,
        )
        if not self.progress.parts or state.get("world_size") != world.size:
            self.progress.parts = self._parts()
        self.stream = BatchStream(
            train, self._turn, budget=self.budget, seed=training.seed, state=state.get("stream")
        )

    def _parts(self) -> int:
        """Parts that this process takes its share of a step in: as asked for, or as memory demands."""
        training, model, world = self.config.training, self.model, self.world
        if training.accumulate:
            return training.accumulate
        share = -(-training.batch_tokens // world.size)
        parts = parts_that_fit(model.config, model.n_parameters, model.compute_dtype, share, world)
        return max(world.gather(parts))  # sharded weights are put together in step, part by part

    def _turn(self, store: Store, indices: np.ndarray) -> Turn:
        return self.sharing.turn(store, indices, self.progress.parts)

    # --- a step -------------------------------------------------------------------------------------------

    def _step(self, asked: bool) -> None:
        """Give a step to the device. One that does not fit into memory is taken again in smaller parts."""
        step, done = self.progress.step + 1, self.share_done
        rate = learning_rate(self.config.training, self.config.model.d_model, step, done)
        turn = next(self.stream)
        seconds = self._clock if self.world.is_main else 0.0
        outcome = None
        while outcome is None:
            if turn.asked_parts != self.progress.parts:
                turn = self._turn(turn.store, turn.indices)
            with suppress(torch.OutOfMemoryError):
                outcome = self.learner.step(turn, rate, step, asked=asked, seconds=seconds)
            if outcome is None:  # by now nothing holds on to what the step had computed
                self._cut_up(turn, step)
        self.progress.step = step
        self._issued.append(Issued(step, rate, self.data.n_tokens(turn.store, turn.indices), outcome))

    def _cut_up(self, turn: Turn, step: int) -> None:
        """Take steps in twice as many parts from here on; where no part can be cut, say what would help."""
        self.learner.forget_gradients()
        if self.learner.sharded or turn.n_parts < self.progress.parts:
            advice = "lower training.batch_tokens or model.max_length, or take a smaller model"
            raise RegardError(f"out of memory, and the step cannot be cut up further; {advice}")
        self.progress.parts *= 2
        said = f"out of memory: a step is taken in {self.progress.parts} parts from here on"
        self._settle()
        self._tell({"step": step, "said": said})

    def _settle(self, leave: int = 0) -> None:
        """Read what came of steps that were issued, all but the last few, and tell it."""
        while len(self._issued) > leave:
            issued = self._issued.popleft()
            score, asked, seconds, norm = issued.outcome.read()
            self._asked = self._asked or asked
            self.progress.seconds = seconds
            if trouble := watch_loss(self.progress, score.loss, norm):
                raise DivergedError(f"step {issued.step:,}: {trouble}; {self._rescue()}")
            self._tell(
                {
                    "step": issued.step,
                    "loss": score.loss,
                    "accuracy": score.accuracy,
                    "tokens": issued.n_tokens,
                    "learning_rate": issued.rate,
                    "seconds": round(seconds, 3),
                }
            )

    def _rescue(self) -> str:
        """What is left of a run that diverged, and what to try."""
        best = self.progress.best_step
        kept = f"{self.folder / 'best'} keeps the model of step {best:,}" if best else "no model was kept yet"
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
            more = self.sample(self.model) if self._is_whole else {}
            if self._is_whole:
                self.probe(self.model, progress.step)
            better = facts["valid_loss"] < progress.best_loss
            if better:
                progress.best_loss, progress.best_step = facts["valid_loss"], progress.step
                self._save("best", facts)
        progress.stale = 0 if better else progress.stale + 1
        self._tell({"step": progress.step, **facts, **more})

    def _measure(self) -> dict[str, float]:
        valid = self.data.valid
        # As much at once as a step's parts have, which fit into memory; and room for any sentence.
        part = self.config.training.batch_tokens // (self.world.size * self.progress.parts)
        longest = max(side.longest for side in valid.facts.sides) + 1
        parts = one_pass(valid, self.data.budget(max(part, longest)))
        return self.learner.measure(self.data.batch(valid, part) for part in parts)

    def _leave(self, reason: str | None) -> str:
        """At the end a last validation and the last model; when asked to stop, a checkpoint to go on from."""
        self._settle()
        if reason is not None and self.progress.validated < self.progress.step:
            self._validate()
        if self.progress.step not in map(step_of, checkpoints(self.folder / CHECKPOINTS)):
            self._checkpoint()
        if reason is None:
            return ASKED_TO_STOP
        with self.learner.published():
            self._save("last", {})
        self._average_checkpoints()
        return reason

    def _average_checkpoints(self) -> None:
        """The mean of the last checkpoints is the best model, if it is better than the best so far (6.1).

        Those that were written because somebody asked to stop do not count: they would make the result depend
        on when that was.
        """
        training, found = self.config.training, checkpoints(self.folder / CHECKPOINTS)
        due = [place for place in found[:-1] if step_of(place) % training.checkpoint_every == 0]
        places = [*due, *found[-1:]][-training.average_checkpoints :]
        if len(places) < 2:
            return
        with with_weights(self.model, mean_of(places)):
            facts = {"averaged": len(places), **self._measure()}
            if facts["valid_loss"] < self.progress.best_loss:
                self._save("best", facts)
        self._tell({"step": self.progress.step, **facts})

    def _save(self, name: str, metrics: dict[str, Any]) -> None:
        model = self.learner.copy()
        if model is not None:
            save_bundle(
                self.folder / name,
                model,
                subwords=self.data.subwords,
                labels=self.data.labels,
                metrics={"step": self.progress.step, **metrics},
                decoding=self.config.decoding,
                task=self.config.task,
                overwrite=True,
            )
        self.world.wait()

    def _checkpoint(self) -> None:
        self._settle()
        weights, moments = whole_weights(self.model), self.learner.moments()
        if self.journal is not None:
            state = {
                "progress": asdict(replace(self.progress, seconds=self._clock)),
                "stream": self.stream.state(),
                "journal": self.journal.length(),
                "precision": self.learner.precision,
                "fixed": self.budget.fixed,
                "world_size": self.world.size,
            }
            folder = self.folder / CHECKPOINTS
            write_checkpoint(folder, weights, moments, self.progress.step, state)
            training = self.config.training
            prune(folder, max(KEPT, training.average_checkpoints), training.checkpoint_every)
        self.world.wait()

    def _tell(self, event: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.write(**event)
            for listener in self.listeners:
                listener(event)
