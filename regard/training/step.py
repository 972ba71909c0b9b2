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
from regard.training.distributed.sharding import cut_up_again, is_sharded, whole
from regard.training.distributed.world import World
from regard.training.optimizers.optimizer import Optimizer


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over targets, tokens or labels, of a step or of a validation set."""

    smoothed: float
    nll: float
    correct: float
    n_targets: int

    @property
    def loss(self) -> float:
        """Negative log-likelihood of a target."""
        return self.nll / self.n_targets

    @property
    def accuracy(self) -> float:
        """Share of targets that were the likeliest."""
        return self.correct / self.n_targets


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """What came of a step, still on its way from the device."""

    numbers: Tensor
    """Smoothed loss, likelihood and hits, how many were asked to stop, the first one's clock; the norm."""
    n_targets: int
    ready: torch.cuda.Event | None

    def read(self) -> tuple[Score, bool, float, float]:
        """The score, whether somebody asked to stop, the clock, the gradient's norm; waits for them."""
        if self.ready is not None:
            self.ready.synchronize()
        smoothed, nll, correct, asked, seconds, norm = self.numbers.tolist()
        return Score(smoothed, nll, correct, self.n_targets), asked > 0, seconds, norm


def train_step(
    objective: nn.Module,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    n_targets: int,
    rate: float,
    config: TrainingConfig,
    world: World,
    *,
    asked: bool = False,
    seconds: float = 0.0,
) -> Outcome:
    """One update from batches that count as one: the mean is over `n_targets`, those of all processes.

    Where the gradient is no number, nothing changes. The host does not wait to learn it. Whether this process
    was `asked` to stop, and the `seconds` on its clock, are summed with the loss: so all learn it in step.
    """
    weights = list(objective.parameters())
    sums = torch.tensor([0.0, 0.0, 0.0, asked, seconds]).to(world.device)
    for batch in batches:
        smoothed, told = objective(batch.to(world.device))
        # Sharded gradients come as a mean over processes, which each count the targets of all of them.
        share = n_targets / world.size if is_sharded(weights[0]) else n_targets
        (smoothed / share).backward()
        sums[:3] += told
    with _not_again():
        if not is_sharded(weights[0]):
            world.sum_gradients(weights)
        # Departure 12, where there is a limit.
        norm = whole(nn.utils.clip_grad_norm_(weights, config.clip_norm or torch.inf))
        _update(optimizer, rate, norm, sharded=is_sharded(weights[0]))
        optimizer.zero_grad()
        return _on_its_way(torch.cat([world.sum(sums), norm.float()[None]]), n_targets)


@contextmanager
def _not_again() -> Iterator[None]:
    """Out of memory, a step may be taken again, but not once processes and weights have begun to move."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        advice = "take a smaller model, or share its weights out among several processes"
        raise RegardError(f"out of memory: no room to update the weights; {advice}") from error


def _update(optimizer: Optimizer, rate: float, norm: Tensor, *, sharded: bool) -> None:
    if not sharded:
        optimizer.step(rate, (~torch.isfinite(norm)).float())
    elif bool(torch.isfinite(norm)):  # parts of weights cannot meet a whole number in one kernel
        optimizer.step(rate, None)


def _on_its_way(numbers: Tensor, n_targets: int) -> Outcome:
    if numbers.device.type != "cuda":
        return Outcome(numbers, n_targets, None)
    on_host = numbers.to("cpu", non_blocking=True)
    ready = torch.cuda.Event()
    ready.record()
    return Outcome(on_host, n_targets, ready)


@torch.no_grad()
def evaluate(objective: nn.Module, batches: Iterable[Batch], device: torch.device) -> Score:
    """The score of held-out batches, without dropout and smoothing."""
    was_training, n_targets, sums = objective.training, 0, torch.zeros(3, dtype=torch.float64)
    objective.eval()
    for batch in batches:
        sums += objective(batch.to(device))[1].double().cpu()
        n_targets += batch.n_targets
    objective.train(was_training)
    cut_up_again(objective)
    smoothed, nll, correct = sums.tolist()
    return Score(smoothed, nll, correct, n_targets)
