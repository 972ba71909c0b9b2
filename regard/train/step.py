"""One step: forward, loss, backward, clip, update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.data.batches import PairsBatch
from regard.errors import RegardError
from regard.loss import Loss, label_smoothed_cross_entropy
from regard.model.transformer import Transformer
from regard.train.optimizer import set_learning_rate


class DivergedError(RegardError):
    """The loss or its gradient is no longer a number; the step was not taken."""


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over target tokens, of a step or of a validation set."""

    smoothed: float
    nll: float
    correct: float
    n_tokens: int

    @property
    def loss(self) -> float:
        """Negative log-likelihood of a target token."""
        return self.nll / self.n_tokens

    @property
    def accuracy(self) -> float:
        """Share of target tokens that were the likeliest."""
        return self.correct / self.n_tokens


def batch_loss(model: Transformer, batch: PairsBatch, smoothing: float) -> Loss:
    """The loss of one batch, summed over its target tokens."""
    states_TD = model.decode(batch.outputs, model.encode(batch.inputs))
    weight_VD = model.output_probabilities.weight
    return label_smoothed_cross_entropy(
        states_TD, weight_VD, batch.targets_T, smoothing, counted_N=batch.counted_T
    )


def train_step(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[PairsBatch],
    rate: float,
    config: TrainingConfig,
) -> Score:
    """One update from one or several batches, which count as one: the mean is over all their tokens."""
    n_tokens = sum(batch.n_tokens[1] for batch in batches)
    sums: list[Tensor] = []
    for batch in batches:
        loss = batch_loss(model, batch, config.label_smoothing)
        (loss.smoothed / n_tokens).backward()
        sums.append(torch.stack([part.detach() for part in loss]))
    smoothed, nll, correct = torch.stack(sums).sum(dim=0).tolist()
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or torch.inf)
    if not torch.isfinite(norm):
        optimizer.zero_grad()
        what = f"the loss is {smoothed / n_tokens:.4g} and the gradient's norm {float(norm):.4g}"
        advice = (
            "train in another folder with a lower training.learning_rate or a longer training.warmup_steps"
        )
        raise DivergedError(f"{what}; {advice}")
    set_learning_rate(optimizer, rate)
    optimizer.step()
    optimizer.zero_grad()
    return Score(smoothed, nll, correct, n_tokens)


@torch.no_grad()
def evaluate(model: Transformer, batches: Iterable[PairsBatch]) -> Score:
    """The score of held-out batches, without dropout and smoothing."""
    was_training, n_tokens, sums = model.training, 0, torch.zeros(3)
    model.eval()
    for batch in batches:
        sums += torch.stack(list(batch_loss(model, batch, 0.0))).cpu()
        n_tokens += batch.n_tokens[1]
    model.train(was_training)
    smoothed, nll, correct = sums.tolist()
    return Score(smoothed, nll, correct, n_tokens)
