"""Small models for experiments: toy tasks to learn, a training loop, and the cost of a computation.

Training pairs are drawn by the program without end, so nothing can be memorised.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import median
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import ModelConfig, TrainingConfig
from regard.data.batches.examples import PairsBatch
from regard.data.numerals import Pair as Numeral
from regard.data.numerals import SplitName, pairs
from regard.decode.constraints import Constraints
from regard.decode.walk import likeliest, walk
from regard.loss import label_smoothed_cross_entropy
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.tasks.task import LossSums
from regard.training.distributed.world import World
from regard.training.learner import evaluate, train_step
from regard.training.optimizers.optimizer import Optimizer
from regard.training.schedule import learning_rate

BOS, EOS = 0, 1
"""The tokens that begin and end an output; the ids of symbols follow."""

Pair = tuple[list[int], list[int]]
"""Ids of an input and of its output, without `BOS` and `EOS`."""


@dataclass(frozen=True, slots=True)
class ToyTask:
    """Pairs to train on, and pairs to test on."""

    name: str
    vocab_size: int
    draw: Callable[[Random, int], list[Pair]]
    """Draws n pairs to train on."""
    held_out: Callable[[int], list[Pair]]
    """The first n pairs to test on, always the same."""


def copying(lengths: tuple[int, int], symbols: int = 10) -> ToyTask:
    """Copy the input."""
    return _of_symbols("copying", lengths, symbols, lambda symbols: symbols)


def reversing(lengths: tuple[int, int], symbols: int = 10) -> ToyTask:
    """Reverse the input."""
    return _of_symbols("reversing", lengths, symbols, lambda symbols: symbols[::-1])


def sorting(lengths: tuple[int, int], symbols: int = 10) -> ToyTask:
    """Sort the input."""
    return _of_symbols("sorting", lengths, symbols, sorted)


def _of_symbols(
    name: str, lengths: tuple[int, int], symbols: int, output: Callable[[list[int]], list[int]]
) -> ToyTask:
    """Uniform symbols, of uniform length; a pair is hardly ever drawn twice."""

    def draw(random: Random, n: int) -> list[Pair]:
        inputs = [[2 + random.randrange(symbols) for _ in range(random.randint(*lengths))] for _ in range(n)]
        return [(source, output(source)) for source in inputs]

    return ToyTask(name, 2 + symbols, draw, lambda n: draw(Random(f"held out {lengths}"), n))


def numerals(largest: int = 9_999) -> ToyTask:
    """Translate Chinese sentences about numbers to English, character by character."""
    known = "".join(sorted({*"".join(_text(pair) for pair in _some("train", 4_000, 1, largest))}))
    ids = {character: 2 + place for place, character in enumerate(known)}

    def encoded(found: list[Numeral]) -> list[Pair]:
        # Sentences with a character that is missing in 4,000 samples are left out.
        found = [pair for pair in found if ids.keys() >= {*_text(pair)}]
        return [([ids[c] for c in pair.chinese], [ids[c] for c in pair.english]) for pair in found]

    def draw(random: Random, n: int) -> list[Pair]:
        return encoded(_some("train", n, random.randrange(2**31), largest))

    return ToyTask("numerals", 2 + len(known), draw, lambda n: encoded(_some("test", n, 1, largest)))


def _some(split: SplitName, n: int, seed: int, largest: int) -> list[Numeral]:
    stream = pairs(seed, split, largest=largest)
    return [next(stream) for _ in range(n)]


def _text(pair: Numeral) -> str:
    return pair.chinese + pair.english


log = logging.getLogger("regard.experiments")
"""Progress of an experiment; the command line shows it on a terminal."""

CPU = torch.device("cpu")


class ToyLearner(nn.Module):
    """A model with an encoder and a decoder, and its loss on a batch."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: PairsBatch) -> tuple[Tensor, Tensor]:
        """The loss to minimise; and loss, negative log-likelihood and correct tokens to report."""
        states_TD = self.model.decode(batch.outputs, self.model.encode(batch.inputs))
        weight_VD = self.model.output_probabilities.weight
        loss = label_smoothed_cross_entropy(states_TD, weight_VD, batch.targets_T)
        return loss.smoothed, torch.stack([part.detach() for part in loss])


