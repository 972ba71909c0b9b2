"""Values narrower and wider than keys: d_v is independent of d_k (3.2.2; Table 3, row B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from regard.experiments.small_models import plan, reversing, score, small_model, train

CLAIM = Both(
    "Only queries and keys must be equally wide; d_v is free. Narrow values carry less, narrow keys find "
    "less, and wider ones than usual buy little.",
    "只有查询和键必须等宽，d_v 是自由的。值太窄带得少，键太窄找得差，而比通常更宽并没有多大好处。",
)

USUAL = 8
"""Width of the keys, or of the values, while the other one varies."""
HEADS = 4


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    widths: tuple[int, ...] = (1, 2, USUAL, 32)
    pairs: int = 100


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=10, widths=(1, USUAL, 32), pairs=10),
    "normal": _Setup(steps=250),
    "long": _Setup(steps=1500, widths=(1, 2, 4, USUAL, 16, 32, 64)),
}

Losses = dict[tuple[int, int], PerSeed]
"""By d_k and d_v."""


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Train models to reverse with each width of the values, then of the keys."""
    setup = SETUP[size]
    shapes = [(USUAL, width) for width in setup.widths]
    shapes += [(width, USUAL) for width in setup.widths if width != USUAL]
    found = {shape: [_learned(*shape, setup, seed) for seed in seeds] for shape in shapes}
    losses = {shape: PerSeed.of(loss for loss, _ in runs) for shape, runs in found.items()}
    learned = reversing_for(setup.steps)
    table = ResultTable(
        Both(f"{learned.en}, {HEADS} heads", f"{learned.zh}，{HEADS} 个头"),
        ("d_k", "d_v", Both("weights of one attention", "一个注意力的权重数"), LOSS_LABEL),
        tuple((*shape, found[shape][0][1], losses[shape]) for shape in shapes),
    )
    widths = setup.widths
    lines = (
        Line("d_v", widths, [losses[USUAL, width] for width in widths]),
        Line("d_k", widths, [losses[width, USUAL] for width in widths]),
    )
    title = Both(f"{LOSS_LABEL.en}; the other width is {USUAL}", f"{LOSS_LABEL.zh}；另一个宽度为 {USUAL}")
    chart = Chart(title, Both("width", "宽度"), lines, log_x=True)
    return Findings((table,), (chart,), _verdict(setup, losses))


def _learned(d_k: int, d_v: int, setup: _Setup, seed: int) -> tuple[float, int]:
    """Held-out loss of a model trained to reverse, and the number of weights of one attention block."""
    task = reversing((5, 12))
    model = small_model(task, seed, n_heads=HEADS, d_k=d_k, d_v=d_v)
    train(model, task, plan(setup.steps, 3e-3), seed, batch=32)
    attention = model.get_submodule("encoder.layers.0.multi_head_attention")
    weights = sum(weight.numel() for weight in attention.parameters())
    return score(model, task.held_out(setup.pairs)).loss, weights


def _verdict(setup: _Setup, losses: Losses) -> tuple[Judgement, ...]:
    narrow, wide, usual = setup.widths[0], setup.widths[-1], losses[USUAL, USUAL]
    narrow_v, wide_v = losses[USUAL, narrow], losses[USUAL, wide]
    narrow_k, wide_k = losses[narrow, USUAL], losses[wide, USUAL]
    return (
        Judgement(
            usual.below(narrow_v),
            Both(
                f"Narrow values carry less, for every seed: loss {narrow_v.mean:.3f} with d_v = {narrow}, "
                f"{usual.mean:.3f} with {USUAL}.",
                f"值太窄带得少，每个种子都如此：d_v = {narrow} 时损失 {narrow_v.mean:.3f}，"
                f"{USUAL} 时 {usual.mean:.3f}。",
            ),
        ),
        Judgement(
            usual.below(narrow_k),
            Both(
                f"Narrow keys find less, for every seed: loss {narrow_k.mean:.3f} with d_k = {narrow}, "
                f"{usual.mean:.3f} with {USUAL}.",
                f"键太窄找得差，每个种子都如此：d_k = {narrow} 时损失 {narrow_k.mean:.3f}，"
                f"{USUAL} 时 {usual.mean:.3f}。",
            ),
        ),
        Judgement(
            min(wide_v.mean, wide_k.mean) > 0.9 * usual.mean,
            Both(
                f"Wider ones buy little, not a tenth of the loss: it is {wide_v.mean:.3f} with d_v = {wide}, "
                f"{wide_k.mean:.3f} with d_k = {wide}, against {usual.mean:.3f}.",
                f"更宽没有多大好处，损失降不到一成：d_v = {wide} 时为 {wide_v.mean:.3f}，d_k = {wide} 时为 "
                f"{wide_k.mean:.3f}，原为 {usual.mean:.3f}。",
            ),
        ),
    )


EXPERIMENT = Experiment("values", CLAIM, run)
