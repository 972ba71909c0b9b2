"""One step: forward, loss, backward, sum over processes, clip, update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.data.batches.examples import Batch
from regard.errors import RegardError
from regard.tasks.task import LossSums
from regard.training.distributed.sharding import cut_up_again, is_sharded, whole
from regard.training.distributed.world import World
from regard.training.optimizers.optimizer import Optimizer


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
        sums += objective(batch.to(device))[1].double().cpu()
        n_targets += batch.n_targets
    objective.train(was_training)
    cut_up_again(objective)
    smoothed, nll, correct = sums.tolist()
    return LossSums(smoothed, nll, correct, n_targets)
