"""The learner: a model with its objective, its optimizer, and the moving average of its weights."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from regard.bundle.weights import empty_model, load_tensors
from regard.config import ModelConfig, TrainingConfig, registries
from regard.data.batches.examples import Batch
from regard.errors import ConfigError
from regard.model.build import build
from regard.model.fast.kernels import has_fixed_shapes
from regard.tasks.task import Lesson
from regard.training.checkpoints.averaging import MovingAverage, with_weights
from regard.training.checkpoints.checkpoint import (
    generators,
    on_host,
    read_checkpoint,
    set_generators,
    whole_weights,
)
from regard.training.distributed.sharding import like, shard
from regard.training.distributed.world import World
from regard.training.optimizers.optimizer import Optimizer
from regard.training.parts import StepBatches
from regard.training.starting import Start
from regard.training.step import StepOutcome, evaluate, train_step

if TYPE_CHECKING:
    from regard.bundle.weights import Model

AVERAGE = "average."
"""Prefix of the moving average's weights in a checkpoint."""


class Learner:
    """A model that is trained on this process's device, in step with the other processes."""

    def __init__(
        self,
        model: ModelConfig,
        lesson: Lesson,
        training: TrainingConfig,
        world: World,
        *,
        sharded: bool,
        start: Start | None = None,
    ) -> None:
        self.training, self.world, self.sharded = training, world, sharded
        torch.manual_seed(training.seed)
        self.model: Model = build(model).to(world.device)
        if start is not None:
            start.give(self.model, lesson.labels)
        self.model.compute_dtype = getattr(torch, choose_precision(training, world))
        on_gpu = world.device.type == "cuda"
        compiled = training.compile and on_gpu and not sharded and lesson.compiles
        compiled = compiled and has_fixed_shapes(model, "compiled steps")
        self.objective = lesson.objective(self.model, training, compiled=compiled).train()
        self.compiled = compiled
        """Whether steps need batches of fixed size."""
        self.lesson = lesson
        if sharded:
            shard(self.objective, self.model, world)
        self.optimizer = Optimizer(self.model, training)
        # Departure 13, where there is a decay.
        self.average = MovingAverage(self.model, training.ema_decay) if training.ema_decay else None
        set_generators({}, world, training.seed)

    def restore(self, checkpoint: Path) -> dict[str, Any]:
        """Continue from a checkpoint; returns the state of the run that is stored with it."""
        moments, state = read_checkpoint(checkpoint, self.model)
        if self.average is not None:
            for name, weight in self.average.weights.items():
                weight.copy_(like(moments.pop(AVERAGE + name), weight))
        set_generators(moments, self.world, self.training.seed)
        self.optimizer.restore(self.model, moments)
        self.model.compute_dtype = getattr(torch, state["precision"])
        return state

    def moments(self) -> dict[str, Tensor]:
        """What `restore` needs beside the weights, as whole tensors; every process must call it."""
        average = {} if self.average is None else self.average.weights
        named = {AVERAGE + name: weight for name, weight in average.items()}
        return {**on_host({**self.optimizer.moments(self.model), **named}), **generators(self.world)}

    @property
    def precision(self) -> str:
        """The data type of activations, by name."""
        return str(self.model.compute_dtype).removeprefix("torch.")

    def step(
        self, batches: StepBatches, rate: float, number: int, *, interrupted: bool, seconds: float
    ) -> StepOutcome:
        """Take one step; see `train_step`."""
        outcome = train_step(
            self.objective,
            self.optimizer,
            batches.batches,
            batches.n_targets,
            rate,
            self.training,
            self.world,
            interrupted=interrupted,
            seconds=seconds,
        )
        if self.average is not None:
            self.average.update(self.model, number)
        return outcome

    def compile_only_if(self, fixed: bool) -> None:
        """Compile nothing in a run that began with batches of free size."""
        if self.lesson.compiles:
            objective: Any = self.objective
            objective.compiled = objective.compiled and fixed

    def forget_gradients(self) -> None:
        """Clear the gradients of a step that failed."""
        self.optimizer.zero_grad()
        if self.world.device.type == "cuda":
            torch.cuda.empty_cache()

    def published(self) -> AbstractContextManager[None]:
        """The model as it is validated and saved: with the moving average for weights, if there is one."""
        return nullcontext() if self.average is None else with_weights(self.model, self.average.weights)

    def measure(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Loss and accuracy on held-out batches. All processes compute it; the result of the first counts."""
        score = self.world.gather(evaluate(self.objective, batches, self.world.device))[0]
        facts = self.lesson.facts(score)
        return {"valid_loss": score.loss, "valid_accuracy": score.accuracy, **facts}

    def copy(self) -> Model | None:
        """The model with whole weights, on the first process; every process must call it."""
        weights = whole_weights(self.model)
        if not self.world.is_main:
            return None
        return load_tensors(empty_model(self.model.config), weights, "cpu")


def refuse_clash(training: TrainingConfig, *, sharded: bool) -> None:
    """Raise where weights cannot be sharded: in a single process, or if the optimizer needs them whole."""
    if sharded and getattr(registries.optimizers[training.optimizer], "needs_whole_matrices", False):
        clash = f"training.optimizer = {training.optimizer} works on whole matrices"
        raise ConfigError(f"{clash}; leave out `shard`, or use adamw", code="cannot_shard")
    if sharded and not dist.is_initialized():
        raise ConfigError(
            "`shard` divides the weights among processes, but there is only one; start it with torchrun",
            code="cannot_shard",
        )


def choose_precision(config: TrainingConfig, world: World) -> str:
    """The data type of activations."""
    if config.precision != "auto":
        return config.precision
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    if world.device.type == "cuda":
        fast = torch.cuda.is_bf16_supported
    return "bfloat16" if fast() else "float32"
