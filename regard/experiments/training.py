"""A small training loop over packed batches, with the package's loss, optimizer and schedule."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import ModelConfig, TrainingConfig
from regard.data.batches.examples import PairsBatch
from regard.decode.constraints import Constraints
from regard.decode.walk import likeliest, walk
from regard.experiments.tasks import BOS, EOS, Pair, Task
from regard.loss import label_smoothed_cross_entropy
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.training.distributed.world import World
from regard.training.optimizers.optimizer import Optimizer
from regard.training.schedule import learning_rate
from regard.training.step import Score, evaluate, train_step

log = logging.getLogger("regard.experiments")
"""Tells how far an experiment is; the command line shows it on a terminal."""

CPU = torch.device("cpu")


class Learner(nn.Module):
    """A model with an encoder and a decoder, ours or another, and how wrong it is on a batch."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: PairsBatch) -> tuple[Tensor, Tensor]:
        """What is minimised; and loss, likelihood and hits to be told."""
        states_TD = self.model.decode(batch.outputs, self.model.encode(batch.inputs))
        weight_VD = self.model.output_probabilities.weight
        loss = label_smoothed_cross_entropy(states_TD, weight_VD, batch.targets_T)
        return loss.smoothed, torch.stack([part.detach() for part in loss])


def small_model(task: Task, seed: int, **changes: Any) -> Transformer:
    """A Transformer of two layers that learns such tasks in seconds, with some settings changed."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2}
    return Transformer(ModelConfig(**{"vocab_size": task.vocab_size, "dropout": 0.0, **sizes, **changes}))


def plan(steps: int, rate: float, warmup: int | None = None, clip: float = 1.0) -> TrainingConfig:
    """Up in a tenth of the steps, or as told, then down to nothing along a cosine."""
    return TrainingConfig(
        max_steps=steps,
        schedule="cosine",
        learning_rate=rate,
        warmup_steps=warmup or max(1, steps // 10),
        clip_norm=clip,
    )


def make_batch(pairs: Sequence[Pair]) -> PairsBatch:
    """Pairs as a model takes them: inputs end with EOS, outputs begin with BOS, targets end with EOS."""
    inputs = pack([[*source, EOS] for source, _ in pairs])
    outputs = pack([[BOS, *target] for _, target in pairs])
    targets_T = torch.tensor([token for _, target in pairs for token in (*target, EOS)])
    return PairsBatch(inputs, outputs, targets_T, None, (inputs.boundaries.n_tokens, len(targets_T)))


def train(
    model: nn.Module,
    task: Task,
    config: TrainingConfig,
    seed: int,
    *,
    batch: int = 64,
    after: Callable[[int], None] = lambda _: None,
) -> list[float]:
    """Teach a model a task; the loss of each step, in nats a token.

    Args:
        model: ours, or one that has `encode`, `decode` and `output_probabilities` too.
        task: what is learned.
        config: how, as `plan` makes it.
        seed: where the pairs come from; the weights are the caller's.
        batch: pairs of a step.
        after: called after each step with its number, to watch the model learn.
    """
    learner, optimizer, world, random = Learner(model), Optimizer(model, config), World(CPU), Random(seed)
    losses = []
    model.train()
    for step in range(1, config.max_steps + 1):
        drawn = make_batch(task.draw(random, batch))
        rate = learning_rate(config, 1, step)
        outcome = train_step(learner, optimizer, [drawn], drawn.n_targets, rate, config, world)
        losses.append(outcome.read()[0].loss)
        after(step)
    model.eval()
    log.info("%s, seed %d: loss %.3f after %d steps", task.name, seed, losses[-1], config.max_steps)
    return losses


def score(model: nn.Module, pairs: Sequence[Pair]) -> Score:
    """Loss and share of right tokens, each token predicted from those that should stand before it."""
    learner = Learner(model).train(model.training)  # it leaves the model as it was
    return evaluate(learner, [make_batch(pairs)], CPU)


@torch.no_grad()
def exact(model: Any, pairs: Sequence[Pair]) -> float:
    """The share of outputs that greedy decoding, with the cache, gets right to the last token."""
    inputs = pack([[*source, EOS] for source, _ in pairs])
    limits = tuple(len(target) + 2 for _, target in pairs)
    state = model.start(model.encode(inputs), capacity=max(limits))
    found = walk(model.step, state, Constraints(bos=BOS, eos=EOS, limits=limits), likeliest, alpha=0.0)
    right = [list(each.ids) == target for each, (_, target) in zip(found, pairs, strict=True)]
    return sum(right) / len(right)
