"""Whether attention shows which words a translation depends on: the words ranked first are deleted first.

Jain and Wallace (2019) argue that attention is not explanation; Wiegreffe and Pinter (2019) disagree.
Kobayashi et al. (2020) weight attention by the norms of the vectors that it sums, Abnar and Zuidema (2020)
roll it out through the layers. A deletion curve tests such measures on the model: the sooner the
log-probability of an output falls, the better the measure ranked the words that the output depends on.
Deleted tokens stay in the input but are no longer attended to, which favours measures derived from attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regard.bundle import load_bundle
from regard.bundled import folder
from regard.engine.loading import model_folder
from regard.errors import RequestError
from regard.experiments.experiment import (
    Both,
    Chart,
    Experiment,
    Findings,
    Judgement,
    Label,
    Line,
    PerSeed,
    ResultTable,
    Size,
)
from regard.experiments.small_models import log
from regard.loaded import load
from regard.look.influence.attention import Mixing, mean_attention, norm_weighted, rollout
from regard.look.influence.attribution import agreement, deletion_curve, gradient_times_input, value_zeroing

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.trace import Trace

CLAIM = Both(
    "Attention is not explanation: where a translator looks does not tell which words its output depends on.",
    "注意力不是解释：翻译模型关注哪里，并不能说明输出取决于哪些词。",
)

NAME = "attention-is-it-explanation"
TEXTS = (
    "今天早上我在公园里看见一只黑色的猫。",
    "The committee will publish its report on climate change next week.",
    "他昨天在书店买了三本关于中国历史的书。",
    "She could not find her keys because they were under the table.",
    "这座桥是一百年前由当地的工匠建造的。",
    "The price of coffee has doubled since the beginning of the year.",
    "如果明天下雨，我们就在家里看电影。",
    "My brother works as a doctor in a small hospital near the sea.",
    "孩子们在学校门口等他们的老师。",
    "Scientists have discovered a new kind of fish in the deep ocean.",
    "会议将于下周五上午九点在北京举行。",
    "He opened the window, and cold air came into the room.",
)
CHANGE = Both("change of log-probability, nats", "对数概率的变化，奈特")
POINTS = np.linspace(0.0, 1.0, 11)
"""Shares of the input that are deleted; the curves of all texts are interpolated at these points."""
RANDOM, ATTENTION, ROLLOUT, NORMS, GRADIENTS, ZEROING = MEASURES = (
    Both("random", "随机"),
    Both("attention", "注意力"),
    "rollout",
    Both("norms", "范数"),
    Both("gradients", "梯度"),
    Both("value zeroing", "值置零"),
)


@dataclass(frozen=True, slots=True)
class _Setup:
    texts: int
    rows: int
    """Output tokens explained per text, drawn at random."""


SETUP: dict[Size, _Setup] = {
    "short": _Setup(texts=1, rows=2),
    "normal": _Setup(texts=8, rows=2),
    "long": _Setup(texts=len(TEXTS), rows=8),
}


def measures(
    model: Model, trace: Trace, random: np.random.Generator
) -> dict[Label, Callable[[int], np.ndarray]]:
    """For each measure, the influence of all input tokens on the output token of a row."""
    by_attention, by_norms = mean_attention(trace), norm_weighted(model, trace)
    layers = range(trace.config.decoder_layers)

    def mean(mixing: Mixing) -> np.ndarray:
        return np.mean([mixing("cross", layer) for layer in layers], axis=0)

    looked, carried = mean(by_attention), mean(by_norms)
    rolled = rollout(trace).of_inputs
    assert rolled is not None, "a translator has inputs"
    n: int = rolled.shape[-1]
    return {
        RANDOM: lambda _: random.random(n),
        ATTENTION: looked.__getitem__,
        ROLLOUT: rolled.__getitem__,
        NORMS: carried.__getitem__,
        GRADIENTS: lambda row: np.abs(gradient_times_input(model, trace, row)),
        ZEROING: lambda row: value_zeroing(model, trace, row),
    }


def explained(
    model: Model, traces: Sequence[Trace], rows: int, seed: int
) -> tuple[dict[Label, np.ndarray], dict[Label, float]]:
    """The mean deletion curve of each measure at `POINTS`, in nats relative to the start; and its agreement.

    Agreement is how similarly a measure and value zeroing rank the input tokens.
    """
    random = np.random.default_rng(seed)
    curves: dict[Label, list[np.ndarray]] = {name: [] for name in MEASURES}
    agreements: dict[Label, list[float]] = {name: [] for name in MEASURES}
    for trace in traces:
        influence = measures(model, trace, random)
        for row in random.permutation(len(trace.targets) - 1)[:rows].tolist():  # without the end token
            found = {name: of_row(row) for name, of_row in influence.items()}
            for name, each in found.items():
                curve = deletion_curve(model, trace, row, each)
                curves[name].append(np.interp(POINTS, np.linspace(0, 1, len(curve)), curve - curve[0]))
                agreements[name].append(agreement(each, found[ZEROING]))
        log.info("seed %d: explained a text of %d tokens", seed, len(trace.targets))
    return (
        {name: np.mean(found, axis=0) for name, found in curves.items()},
        {name: float(np.mean(values)) for name, values in agreements.items()},
    )


def run_on(where: Path | None, size: Size, seeds: Sequence[int]) -> Findings:
    """Explain outputs of a translator, by default the bundled one."""
    setup, opened = SETUP[size], where or folder()
    loaded, model = load(opened), load_bundle(model_folder(opened)).model.eval()
    if model.config.architecture != "encoder-decoder":
        raise RequestError(f"{opened} is not a translator; give the folder of one", code="wrong_task")
    traces = [loaded.look(text) for text in TEXTS[: setup.texts]]
    found = [explained(model, traces, setup.rows, seed) for seed in seeds]
    curves = {
        name: [PerSeed.of(column) for column in zip(*(of_seed[name] for of_seed, _ in found), strict=True)]
        for name in MEASURES
    }
    means = {name: PerSeed.of(of_seed[name].mean() for of_seed, _ in found) for name in MEASURES}
    agreements = {name: PerSeed.of(of_seed[name] for _, of_seed in found) for name in MEASURES}
    columns = (
        Both("measure", "度量"),
        Both("mean of the curve", "曲线均值"),
        Both("after a tenth", "去掉一成后"),
        Both("after a half", "去掉一半后"),
        Both("agrees with value zeroing", "与值置零的一致程度"),
    )
    rows = [(name, means[name], curves[name][1], curves[name][5], agreements[name]) for name in MEASURES]
    weights = loaded.description.weights_hash[:8]
    title = Both(
        f"{CHANGE.en}, as inputs are no longer attended to; {setup.rows} tokens of each of {setup.texts} "
        f"texts, weights {weights}",
        f"不再关注输入词元时的{CHANGE.zh}；{setup.texts} 个文本各取 {setup.rows} 个词元，权重 {weights}",
    )
    lines = tuple(Line(name, POINTS.tolist(), curves[name]) for name in MEASURES)
    taken = Both("share taken away, of all tokens but one", "去掉的比例（只留一个词元时为 1）")
    chart = Chart(CHANGE, taken, lines)
    return Findings((ResultTable(title, columns, tuple(rows)),), (chart,), _verdict(means))


def _verdict(means: dict[Label, PerSeed]) -> tuple[Judgement, ...]:
    chance, looked = means[RANDOM], means[ATTENTION]
    rolled, norms, gradients = (means[name] for name in (ROLLOUT, NORMS, GRADIENTS))
    return (
        Judgement(
            not looked.below(chance),
            Both(
                f"Cross-attention finds what an output depends on no better than chance: without what it "
                f"points to the output loses {-looked.mean:.2f} nats on average, and {-chance.mean:.2f} by "
                f"chance.",
                f"交叉注意力找到的输出依据并不比随机更准：去掉它所指的词元平均损失 {-looked.mean:.2f} 奈特，"
                f"随机去掉损失 {-chance.mean:.2f}。",
            ),
        ),
        Judgement(
            gradients.below(looked),
            Both(
                f"Gradients find it better than attention does, for every seed: {-gradients.mean:.2f} nats "
                f"against {-looked.mean:.2f}.",
                f"梯度比注意力找得更准，每个种子都如此：{-gradients.mean:.2f} 奈特对 {-looked.mean:.2f}。",
            ),
        ),
        Judgement(
            norms.below(looked) or rolled.below(looked),
            Both(
                f"Norms or rollout improve on plain attention, for every seed: {-norms.mean:.2f} and "
                f"{-rolled.mean:.2f} nats against {-looked.mean:.2f}.",
                f"范数或 rollout 优于原始注意力，每个种子都如此：{-norms.mean:.2f} 和 {-rolled.mean:.2f} "
                f"奈特对 {-looked.mean:.2f}。",
            ),
        ),
    )


def on(where: Path) -> Experiment:
    """This experiment on another model folder."""
    return Experiment(NAME, CLAIM, partial(run_on, where))


EXPERIMENT = Experiment(NAME, CLAIM, partial(run_on, None), on_model=on)
