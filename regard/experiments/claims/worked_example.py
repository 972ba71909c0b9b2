"""Attention on five inputs in R⁴, by hand and by the package, compared with two common mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import torch
from torch import Tensor

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
from regard.model.scaled_dot_product_attention import attention_scores, attention_weights

CLAIM = Both(
    "Attention on five inputs can be worked out with a pencil; notes that apply the softmax twice, or take "
    "all keys as equal, come to other numbers.",
    "五个输入上的注意力可以用笔算出；有的讲义把 softmax 用了两次，或把所有的键当作相等，得到的数字就不同。",
)

RIGHT, TWICE, EQUAL = (
    Both("right", "正确"),
    Both("softmax applied twice", "softmax 用了两次"),
    Both("keys taken as equal", "把键当作相等"),
)
WEIGHTS, OUTPUTS, QUERY = Both("weights", "权重"), Both("outputs", "输出"), Both("query", "查询")

OfKinds = dict[Both, Tensor]
"""The correct numbers, and those of the two mistakes."""

# x₁ = (½, ½, ½, ½) and the four unit vectors; W_Q is the identity, W_K is ½ everywhere, W_V is ¼ everywhere.
X_ND = torch.cat([torch.full((1, 4), 0.5), torch.eye(4)]).double()
Q_NK = X_ND
K_NK = X_ND @ torch.full((4, 4), 0.5).double()
V_NU = X_ND @ torch.full((4, 4), 0.25).double()


def by_hand() -> tuple[Tensor, Tensor]:
    """The weights and the outputs, from exponentials alone.

    Row 1 has the scores 1, ½, ½, ½, ½ and the others ½, ¼, ¼, ¼, ¼; divided by the smaller exponential, the
    larger one is √e in row 1 and ⁴√e in the others. The values are ½ and four times ¼.
    """
    weights, outputs = [], []
    for larger in [exp(1 / 2)] + [exp(1 / 4)] * 4:
        weights.append([larger / (larger + 4)] + [1 / (larger + 4)] * 4)
        outputs.append([(larger / 2 + 1) / (larger + 4)] * 4)
    return torch.tensor(weights, dtype=torch.float64), torch.tensor(outputs, dtype=torch.float64)


def all_weights() -> OfKinds:
    """The weights, one row per query."""
    return {
        RIGHT: attention_weights(Q_NK, K_NK),
        TWICE: attention_weights(Q_NK, K_NK).softmax(dim=-1),
        EQUAL: attention_weights(Q_NK, K_NK[:1].expand(5, 4)),
    }


def run(_size: Size, _seeds: Sequence[int]) -> Findings:
    """Compute everything; nothing is random or trained, so all sizes give the same findings."""
    weights = all_weights()
    outputs = {name: each @ V_NU for name, each in weights.items()}
    return Findings(
        (*_steps(), _weights_table(weights), _outputs_table(outputs)),
        (
            _chart(Both("weights of query 1", "查询 1 的权重"), weights, 0),
            _chart(Both("weights of queries 2 to 5", "查询 2 到 5 的权重"), weights, 1),
        ),
        _verdict(weights, outputs),
    )


def _steps() -> tuple[ResultTable, ...]:
    """The steps before the softmax; x₂ to x₅ have equal sums, so one row stands for all four."""
    scores_NN, scaled_NN = attention_scores(Q_NK, K_NK, 1.0), attention_scores(Q_NK, K_NK)
    projected = [
        (name, X_ND[i].sum().item(), K_NK[i, 0].item(), V_NU[i, 0].item())
        for i, name in enumerate(("x₁", "x₂ … x₅"))
    ]
    scored = [
        (name, *scores_NN[i, :2].tolist(), *scaled_NN[i, :2].tolist())
        for i, name in enumerate(("q₁", "q₂ … q₅"))
    ]
    sums = (
        Both("input", "输入"),
        Both("entries add up to", "各分量之和"),
        Both("each entry of k", "k 的每个分量"),
        Both("each entry of v", "v 的每个分量"),
    )
    products = (QUERY, "q · k₁", "q · k₂ … k₅", "q · k₁ / √4", "q · k₂ … k₅ / √4")
    return (
        ResultTable(Both("keys and values", "键与值"), sums, tuple(projected)),
        ResultTable(Both("scores", "得分"), products, tuple(scored)),
    )


def _weights_table(weights: OfKinds) -> ResultTable:
    columns = (
        WEIGHTS,
        QUERY,
        Both("on k₁", "对 k₁"),
        Both("on each of k₂ … k₅", "对 k₂ … k₅ 各"),
        Both("sum", "和"),
    )
    rows = [
        (name, query, *each[i, :2].tolist(), each[i].sum().item())
        for name, each in weights.items()
        for i, query in enumerate(("q₁", "q₂ … q₅"))
    ]
    return ResultTable(WEIGHTS, columns, tuple(rows))


def _outputs_table(outputs: OfKinds) -> ResultTable:
    columns = (
        OUTPUTS,
        Both("row 1, each entry", "第 1 行的每个分量"),
        Both("rows 2 to 5, each entry", "第 2 到 5 行的每个分量"),
    )
    rows = tuple((name, *output[:2, 0].tolist()) for name, output in outputs.items())
    return ResultTable(OUTPUTS, columns, rows)


def _chart(name: Both, weights: OfKinds, row: int) -> Chart:
    keys = range(1, 6)
    lines = (
        Line(kind, keys, [PerSeed.of([w]) for w in each[row].tolist()]) for kind, each in weights.items()
    )
    return Chart(name, Both("key", "键"), tuple(lines))


def _verdict(weights: OfKinds, outputs: OfKinds) -> tuple[Judgement, ...]:
    hand_weights, hand_outputs = by_hand()
    error = max(
        (weights[RIGHT] - hand_weights).abs().max(), (outputs[RIGHT] - hand_outputs).abs().max()
    ).item()
    right, twice, equal = (weights[name][0, 0].item() for name in (RIGHT, TWICE, EQUAL))
    written, flattened, even = (outputs[name][:2, 0].tolist() for name in (RIGHT, TWICE, EQUAL))
    return (
        Judgement(
            error < 1e-12,
            Both(
                f"Pencil and package agree: x₁ gives itself {hand_weights[0, 0]:.5f} of its attention and "
                f"its output is {hand_outputs[0, 0]:.5f} everywhere; the largest difference is {error:.0e}.",
                f"笔算与程序一致：x₁ 给自己的注意力为 {hand_weights[0, 0]:.5f}，其输出处处为 "
                f"{hand_outputs[0, 0]:.5f}；最大相差 {error:.0e}。",
            ),
        ),
        Judgement(
            abs(twice - 0.2) < abs(right - 0.2) / 2,
            Both(
                f"A softmax applied twice makes weights nearly even, which is 0.2 each: {right:.5f} becomes "
                f"{twice:.5f}, and the output {written[0]:.5f} becomes {flattened[0]:.5f}.",
                f"softmax 用两次会使权重几乎平均（各 0.2）：{right:.5f} 变成 {twice:.5f}，"
                f"输出 {written[0]:.5f} 变成 {flattened[0]:.5f}。",
            ),
        ),
        Judgement(
            abs(equal - 0.2) < 1e-12 and abs(even[0] - even[1]) < 1e-12,
            Both(
                f"With keys taken as equal the one input that differs disappears: every weight is "
                f"{equal:.5f} and every output {even[0]:.5f}, where {written[0]:.5f} and {written[1]:.5f} "
                f"are right.",
                f"把键当作相等，唯一不同的输入就消失了：每个权重都是 {equal:.5f}，每个输出都是 "
                f"{even[0]:.5f}，而正确的是 {written[0]:.5f} 和 {written[1]:.5f}。",
            ),
        ),
    )


EXPERIMENT = Experiment("worked-example", CLAIM, run, seeded=False)
