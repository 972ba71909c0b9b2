"""A run: a folder, a configuration, two token stores, and a model that gets better.

Kill a run at any moment and start it again: it goes on from its newest checkpoint and ends with the same
weights, to the bit, as if it had never stopped. (On a GPU, whose kernels add up in any order, to rounding.)
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.bundle import save_bundle
from regard.bundle.weights import fill, undrawn
from regard.config import RunConfig, TrainingConfig
from regard.data.batches import PAIRS_EXTRA, Budget, make_pairs_batch, one_pass
from regard.data.store import Store
from regard.data.stream import BatchStream
from regard.errors import ConfigError, RegardError
from regard.model.transformer import Transformer
from regard.train.averaging import MovingAverage, mean_of, with_weights
from regard.train.checkpoint import (
    checkpoints,
    generators,
    on_host,
    prune,
    read_checkpoint,
    set_generators,
    whole_weights,
    write_checkpoint,
)
from regard.train.ending import (
    ASKED_TO_STOP,
    DivergedError,
    Progress,
    asked_to_stop,
    reason_to_stop,
    share_done,
    watch_loss,
)
from regard.train.folder import CHECKPOINTS, claim, sweep
from regard.train.journal import Journal
from regard.train.memory import parts_that_fit
from regard.train.objective import Objective
from regard.train.optimizer import Optimizer
from regard.train.schedule import learning_rate
from regard.train.sharding import like, shard
from regard.train.sharing import Sharing, Turn
from regard.train.step import Outcome, evaluate, train_step
from regard.train.world import World

KEPT = 3
"""Checkpoints that stay at least."""
AVERAGE = "average."
"""What the moving average's weights are called in a checkpoint, before their names."""
Listener = Callable[[dict[str, Any]], None]
"""Hears of everything that happens, as the journal does: a step, a validation, words for the reader."""


@dataclass(frozen=True, eq=False)
class PairsData:
    """What an encoder-decoder model learns from, and is measured on."""

    train: Store
    valid: Store
    bos: int
    eos: int
    subwords: bytes | None = None
    """Goes into the model folder."""


@dataclass(frozen=True, eq=False)
class Issued:
    """A step that was given to the device, and what is known of it so far."""

    step: int
    rate: float
    outcome: Outcome


