"""Loss by number of layers, with the norm after or before the sub-layers, and the effect of warm-up (5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import get_args

from regard.config import NormPosition
from regard.experiments.experiment import (
    LOSS_LABEL,
    Both,
    Chart,
    Experiment,
    Findings,
    Judgement,
    Line,
    PerSeed,
    ResultTable,
    Size,
    reversing_for,
)
from regard.experiments.small_models import ToyLearner, make_batch, plan, reversing, score, small_model, train

CLAIM = Both(
    "More layers learn more. Deep post-norm models want warm-up, since their last layers start with large "
    "gradients; pre-norm ones do without.",
    "层数越多学得越好。深的后归一化模型需要预热，因为最后几层开始时梯度很大；前归一化模型不需要。",
)

NORMS: tuple[NormPosition, ...] = get_args(NormPosition)
NAMES: dict[NormPosition, Both] = {
    "post": Both("post-norm", "后归一化"),
    "pre": Both("pre-norm", "前归一化"),
}
LAYERS = Both("layers of encoder and of decoder", "编码器和解码器各有的层数")
GRADIENT = Both("untrained: gradient of the decoder's last layer", "未训练：解码器最后一层的梯度")
RATE = 2e-3


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    layers: tuple[int, ...] = (1, 2, 5)
    untrained: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Layers of the models whose gradients are measured before training."""
    pairs: int = 100

    @property
    def warmup(self) -> int:
        """A third of the steps."""
        return max(2, self.steps // 3)


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=6, layers=(1, 2), untrained=(1, 8), pairs=10),
    "normal": _Setup(steps=150),
    "long": _Setup(steps=1000, layers=(1, 2, 4, 6, 12)),
}

Losses = dict[tuple[NormPosition, int], PerSeed]


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Gradients of untrained models; then training at each depth, at the greatest also without warm-up."""
    setup = SETUP[size]
    deepest = setup.layers[-1]
    gradients = {
        (norm, layers): PerSeed.of(_gradient(norm, layers, seed) for seed in seeds)
        for norm in NORMS
        for layers in setup.untrained
    }
    losses = {
        (norm, layers): PerSeed.of(_learned(norm, layers, setup, setup.warmup, seed) for seed in seeds)
        for norm in NORMS
        for layers in setup.layers
    }
    cold = {norm: PerSeed.of(_learned(norm, deepest, setup, 1, seed) for seed in seeds) for norm in NORMS}
    learned = reversing_for(setup.steps)
    tables = (
        ResultTable(
            GRADIENT,
            (LAYERS, *map(str, setup.untrained)),
            tuple((NAMES[norm], *(gradients[norm, n] for n in setup.untrained)) for norm in NORMS),
        ),
        ResultTable(
            Both(
                f"{learned.en}, {setup.warmup} of them warm-up: {LOSS_LABEL.en}",
                f"{learned.zh}，其中预热 {setup.warmup} 步：{LOSS_LABEL.zh}",
            ),
            (LAYERS, *map(str, setup.layers), Both(f"{deepest}, no warm-up", f"{deepest}，无预热")),
            tuple((NAMES[norm], *(losses[norm, n] for n in setup.layers), cold[norm]) for norm in NORMS),
        ),
    )
    charts = (
        _chart(LOSS_LABEL, losses, setup.layers),
        _chart(GRADIENT, gradients, setup.untrained),
        Chart(
            Both(f"{deepest} layers: {LOSS_LABEL.en}", f"{deepest} 层：{LOSS_LABEL.zh}"),
            Both("steps of warm-up", "预热步数"),
            tuple(
                Line(NAMES[norm], (1, setup.warmup), (cold[norm], losses[norm, deepest])) for norm in NORMS
            ),
        ),
    )
    return Findings(tables, charts, _verdict(setup, gradients, losses, cold))


def _gradient(norm: NormPosition, layers: int, seed: int) -> float:
    """Norm of the gradient with respect to the second matrix of the decoder's last feed-forward block."""
    task = reversing((5, 12))
    model = small_model(task, seed, norm_position=norm, encoder_layers=layers, decoder_layers=layers)
    batch = make_batch(task.draw(Random(seed), 32))
    (ToyLearner(model)(batch)[0] / batch.n_targets).backward()
    gradient = model.get_parameter(f"decoder.layers.{layers - 1}.feed_forward.narrow.weight").grad
    assert gradient is not None, "a backward pass reaches every weight"
    return float(gradient.norm())


def _learned(norm: NormPosition, layers: int, setup: _Setup, warmup: int, seed: int) -> float:
    """Held-out loss of a model trained to reverse."""
    task = reversing((5, 12))
    model = small_model(task, seed, norm_position=norm, encoder_layers=layers, decoder_layers=layers)
    train(model, task, plan(setup.steps, RATE, warmup), seed, batch=32)
    return score(model, task.held_out(setup.pairs)).loss


def _chart(name: Both, numbers: Losses, layers: Sequence[int]) -> Chart:
    lines = tuple(Line(NAMES[norm], layers, [numbers[norm, n] for n in layers]) for norm in NORMS)
    return Chart(name, LAYERS, lines, log_x=True)


def _verdict(
    setup: _Setup, gradients: Losses, losses: Losses, cold: dict[NormPosition, PerSeed]
) -> tuple[Judgement, ...]:
    few, deep, deepest = setup.layers[0], setup.layers[-1], setup.untrained[-1]
    post, pre = losses["post", deep], losses["pre", deep]
    deeper = {norm: losses[norm, deep].below(losses[norm, few]) for norm in NORMS}
    steep, flat = gradients["post", deepest], gradients["pre", deepest]
    worse = {norm: cold[norm].mean - losses[norm, deep].mean for norm in NORMS}
    return (
        Judgement(
            all(deeper.values()),
            Both(
                f"{deep} layers learn more than {few}, for every seed: loss {pre.mean:.3f} against "
                f"{losses['pre', few].mean:.3f} (pre-norm), {post.mean:.3f} against "
                f"{losses['post', few].mean:.3f} (post-norm).",
                f"{deep} 层比 {few} 层学得更好，每个种子都如此：前归一化损失 {pre.mean:.3f} 对 "
                f"{losses['pre', few].mean:.3f}，后归一化 {post.mean:.3f} 对 "
                f"{losses['post', few].mean:.3f}。",
            ),
        ),
        Judgement(
            flat.below(steep),
            Both(
                f"Before training, the last of {deepest} layers has a larger gradient with post-norm: "
                f"{steep.mean:.3f} against {flat.mean:.3f}.",
                f"训练之前，{deepest} 层中的最后一层在后归一化下梯度更大：{steep.mean:.3f} 对 "
                f"{flat.mean:.3f}。",
            ),
        ),
        Judgement(
            losses["post", deep].below(cold["post"]) and worse["post"] > worse["pre"],
            Both(
                f"Post-norm wants warm-up more than pre-norm does: without it the loss of {deep} layers "
                f"changes by {worse['post']:+.3f} with post-norm and by {worse['pre']:+.3f} with pre-norm.",
                f"后归一化比前归一化更需要预热：没有预热，{deep} 层时后归一化的损失变化 "
                f"{worse['post']:+.3f}，前归一化 {worse['pre']:+.3f}。",
            ),
        ),
    )


EXPERIMENT = Experiment("depth", CLAIM, run)