def small_model(task: ToyTask, seed: int, **changes: Any) -> Transformer:
    """A Transformer of two layers that learns these tasks in seconds, with changed settings."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2}
    return Transformer(ModelConfig(**{"vocab_size": task.vocab_size, "dropout": 0.0, **sizes, **changes}))


def plan(steps: int, rate: float, warmup: int | None = None, clip: float = 1.0) -> TrainingConfig:
    """Warm-up over a tenth of the steps by default, then a cosine down to zero."""
    return TrainingConfig(
        max_steps=steps,
        schedule="cosine",
        learning_rate=rate,
        warmup_steps=warmup or max(1, steps // 10),
        clip_norm=clip,
    )


def make_batch(pairs: Sequence[Pair]) -> PairsBatch:
    """A batch: inputs end with EOS, outputs begin with BOS, targets end with EOS."""
    inputs = pack([[*source, EOS] for source, _ in pairs])
    outputs = pack([[BOS, *target] for _, target in pairs])
    targets_T = torch.tensor([token for _, target in pairs for token in (*target, EOS)])
    return PairsBatch(inputs, outputs, targets_T, None, (inputs.boundaries.n_tokens, len(targets_T)))


def train(
    model: nn.Module,
    task: ToyTask,
    config: TrainingConfig,
    seed: int,
    *,
    batch: int = 64,
    after: Callable[[int], None] = lambda _: None,
) -> list[float]:
    """Train a model on a task; returns the loss of every step, in nats per token.

    Args:
        model: has `encode`, `decode` and `output_probabilities`.
        task: what to learn.
        config: see `plan`.
        seed: of the pairs; the caller draws the weights.
        batch: pairs per step.
        after: called after every step with its number.
    """
    learner, optimizer, world, random = ToyLearner(model), Optimizer(model, config), World(CPU), Random(seed)
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


def score(model: nn.Module, pairs: Sequence[Pair]) -> LossSums:
    """Loss and accuracy with teacher forcing."""
    learner = ToyLearner(model).train(model.training)  # keeps the mode of the model
    return evaluate(learner, [make_batch(pairs)], CPU)


@torch.no_grad()
def exact(model: Any, pairs: Sequence[Pair]) -> float:
    """The share of outputs that cached greedy decoding gets entirely right."""
    inputs = pack([[*source, EOS] for source, _ in pairs])
    limits = tuple(len(target) + 2 for _, target in pairs)
    state = model.start(model.encode(inputs), capacity=max(limits))
    outputs = walk(model.step, state, Constraints(bos=BOS, eos=EOS, limits=limits), likeliest, alpha=0.0)
    right = [list(best.ids) == target for best, (_, target) in zip(outputs, pairs, strict=True)]
    return sum(right) / len(right)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread in the block: with small models, several mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def core_seconds(work: Callable[[], object]) -> float:
    """Processor time on one core: the median of three runs, after one to warm up."""
    taken = []
    with one_thread():
        for _ in range(4):
            start = process_time()
            work()
            taken.append(process_time() - start)
    return median(taken[1:])


def kept_bytes(layer: nn.Module, x: Tensor) -> int:
    """Bytes that a layer keeps for its backward pass, besides its weights and its input."""
    others = {tensor.untyped_storage().data_ptr() for tensor in (x, *layer.parameters())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in others:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer(x)
    assert output.requires_grad, "the graph is alive until here, so no memory is counted twice"
    return sum(kept.values())


def crossing(x: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """Where `one` exceeds `other` for good, interpolated in logarithms; None if nowhere."""
    apart = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    places = [i for i, (before, after) in enumerate(pairwise(apart)) if before <= 0 < after]
    if not places or min(apart[places[-1] + 1 :]) <= 0:
        return None
    at = places[-1]
    share = apart[at] / (apart[at] - apart[at + 1])
    return math.exp(math.log(x[at]) + share * (math.log(x[at + 1]) - math.log(x[at])))
