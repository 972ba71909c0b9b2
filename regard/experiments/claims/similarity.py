"""Five ways to compare a query with a key: the paper's, and four alternatives (3.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e

import torch

from regard.config import SimilarityName
from regard.experiments.experiment import (
    LOSS_LABEL,
    PARAMETERS,
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
from regard.experiments.small_models import Pair, make_batch, plan, reversing, score, small_model, train
from regard.model.taps import recording
from regard.model.transformer import Transformer

CLAIM = Both(
    "Additive and dot-product attention learn alike while d_k is small; for larger d_k the additive one "
    "beats dot products that are not scaled, and scaled ones catch up.",
    "d_k 较小时，加性注意力与点积注意力效果相近；d_k 较大时，加性注意力优于未缩放的点积，"
    "而缩放后的点积能追平。",
)

KINDS: tuple[SimilarityName, ...] = tuple(SIMILARITIES)
LENGTHS = (4, 8)
LARGEST = Both("largest weight of cross-attention", "交叉注意力的最大权重")
CROSS = "decoder.layers.0.multi_head_attention.weights"

Found = dict[tuple[SimilarityName, int], PerSeed]
"""By similarity and d_k."""
Counts = dict[tuple[SimilarityName, int], int]


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    d_k: tuple[int, ...]
    tested: int = 200


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=3, d_k=(8,), tested=20),
    "normal": _Setup(steps=250, d_k=(8, 128)),
    "long": _Setup(steps=1500, d_k=(8, 32, 128, 512), tested=1000),
}


def sharpest_cosine(keys: int) -> float:
    """The largest weight that one of `keys` keys can have if scores are between -1 and 1."""
    return e / (e + (keys - 1) / e)


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Train models to reverse that differ only in their similarity; measure their loss and attention."""
    setup = SETUP[size]
    losses: Found = {}
    sharpness: Found = {}
    parameters: Counts = {}
    held_out = reversing(LENGTHS).held_out(setup.tested)
    for key in ((kind, d_k) for d_k in setup.d_k for kind in KINDS):
        models = [_taught(*key, setup.steps, seed) for seed in seeds]
        losses[key] = PerSeed.of(score(model, held_out).loss for model in models)
        sharpness[key] = PerSeed.of(largest_weights(model, held_out).mean().item() for model in models)
        parameters[key] = models[0].n_parameters
    return _findings(setup, losses, sharpness, parameters)


def _findings(setup: _Setup, losses: Found, sharpness: Found, parameters: Counts) -> Findings:
    columns = (SIMILARITY, "d_k", PARAMETERS, LOSS_LABEL, LARGEST)
    rows = tuple(
        (SIMILARITIES[kind], d_k, parameters[kind, d_k], losses[kind, d_k], sharpness[kind, d_k])
        for kind, d_k in losses
    )
    charts = (_chart(LOSS_LABEL, setup, losses), _chart(LARGEST, setup, sharpness))
    small, large = setup.d_k[0], setup.d_k[-1]
    verdict = (
        _on_small(small, losses),
        _on_plain(large, losses),
        _on_scaled(large, losses, parameters),
        _on_cosine(large, losses, sharpness),
    )
    return Findings((ResultTable(reversing_for(setup.steps), columns, rows),), charts, verdict)


def make_model(kind: SimilarityName, d_k: int, seed: int) -> Transformer:
    """A small model with this similarity."""
    sizes = {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    return small_model(reversing(LENGTHS), seed, similarity=kind, d_k=d_k, **sizes)


def _taught(kind: SimilarityName, d_k: int, steps: int, seed: int) -> Transformer:
    model = make_model(kind, d_k, seed)
    train(model, reversing(LENGTHS), plan(steps, 4e-3), seed)
    return model


@torch.no_grad()
def largest_weights(model: Transformer, pairs: Sequence[Pair]) -> torch.Tensor:
    """The largest attention weight of each output token in each head."""
    batch = make_batch(pairs)
    with recording(model, keep=CROSS.__eq__) as seen:
        model(batch.inputs, batch.outputs)
    largest_BHL = seen[CROSS].amax(dim=-1)
    return largest_BHL.transpose(1, 2)[batch.outputs.boundaries.exists_BL]


def _chart(name: Both, setup: _Setup, found: Found) -> Chart:
    lines = (Line(SIMILARITIES[kind], setup.d_k, [found[kind, d_k] for d_k in setup.d_k]) for kind in KINDS)
    return Chart(name, "d_k", tuple(lines), log_x=True)


def _on_small(d_k: int, losses: Found) -> Judgement:
    plain, additive = losses["dot", d_k], losses["additive", d_k]
    return Judgement(
        not plain.below(additive) and not additive.below(plain),
        Both(
            f"With d_k = {d_k} additive and plain dot-product attention learn alike, neither better for "
            f"every seed: loss {additive.mean:.3f} and {plain.mean:.3f}.",
            f"d_k = {d_k} 时，加性注意力与普通点积学得差不多，没有哪个在每个种子上都更好：损失 "
            f"{additive.mean:.3f} 和 {plain.mean:.3f}。",
        ),
    )


def _on_plain(d_k: int, losses: Found) -> Judgement:
    plain, additive = losses["dot", d_k], losses["additive", d_k]
    return Judgement(
        additive.below(plain),
        Both(
            f"With d_k = {d_k} the additive one beats plain dot products, for every seed: loss "
            f"{additive.mean:.3f} against {plain.mean:.3f}.",
            f"d_k = {d_k} 时，加性优于普通点积，每个种子都如此：损失 {additive.mean:.3f} 对 "
            f"{plain.mean:.3f}。",
        ),
    )


def _on_scaled(d_k: int, losses: Found, parameters: Counts) -> Judgement:
    scaled, additive, bilinear = (losses[kind, d_k] for kind in ("scaled-dot", "additive", "bilinear"))
    ratio = parameters["additive", d_k] / parameters["scaled-dot", d_k]
    return Judgement(
        not additive.below(scaled),
        Both(
            f"With d_k = {d_k} scaled dot products catch up with the additive one: loss {scaled.mean:.3f} "
            f"against {additive.mean:.3f}, whose model has {ratio:.1f} times as many parameters; bilinear "
            f"{bilinear.mean:.3f}.",
            f"d_k = {d_k} 时，缩放点积能追上加性：损失 {scaled.mean:.3f} 对 {additive.mean:.3f}，"
            f"后者的参数是其 {ratio:.1f} 倍；双线性 {bilinear.mean:.3f}。",
        ),
    )


def _on_cosine(d_k: int, losses: Found, sharpness: Found) -> Judgement:
    cosine, scaled = losses["cosine", d_k], losses["scaled-dot", d_k]
    most, usual, keys = sharpness["cosine", d_k], sharpness["scaled-dot", d_k], LENGTHS[0] + 1
    return Judgement(
        scaled.below(cosine) and most.below(usual),
        Both(
            f"Cosines without a scale cannot look hard, and learn less than scaled dot products: the largest "
            f"weight is {most.mean:.2f} on average against {usual.mean:.2f} ({keys} keys allow at most "
            f"{sharpest_cosine(keys):.2f}), the loss {cosine.mean:.3f} against {scaled.mean:.3f}.",
            f"不带缩放的余弦无法集中注意力，学得不如缩放点积：最大权重平均为 {most.mean:.2f}，对 "
            f"{usual.mean:.2f}（{keys} 个键时最多 {sharpest_cosine(keys):.2f}），损失 {cosine.mean:.3f}，"
            f"对 {scaled.mean:.3f}。",
        ),
    )


EXPERIMENT = Experiment("similarity", CLAIM, run)
