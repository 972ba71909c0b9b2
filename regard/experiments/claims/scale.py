"""The effect of dividing by √d_k on the softmax, and on learning (3.2.1, footnote 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.config import SimilarityName
from regard.experiments.experiment import (
    LOSS_LABEL,
    SIMILARITIES,
    SIMILARITY,
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
from regard.experiments.small_models import plan, reversing, score, small_model, train
from regard.model.scaled_dot_product_attention import attention_scores

CLAIM = Both(
    "Dot products grow like √d_k and push the softmax to where it has hardly a gradient; dividing by √d_k "
    "prevents it.",
    "点积随 √d_k 增大，把 softmax 推向几乎没有梯度的区域；除以 √d_k 可以避免这一点。",
)

KEYS, QUERIES = 32, 4096
KINDS: tuple[SimilarityName, ...] = ("scaled-dot", "dot")
SPREAD = Both("std of scores", "得分的标准差")
ENTROPY = Both("entropy, nats", "熵，奈特")
LARGEST = Both("saturation: largest weight", "饱和程度：最大权重")
GRADIENT = Both("gradient: norm of Jacobian", "梯度：雅可比矩阵的范数")


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    learned_d_k: tuple[int, ...]
    d_k: tuple[int, ...] = (4, 16, 64, 256, 1024)


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=10, learned_d_k=(8,), d_k=(4, 64, 1024)),
    "normal": _Setup(steps=250, learned_d_k=(8, 256)),
    "long": _Setup(steps=1500, learned_d_k=(8, 64, 256, 1024)),
}


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """The softmax of random queries and keys; then models trained to reverse, with both similarities."""
    setup = SETUP[size]
    softmax = {
        (kind, d_k): [_softmax(kind, d_k, seed) for seed in seeds] for kind in KINDS for d_k in setup.d_k
    }
    losses = {
        (kind, d_k): PerSeed.of(_learned(kind, d_k, setup.steps, seed) for seed in seeds)
        for kind in KINDS
        for d_k in setup.learned_d_k
    }
    rows = {
        key: [PerSeed.of(column) for column in zip(*numbers, strict=True)] for key, numbers in softmax.items()
    }
    tables = (
        ResultTable(
            Both(f"softmax over {KEYS} random keys", f"{KEYS} 个随机键上的 softmax"),
            (SIMILARITY, "d_k", SPREAD, ENTROPY, LARGEST, GRADIENT),
            tuple((SIMILARITIES[kind], d_k, *row) for (kind, d_k), row in rows.items()),
        ),
        ResultTable(
            reversing_for(setup.steps),
            (SIMILARITY, "d_k", LOSS_LABEL),
            tuple((SIMILARITIES[kind], d_k, loss) for (kind, d_k), loss in losses.items()),
        ),
    )
    return Findings(tables, _charts(setup, rows, losses), _verdict(setup, rows, losses))


def _softmax(kind: SimilarityName, d_k: int, seed: int) -> tuple[float, float, float, float]:
    """Spread of the scores of normal queries and keys; the softmax's entropy, maximum and Jacobian norm."""
    generator = torch.Generator().manual_seed(seed)
    q_LK = torch.randn(QUERIES, d_k, generator=generator)
    k_MK = torch.randn(KEYS, d_k, generator=generator)
    scores_LM = attention_scores(q_LK, k_MK, d_k**-0.5 if kind == "scaled-dot" else 1.0)
    p_LM = scores_LM.softmax(dim=-1)
    entropy_L = torch.special.entr(p_LM).sum(dim=-1)
    jacobian_LMM = torch.diag_embed(p_LM) - p_LM[:, :, None] * p_LM[:, None, :]
    numbers = (
        scores_LM.std(),
        entropy_L.mean(),
        p_LM.amax(dim=-1).mean(),
        jacobian_LMM.norm(dim=(1, 2)).mean(),
    )
    spread, entropy, largest, gradient = (number.item() for number in numbers)
    return spread, entropy, largest, gradient


def _learned(kind: SimilarityName, d_k: int, steps: int, seed: int) -> float:
    """Held-out loss of a model trained to reverse."""
    task = reversing((4, 9))
    model = small_model(task, seed, n_heads=1, d_k=d_k, similarity=kind)
    train(model, task, plan(steps, 3e-3), seed, batch=16)
    return score(model, task.held_out(100)).loss


def _charts(
    setup: _Setup,
    rows: dict[tuple[SimilarityName, int], list[PerSeed]],
    losses: dict[tuple[SimilarityName, int], PerSeed],
) -> tuple[Chart, ...]:
    def lines(column: int) -> tuple[Line, ...]:
        return tuple(
            Line(SIMILARITIES[kind], setup.d_k, [rows[kind, d_k][column] for d_k in setup.d_k])
            for kind in KINDS
        )

    learned = tuple(
        Line(SIMILARITIES[kind], setup.learned_d_k, [losses[kind, d] for d in setup.learned_d_k])
        for kind in KINDS
    )
    return (
        Chart(ENTROPY, "d_k", lines(1), log_x=True),
        Chart(LARGEST, "d_k", lines(2), log_x=True),
        Chart(GRADIENT, "d_k", lines(3), log_x=True),
        Chart(LOSS_LABEL, "d_k", learned, log_x=True),
    )


def _verdict(
    setup: _Setup,
    rows: dict[tuple[SimilarityName, int], list[PerSeed]],
    losses: dict[tuple[SimilarityName, int], PerSeed],
) -> tuple[Judgement, ...]:
    small, large = setup.d_k[0], setup.d_k[-1]
    plain, scaled = rows["dot", large], rows["scaled-dot", large]
    growth = plain[0].mean / rows["dot", small][0].mean
    root = (large / small) ** 0.5
    learned = setup.learned_d_k[-1]
    with_scale, without = losses["scaled-dot", learned], losses["dot", learned]
    return (
        Judgement(
            plain[3].below(scaled[3]) and plain[1].below(scaled[1]),
            Both(
                f"The scale keeps the softmax from saturating: from d_k = {small} to {large} the standard "
                f"deviation of unscaled scores grows {growth:.1f}-fold (√ predicts {root:.1f}), the "
                f"entropy is {plain[1].mean:.2f} nats, the largest weight {plain[2].mean:.2f} and the "
                f"gradient {plain[3].mean:.3f}; scaled, {scaled[1].mean:.2f}, {scaled[2].mean:.2f} and "
                f"{scaled[3].mean:.3f}.",
                f"缩放使 softmax 不致饱和：d_k 从 {small} 到 {large}，未缩放的得分的标准差增至 "
                f"{growth:.1f} 倍（按根号为 {root:.1f} 倍），熵为 {plain[1].mean:.2f} 奈特，最大权重为 "
                f"{plain[2].mean:.2f}，梯度为 {plain[3].mean:.3f}；缩放后为 {scaled[1].mean:.2f}、"
                f"{scaled[2].mean:.2f} 和 {scaled[3].mean:.3f}。",
            ),
        ),
        Judgement(
            with_scale.below(without),
            Both(
                f"With d_k = {learned}, scaled scores learn more, for every seed: loss {with_scale.mean:.3f} "
                f"against {without.mean:.3f}.",
                f"d_k = {learned} 时，缩放学得更好，每个种子都如此：损失 {with_scale.mean:.3f} 对 "
                f"{without.mean:.3f}。",
            ),
        ),
    )


EXPERIMENT = Experiment("scale", CLAIM, run)
