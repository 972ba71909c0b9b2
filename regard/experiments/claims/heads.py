"""One head against many at equal cost (3.2.2; Table 3, row A); which heads matter, and how few suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

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
from regard.experiments.small_models import Pair, plan, reversing, score, small_model, train
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.tasks.task import LossSums

CLAIM = Both(
    "At equal cost many heads learn more than one. Few of them matter once they are trained: most can be "
    "removed.",
    "在同等开销下，多个头比一个头学得更多。训练之后只有少数头重要：大多数可以去掉。",
)

HEADS = Both("heads", "头数")
OF_LOSS = Both("loss", "损失")
ABLATED = 8
"""Heads per block of the model from which heads are removed."""
ENOUGH = 0.99
"""Heads suffice if they keep this share of the correct tokens."""


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    """Enough to learn the task: after 250, 10% of the tokens are wrong, and nearly every head matters."""
    heads: tuple[int, ...] = (1, 2, 8, 16)
    pairs: int = 100


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=15, heads=(1, 8), pairs=10),
    "normal": _Setup(steps=500),
    "long": _Setup(steps=1500, heads=(1, 2, 4, 8, 16, 32)),
}


@dataclass(frozen=True, slots=True)
class _Removed:
    """The effect of removing heads from one model."""

    alone: list[float]
    """Loss added by removing one head, largest first."""
    kept: list[float]
    """Share of correct tokens with only the k most important heads, for k from 0 to all."""
    by_block: dict[str, float]
    """Loss added by removing one head, mean over the heads of a block."""

    @property
    def enough(self) -> int:
        """The smallest number of heads that suffices."""
        return next(k for k, share in enumerate(self.kept) if share >= ENOUGH * self.kept[-1])


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Train models with each number of heads to reverse; then remove heads from those with eight."""
    setup, task = SETUP[size], reversing((4, 9))
    test_set = task.held_out(setup.pairs)
    scores: dict[int, list[LossSums]] = {}
    removed, weights = [], set()
    for heads in setup.heads:
        scores[heads] = []
        for seed in seeds:
            model = small_model(task, seed, n_heads=heads)
            train(model, task, plan(setup.steps, 3e-3), seed, batch=16)
            scores[heads].append(score(model, test_set))
            weights.add(model.n_parameters)
            if heads == ABLATED:
                removed.append(_remove(model, test_set))
    assert len(weights) == 1, "heads divide d_model, so their number does not change the model's size"
    losses = {heads: PerSeed.of(each.loss for each in found) for heads, found in scores.items()}
    accuracy = {heads: PerSeed.of(each.accuracy for each in found) for heads, found in scores.items()}
    learned, n_weights = reversing_for(setup.steps), weights.pop()
    tables = (
        ResultTable(
            Both(f"{learned.en}, {n_weights:,} weights", f"{learned.zh}，{n_weights:,} 个权重"),
            (HEADS, "d_k", LOSS_LABEL, Both("right tokens", "正确的词元")),
            tuple((heads, 64 // heads, losses[heads], accuracy[heads]) for heads in setup.heads),
        ),
        _removal_table(removed),
        _blocks_table(removed),
    )
    return Findings(tables, _charts(losses, removed), _verdict(losses, removed))


def _remove(model: Transformer, pairs: Sequence[Pair]) -> _Removed:
    """Remove each head alone; then all but the k most important."""
    paths = [path for path, _ in model.named_modules() if path.endswith("multi_head_attention")]
    heads = [(path, head) for path in paths for head in range(ABLATED)]
    whole = score(model, pairs).loss
    added = {head: _without(model, pairs, {head}).loss - whole for head in heads}
    order = sorted(heads, key=added.__getitem__, reverse=True)
    kept = [_without(model, pairs, set(order[k:])).accuracy for k in range(len(order) + 1)]
    by_block = {path: sum(added[path, head] for head in range(ABLATED)) / ABLATED for path in paths}
    return _Removed([added[head] for head in order], kept, by_block)


def _without(model: Transformer, pairs: Sequence[Pair], gone: set[tuple[str, int]]) -> LossSums:
    """The score of a model with the outputs of some heads set to zero."""

    def replace(address: str, value: Tensor) -> Tensor:
        path, _, name = address.rpartition(".")
        if name != "heads":
            return value
        stays = [(path, head) not in gone for head in range(ABLATED)]
        return value * torch.tensor(stays, dtype=value.dtype)[:, None]

    with recording(model, replace, keep=()):
        return score(model, pairs)


def _removal_table(removed: Sequence[_Removed]) -> ResultTable:
    n = len(removed[0].alone)
    return ResultTable(
        Both(
            f"{n} heads ({ABLATED} in each block) removed one at a time; then all but those missed most",
            f"逐个去掉 {n} 个头（每块 {ABLATED} 个）；然后只留下最不可或缺的",
        ),
        (
            Both("loss added, most missed head", "损失增加，最不可或缺的头"),
            Both("median head", "中位的头"),
            Both("heads missed by 0.01", "去掉后损失增加 0.01 的头"),
            Both("heads that suffice", "够用的头"),
        ),
        (
            (
                PerSeed.of(each.alone[0] for each in removed),
                PerSeed.of(each.alone[n // 2] for each in removed),
                PerSeed.of(sum(loss > 0.01 for loss in each.alone) for each in removed),
                PerSeed.of(each.enough for each in removed),
            ),
        ),
    )


def _blocks_table(removed: Sequence[_Removed]) -> ResultTable:
    return ResultTable(
        Both(
            "which heads matter: loss added by removing one, mean of a block",
            "哪些头重要：去掉一个头增加的损失，块内平均",
        ),
        (Both("block", "块"), OF_LOSS),
        tuple((path, PerSeed.of(each.by_block[path] for each in removed)) for path in removed[0].by_block),
    )


def _charts(losses: dict[int, PerSeed], removed: Sequence[_Removed]) -> tuple[Chart, ...]:
    n = len(removed[0].alone)
    alone = [PerSeed.of(each.alone[rank] for each in removed) for rank in range(n)]
    kept = [PerSeed.of(each.kept[k] for each in removed) for k in range(n + 1)]
    return (
        Chart(LOSS_LABEL, HEADS, (Line(OF_LOSS, list(losses), list(losses.values())),), log_x=True),
        Chart(
            Both("loss added by removing one head", "去掉一个头增加的损失"),
            Both("heads, the most missed first", "头，最不可或缺的在前"),
            (Line(OF_LOSS, range(1, n + 1), alone),),
        ),
        Chart(
            Both("right tokens with the heads missed most", "只留最不可或缺的头时正确的词元"),
            Both("heads kept", "留下的头"),
            (Line(Both("right", "正确"), range(n + 1), kept),),
        ),
    )


def _verdict(losses: dict[int, PerSeed], removed: Sequence[_Removed]) -> tuple[Judgement, ...]:
    one, many, n = losses[1], losses[ABLATED], len(removed[0].alone)
    missed = PerSeed.of(sum(loss > 0.01 for loss in each.alone) for each in removed)
    enough = PerSeed.of(each.enough for each in removed)
    best = min(losses, key=lambda heads: losses[heads].mean)
    better = sum(mine < others for mine, others in zip(many.values, one.values, strict=True))
    seeds = len(many.values)
    return (
        Judgement(
            many.below(one),
            Both(
                f"{ABLATED} heads learn more than one of the same cost, for every seed: loss {many.mean:.3f} "
                f"against {one.mean:.3f}, less for {better} of {seeds} seeds; {best} did best.",
                f"同等开销下 {ABLATED} 个头比一个头学得更多，每个种子都如此：损失 {many.mean:.3f} 对 "
                f"{one.mean:.3f}，{seeds} 个种子中有 {better} 个更低；最好的是 {best} 个头。",
            ),
        ),
        Judgement(
            missed.high < n / 2,
            Both(
                f"Fewer than half of the {n} heads are missed when they are removed alone: "
                f"{missed.low:.0f} to {missed.high:.0f} are.",
                f"逐个去掉时，{n} 个头中不可或缺的不到一半：{missed.low:.0f} 到 {missed.high:.0f} 个。",
            ),
        ),
        Judgement(
            enough.high < n / 2,
            Both(
                f"Fewer than half of the heads suffice, the others removed together: {enough.low:.0f} to "
                f"{enough.high:.0f} of {n} keep {ENOUGH:.0%} of the right tokens.",
                f"不到一半的头就够了，其余一起去掉：{n} 个中的 {enough.low:.0f} 到 {enough.high:.0f} 个"
                f"保住 {ENOUGH:.0%} 的正确词元。",
            ),
        ),
    )


EXPERIMENT = Experiment("heads", CLAIM, run)
