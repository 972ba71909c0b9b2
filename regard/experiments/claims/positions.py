"""What positions are for (3.5): without them an encoder sees an unordered bag of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch

from regard.config import PositionsName
from regard.experiments.experiment import (
    Both,
    Chart,
    Experiment,
    Findings,
    Judgement,
    Line,
    PerSeed,
    ResultTable,
    Size,
)
from regard.experiments.small_models import plan, reversing, score, small_model, train
from regard.packing import pack

CLAIM = Both(
    "Without positions an encoder cannot tell order. Sinusoids, learned and rotary positions can, and only "
    "the learned ones fail beyond the trained length.",
    "没有位置信息，编码器无法分辨顺序。正弦、可学习和旋转位置都可以，"
    "而且只有可学习位置在超出训练长度后失效。",
)

TRAINED = (4, 12)
KINDS: tuple[PositionsName, ...] = ("sinusoidal", "learned", "rotary", "none")
NAMES: dict[PositionsName, Both] = {
    "sinusoidal": Both("sinusoidal", "正弦"),
    "learned": Both("learned", "可学习"),
    "rotary": Both("rotary", "旋转"),
    "none": Both("none", "无"),
}
POSITIONS = Both("positions", "位置")


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    kinds: tuple[PositionsName, ...] = KINDS
    lengths: tuple[int, ...] = (6, 9, 12, 13, 14, 16, 20, 24)
    pairs: int = 100
    """Pairs tested at each length."""


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=15, kinds=("none", "sinusoidal"), lengths=(12, 16), pairs=20),
    "normal": _Setup(steps=300),
    "long": _Setup(steps=3000),
}

Accuracy = dict[tuple[PositionsName, int], PerSeed]


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Shuffle the inputs of untrained encoders; then train models to reverse, and test them by length."""
    setup = SETUP[size]
    shuffled = {kind: PerSeed.of(_shuffled(kind, seed) for seed in seeds) for kind in setup.kinds}
    by_length = {kind: [_learned(kind, setup, seed) for seed in seeds] for kind in setup.kinds}
    accuracy = {
        (kind, length): PerSeed.of(found[place] for found in by_length[kind])
        for kind in setup.kinds
        for place, length in enumerate(setup.lengths)
    }
    tables = (
        ResultTable(
            Both(
                "an encoder reads shuffled tokens: largest difference from its shuffled output",
                "编码器读入打乱的词元：与打乱后的原输出的最大差别",
            ),
            (POSITIONS, Both("difference", "差别")),
            tuple((NAMES[kind], found) for kind, found in shuffled.items()),
        ),
        ResultTable(
            Both(
                f"reversing, {setup.steps} steps on {TRAINED[0]} to {TRAINED[1]} symbols: share of right "
                f"tokens",
                f"倒序，{setup.steps} 步，{TRAINED[0]} 到 {TRAINED[1]} 个符号：正确词元的比例",
            ),
            (POSITIONS, *(Both(f"{length} symbols", f"{length} 个符号") for length in setup.lengths)),
            tuple(
                (NAMES[kind], *(accuracy[kind, length] for length in setup.lengths)) for kind in setup.kinds
            ),
        ),
    )
    lines = tuple(
        Line(NAMES[kind], setup.lengths, [accuracy[kind, length] for length in setup.lengths])
        for kind in setup.kinds
    )
    title = Both(
        f"share of right tokens, trained up to {TRAINED[1]} symbols",
        f"正确词元的比例，训练时至多 {TRAINED[1]} 个符号",
    )
    chart = Chart(title, Both("symbols", "符号"), lines)
    return Findings(tables, (chart,), _verdict(setup, shuffled, accuracy))


@torch.no_grad()
def _shuffled(kind: PositionsName, seed: int) -> float:
    """Largest difference between the states of shuffled tokens and the shuffled states of tokens."""
    task = reversing(TRAINED)
    model = small_model(task, seed, positions=kind).eval()
    ((tokens, _),) = reversing((12, 12)).draw(Random(seed), 1)
    order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(seed))
    states_ND = model.encode(pack([tokens])).states_SD[order]
    of_shuffled_ND = model.encode(pack([[tokens[place] for place in order]])).states_SD
    return (states_ND - of_shuffled_ND).abs().max().item()


def _learned(kind: PositionsName, setup: _Setup, seed: int) -> list[float]:
    """Share of correct tokens at each length, of a model trained to reverse."""
    task = reversing(TRAINED)
    model = small_model(task, seed, positions=kind, max_length=64)
    train(model, task, plan(setup.steps, 3e-3), seed, batch=32)
    return [score(model, reversing((n, n)).held_out(setup.pairs)).accuracy for n in setup.lengths]


def _verdict(
    setup: _Setup, shuffled: dict[PositionsName, PerSeed], accuracy: Accuracy
) -> tuple[Judgement, ...]:
    within, beyond = TRAINED[1], setup.lengths[-1]
    told = [kind for kind in setup.kinds if kind != "none"]
    rounding, others = shuffled["none"].high, min(shuffled[kind].low for kind in told)
    inside, outside = ({kind: accuracy[kind, length] for kind in setup.kinds} for length in (within, beyond))
    listed, further = _listed(inside), _listed(outside)
    kept = {kind: outside[kind].mean > 0.9 * inside[kind].mean for kind in told}
    return (
        Judgement(
            rounding < 1e-4 < others,
            Both(
                f"Without positions, shuffled inputs give shuffled outputs: they differ by {rounding:.1g} at "
                f"most, with positions by {others:.2g} at least.",
                f"没有位置信息时，打乱输入只会打乱输出：差别至多 {rounding:.1g}；"
                f"有位置信息时至少 {others:.2g}。",
            ),
        ),
        Judgement(
            all(inside["none"].below(inside[kind]) for kind in told),
            Both(
                f"Each kind of positions buys order, for every seed; right tokens at {within} symbols: "
                f"{listed.en}.",
                f"每种位置编码都能带来顺序，每个种子都如此；{within} 个符号时正确的词元：{listed.zh}。",
            ),
        ),
        Judgement(
            all(kept[kind] == (kind != "learned") for kind in told),
            Both(
                f"Sinusoids and rotary positions go on beyond the trained length, learned ones do not; right "
                f"tokens at {beyond} symbols: {further.en}.",
                f"超出训练长度后，正弦和旋转位置仍然有效，可学习位置则不然；{beyond} 个符号时正确的词元："
                f"{further.zh}。",
            ),
        ),
    )


def _listed(shares: dict[PositionsName, PerSeed]) -> Both:
    """The kinds of positions with their shares."""
    return Both(
        ", ".join(f"{NAMES[kind].en} {share.mean:.0%}" for kind, share in shares.items()),
        "，".join(f"{NAMES[kind].zh} {share.mean:.0%}" for kind, share in shares.items()),
    )


EXPERIMENT = Experiment("positions", CLAIM, run)