class Run:
    """Trains a translator in a folder, from the start or from its newest checkpoint."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        data: PairsData,
        *,
        world: World | None = None,
        sharded: bool = False,
        listeners: Sequence[Listener] = (),
        sample: Callable[[Transformer], dict[str, Any]] = lambda _: {},
    ) -> None:
        """`sample(model)` is asked at each validation for more to tell: a score of outputs, an example."""
        self.folder, self.config, self.data = folder, config, data
        self.world = World(torch.device("cpu")) if world is None else world
        self.listeners, self.sample, self.sharded = list(listeners), sample, sharded
        if sharded and config.training.optimizer == "muon":
            raise ConfigError(
                "training.optimizer = muon works on whole matrices; leave out --shard, or take adamw"
            )
        if self.world.is_main:
            claim(folder, config)
            sweep(folder)
        self.world.wait()
        self.journal = Journal(folder / "journal.jsonl") if self.world.is_main else None
        self._issued, self._asked = deque[Issued](), False
        found = checkpoints(folder / CHECKPOINTS)
        self._build(found[-1] if found else None)
        self._clock = self.progress.seconds

    def train(self) -> str:
        """Train until a limit is reached or somebody asks to stop; says which."""
        self.objective.train()
        training = self.config.training
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

    def reason_to_stop(self) -> str | None:
        """The limit that is reached, in words; None while there is none."""
        return reason_to_stop(self.config.training, self.progress, self.stream.epochs)

    @property
    def share_done(self) -> float:
        """How much of the run is behind, by the limit that comes first."""
        return share_done(self.config.training, self.progress, self.stream.epochs)

    # --- setting up ---------------------------------------------------------------------------------------

    def _build(self, checkpoint: Path | None) -> None:
        """The model and what belongs to it, with weights drawn from the seed, or a checkpoint's."""
        training, world = self.config.training, self.world
        # The size of the vocabulary is the data's: it may have fewer subwords than were asked for.
        model_config = replace(self.config.model, vocab_size=self.data.train.facts.vocab_size)
        torch.manual_seed(training.seed)
        self.model = Transformer(model_config).to(world.device)
        compiled = world.device.type == "cuda" and not self.sharded
        self.objective = Objective(self.model, training.label_smoothing, compiled=compiled)
        if self.sharded:
            shard(self.objective, self.model, world)
        self.optimizer = Optimizer(self.model, training)
        decay = training.ema_decay
        moments, state = ({}, {}) if checkpoint is None else read_checkpoint(checkpoint, self.model)
        self.average = MovingAverage(self.model, decay) if decay else None
        if self.average is not None and checkpoint is not None:
            for name, weight in self.average.weights.items():
                weight.copy_(like(moments.pop(AVERAGE + name), weight))
        set_generators(moments, world, training.seed)
        if checkpoint is not None:
            self.optimizer.restore(self.model, moments)
        self.progress = Progress(**state.get("progress", {}))
        self.model.compute_dtype = getattr(torch, state.get("precision") or choose_precision(training, world))
        self._open_stream(state)

    def _open_stream(self, state: dict[str, Any]) -> None:
        training, world, train = self.config.training, self.world, self.data.train
        # Batches of fixed size are what a compiled step wants. A run keeps to the kind that it began with.
        fixed = state.get("fixed", self.objective.compiled)
        if fixed:
            self.budget = Budget.balanced(train, training.batch_tokens, PAIRS_EXTRA, fixed=True)
        else:
            self.budget = Budget(tokens=(training.batch_tokens,) * 2, extra=PAIRS_EXTRA)
        self.budget.check(train)
        self.sharing = Sharing(
            bos=self.data.bos,
            eos=self.data.eos,
            budget=self.budget,
            longest=tuple(side.longest for side in train.facts.sides),
            rank=world.rank,
            world_size=world.size,
        )
        if not self.progress.parts or state.get("world_size") != world.size:
            self.progress.parts = self._parts()
        if self.journal is not None:
            self.journal.cut(state.get("journal", 0))
        self.stream = BatchStream(
            train, self._turn, budget=self.budget, seed=training.seed, state=state.get("stream")
        )

    def _parts(self) -> int:
        """Parts that this process takes its share of a step in: as asked for, or as memory demands."""
        training, model = self.config.training, self.model
        if training.accumulate:
            return training.accumulate
        share = -(-training.batch_tokens // self.world.size)
        return parts_that_fit(model.config, model.n_parameters, model.compute_dtype, share, self.world.device)

    def _turn(self, store: Store, indices: np.ndarray) -> Turn:
        return self.sharing.turn(store, indices, self.progress.parts)

    # --- a step -------------------------------------------------------------------------------------------

    def _step(self, asked: bool) -> None:
        """Give a step to the device. One that does not fit into memory is taken again in smaller parts."""
        training, step = self.config.training, self.progress.step + 1
        turn = next(self.stream)
        rate = learning_rate(training, self.config.model.d_model, step)
        seconds = self._clock if self.world.is_main else 0.0
        while True:
            if turn.asked_parts != self.progress.parts:
                turn = self._turn(turn.store, turn.indices)
            try:
                outcome = train_step(
                    self.objective,
                    self.optimizer,
                    turn.batches,
                    turn.n_tokens,
                    rate,
                    training,
                    self.world,
                    asked=asked,
                    seconds=seconds,
                )
                break
            except torch.OutOfMemoryError as error:
                self._cut_up(turn, error)
        self.progress.step = step
        if self.average is not None:
            self.average.update(self.model, step)
        self._issued.append(Issued(step, rate, outcome))

    def _cut_up(self, turn: Turn, error: torch.OutOfMemoryError) -> None:
        """Take steps in twice as many parts from here on; where no part can be cut, say what would help."""
        self.optimizer.zero_grad()
        if self.world.device.type == "cuda":
            torch.cuda.empty_cache()
        if self.sharded or turn.n_parts < self.progress.parts:
            advice = "lower training.batch_tokens or model.max_length, or take a smaller model"
            raise RegardError(f"out of memory, and the step cannot be cut up further; {advice}") from error
        self.progress.parts *= 2
        self._tell({"said": f"out of memory: a step is taken in {self.progress.parts} parts from here on"})

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
                    "tokens": score.n_tokens,
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
        with self._averaged():
            facts = self._measure()
            more = {} if self.sharded or not self.world.is_main else self.sample(self.model)
            better = facts["valid_loss"] < progress.best_loss
            if better:
                progress.best_loss, progress.best_step = facts["valid_loss"], progress.step
                self._save("best", facts)
        progress.stale = 0 if better else progress.stale + 1
        self._tell({"step": progress.step, **facts, **more})

    def _measure(self) -> dict[str, float]:
        """Loss and accuracy on the validation set. All processes do the same; the first one's word counts."""
        device, valid = self.world.device, self.data.valid
        budget = Budget(tokens=(self.config.training.batch_tokens,) * 2, extra=PAIRS_EXTRA)
        made = (
            make_pairs_batch(valid, indices, bos=self.data.bos, eos=self.data.eos)
            for indices in one_pass(valid, budget)
        )
        score = self.world.gather(evaluate(self.objective, made, device))[0]
        return {"valid_loss": score.loss, "valid_accuracy": score.accuracy}

    def _averaged(self) -> AbstractContextManager[None]:
        """The model as it is published: with the moving average for its weights, if there is one."""
        return nullcontext() if self.average is None else with_weights(self.model, self.average.weights)

    def _leave(self, reason: str | None) -> str:
        """At the end a last validation and the last model; when asked to stop, a checkpoint to go on from."""
        self._settle()
        if reason is not None and self.progress.validated < self.progress.step:
            self._validate()
        done = [int(place.name.removeprefix("step-")) for place in checkpoints(self.folder / CHECKPOINTS)]
        if self.progress.step not in done:
            self._checkpoint()
        if reason is None:
            return ASKED_TO_STOP
        with self._averaged():
            self._save("last", {})
        self._average_checkpoints()
        return reason

    def _average_checkpoints(self) -> None:
        """The mean of the last checkpoints is the best model, if it is better than the best so far (6.1)."""
        places = checkpoints(self.folder / CHECKPOINTS)[-self.config.training.average_checkpoints :]
        if len(places) < 2 or self.config.training.average_checkpoints < 2:
            return
        with with_weights(self.model, mean_of(places)):
            facts = {"averaged": len(places), **self._measure()}
            if facts["valid_loss"] < self.progress.best_loss:
                self._save("best", facts)
        self._tell({"step": self.progress.step, **facts})

    def _save(self, name: str, metrics: dict[str, Any]) -> None:
        weights = whole_weights(self.model)
        if self.world.is_main:
            save_bundle(
                self.folder / name,
                fill(undrawn(self.model.config), weights, "cpu"),
                subwords=self.data.subwords,
                metrics={"step": self.progress.step, **metrics},
                decoding=self.config.decoding,
                task=self.config.task,
                overwrite=True,
            )
        self.world.wait()

    def _checkpoint(self) -> None:
        self._settle()
        weights, moments = whole_weights(self.model), self._moments()
        if self.journal is not None:
            state = {
                "progress": asdict(self.progress),
                "stream": self.stream.state(),
                "journal": self.journal.length(),
                "precision": str(self.model.compute_dtype).removeprefix("torch."),
                "fixed": self.budget.fixed,
                "world_size": self.world.size,
            }
            folder = self.folder / CHECKPOINTS
            write_checkpoint(folder, weights, moments, self.progress.step, state)
            prune(folder, max(KEPT, self.config.training.average_checkpoints))
        self.world.wait()

    def _moments(self) -> dict[str, Tensor]:
        """The optimizer, the moving average and every process's generators, whole."""
        average = {} if self.average is None else self.average.weights
        named = {AVERAGE + name: weight for name, weight in average.items()}
        return {**on_host({**self.optimizer.moments(self.model), **named}), **generators(self.world)}

    def _tell(self, event: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.write(**event)
            for listener in self.listeners:
                listener(event)


def choose_precision(config: TrainingConfig, world: World) -> str:
    """What activations are computed in."""
    if config.precision != "auto":
        return config.precision
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    if world.device.type == "cuda":
        fast = torch.cuda.is_bf16_supported
    return "bfloat16" if fast() else "float32"
