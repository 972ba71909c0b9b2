"""The learner: a model with its objective and optimizer; one step of it; the average of its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.bundle.weights import empty_model, load_tensors
from regard.config import ModelConfig, TrainingConfig, registries
from regard.data.batches.examples import Batch
from regard.data.batches.stream import StepBatches
from regard.errors import ConfigError, RegardError
from regard.model.build import build
from regard.model.fast.kernels import has_fixed_shapes
from regard.tasks.task import Lesson, LossSums
from regard.training.checkpoints.averaging import MovingAverage, with_weights
from regard.training.checkpoints.checkpoint import (
    generators,
    on_host,
    read_checkpoint,
    set_generators,
    whole_weights,
)
from regard.training.distributed.sharding import cut_up_again, is_sharded, like, shard, whole
from regard.training.distributed.world import World
from regard.training.optimizers.optimizer import Optimizer
from regard.training.starting import Start

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
    if world.device.type == "mps":
        return "float32"
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    if world.device.type == "cuda":
        fast = torch.cuda.is_bf16_supported
    return "bfloat16" if fast() else "float32"


@dataclass(frozen=True, eq=False, slots=True)
class StepOutcome:
    """The result of a step, perhaps still on its way from the device."""

    numbers: Tensor
    """`[smoothed_sum, nll_sum, n_correct, n_stop_requests, rank0_seconds, grad_norm]`"""
    n_targets: int
    ready: torch.cuda.Event | None

    def read(self) -> tuple[LossSums, bool, float, float]:
        """The sums, whether a process was asked to stop, the clock, the gradient's norm; waits for them."""
        if self.ready is not None:
            self.ready.synchronize()
        smoothed, nll, correct, interrupted, seconds, norm = self.numbers.tolist()
        return LossSums(smoothed, nll, correct, self.n_targets), interrupted > 0, seconds, norm


def train_step(
    objective: nn.Module,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    n_targets: int,
    rate: float,
    config: TrainingConfig,
    world: World,
    *,
    interrupted: bool = False,
    seconds: float = 0.0,
) -> StepOutcome:
    """One update from batches that count as one: the mean is over `n_targets`, those of all processes.

    A gradient that is not finite changes nothing; the host does not wait to know. Whether this process was
    `interrupted`, and the `seconds` on its clock, are summed with the loss, so that all processes know them.
    """
    weights = list(objective.parameters())
    sums = torch.tensor([0.0, 0.0, 0.0, interrupted, seconds]).to(world.device)
    for batch in batches:
        smoothed, reported = objective(batch.to(world.device))
        # Sharded gradients are a mean over processes, so each divides by its share of the targets.
        share = n_targets / world.size if is_sharded(weights[0]) else n_targets
        (smoothed / share).backward()
        sums[:3] += reported
    with _no_retry():
        if not is_sharded(weights[0]):
            world.sum_gradients(weights)
        # Departure 12, where there is a limit.
        norm = whole(nn.utils.clip_grad_norm_(weights, config.clip_norm or torch.inf))
        _update(optimizer, rate, norm, sharded=is_sharded(weights[0]))
        optimizer.zero_grad()
        return _to_host(torch.cat([world.sum(sums), norm.float()[None]]), n_targets)


@contextmanager
def _no_retry() -> Iterator[None]:
    """Report running out of memory: once weights change, the step cannot be repeated in smaller parts."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise RegardError(
            "out of memory while updating the weights; use a smaller model, or shard it over processes",
            code="out_of_memory",
        ) from error


def _update(optimizer: Optimizer, rate: float, norm: Tensor, *, sharded: bool) -> None:
    if not sharded:
        optimizer.step(rate, (~torch.isfinite(norm)).float())
    elif bool(torch.isfinite(norm)):  # fused kernels cannot mix shards and a whole tensor
        optimizer.step(rate, None)


def _to_host(numbers: Tensor, n_targets: int) -> StepOutcome:
    if numbers.device.type != "cuda":
        return StepOutcome(numbers, n_targets, None)
    on_host = numbers.to("cpu", non_blocking=True)
    ready = torch.cuda.Event()
    ready.record()
    return StepOutcome(on_host, n_targets, ready)


@torch.no_grad()
def evaluate(objective: nn.Module, batches: Iterable[Batch], device: torch.device) -> LossSums:
    """The sums of held-out batches, without dropout and smoothing."""
    was_training, n_targets, sums = objective.training, 0, torch.zeros(3, dtype=torch.float64)
    objective.eval()
    for batch in batches:
        sums += objective(batch.to(device))[1].cpu().double()
        n_targets += batch.n_targets
    objective.train(was_training)
    cut_up_again(objective)
    smoothed, nll, correct = sums.tolist()
    return LossSums(smoothed, nll, correct, n_targets)
