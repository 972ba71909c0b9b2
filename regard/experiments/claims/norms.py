"""LayerNorm (3.1), BatchNorm and no norm, on sequences of many lengths, in training and in decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.experiments.experiment import (
    LOSS_LABEL,
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
from regard.experiments.small_models import (
    Pair,
    ToyTask,
    exact,
    make_batch,
    plan,
    reversing,
    score,
    small_model,
    train,
)
from regard.model.add_and_norm import AddAndNorm
from regard.model.transformer import Transformer

CLAIM = Both(
    "On sequences of many lengths LayerNorm learns, BatchNorm and no norm do worse; and batch statistics "
    "fail when decoding, where a batch is one token of each sentence.",
    "在长短不一的序列上，LayerNorm 学得好，BatchNorm 和不归一化较差；而且解码时批统计会失效，"
    "因为那时一批只是每句的一个词元。",
)

Kind = Literal["layer", "batch", "none"]
KINDS: tuple[Kind, ...] = ("layer", "batch", "none")
MOMENTUM = 0.1
ALONE_PAIRS = 30
"""Pairs that are decoded one at a time, which is slow."""


@dataclass(frozen=True, slots=True)
class _Setup:
    steps: int
    pairs: int = 60
    lengths: tuple[int, int] = (2, 10)


SETUP: dict[Size, _Setup] = {
    "short": _Setup(steps=10, pairs=5, lengths=(3, 5)),
    "normal": _Setup(steps=300),
    "long": _Setup(steps=3000),
}


class BatchNorm(nn.Module):
    """Normalises each feature over the tokens of a batch; after training, with running statistics."""

    running_mean_D: Tensor
    running_variance_D: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean_D", torch.zeros(d_model))
        self.register_buffer("running_variance_D", torch.ones(d_model))
        self.by_batch = False
        """Whether a trained model uses the statistics of its batch instead of the running ones."""

    def forward(self, x_ND: Tensor) -> Tensor:
        """Normalise each feature over all tokens."""
        mean_D, variance_D = self.running_mean_D, self.running_variance_D
        if self.training or self.by_batch:
            mean_D, variance_D = x_ND.mean(dim=0), x_ND.var(dim=0, correction=0)
        if self.training:
            self.running_mean_D.lerp_(mean_D.detach(), MOMENTUM)
            self.running_variance_D.lerp_(variance_D.detach(), MOMENTUM)
        return (x_ND - mean_D) * (variance_D + 1e-5).rsqrt() * self.weight + self.bias


LOSS, TOGETHER, ALONE, COMPANY = range(4)
COLUMNS = (
    LOSS_LABEL,
    Both("decoded right together", "一起解码的正确率"),
    Both("decoded right alone", "单独解码的正确率"),
    Both("company changes a logit by", "同批句子使 logit 改变"),
)
LAYER, MEANS, BY_BATCH, NONE = NAMES = (
    "LayerNorm",
    Both("BatchNorm, means of training", "BatchNorm，训练均值"),
    Both("BatchNorm, statistics of the batch", "BatchNorm，批统计"),
    Both("none", "不归一化"),
)
"""The rows of the table: a model with BatchNorm is scored with each kind of statistics."""
LEARNING: dict[Kind, Label] = {"layer": LAYER, "batch": "BatchNorm", "none": NONE}


def run(size: Size, seeds: Sequence[int]) -> Findings:
    """Train a model with each norm to reverse; score and decode it, in a batch and one by one."""
    setup = SETUP[size]
    found = [_of_seed(setup, seed) for seed in seeds]
    columns = {
        name: [PerSeed.of(column) for column in zip(*(outcomes[name] for outcomes, _ in found), strict=True)]
        for name in NAMES
    }
    table = ResultTable(
        Both(
            f"reversing {setup.lengths[0]} to {setup.lengths[1]} symbols, {setup.steps} steps",
            f"倒序 {setup.lengths[0]} 到 {setup.lengths[1]} 个符号，{setup.steps} 步",
        ),
        (Both("norm", "归一化"), *COLUMNS),
        tuple((name, *columns[name]) for name in NAMES),
    )
    steps = range(1, setup.steps + 1, max(1, setup.steps // 50))
    curves = tuple(
        Line(
            LEARNING[kind],
            steps,
            [PerSeed.of(losses[kind][step - 1] for _, losses in found) for step in steps],
        )
        for kind in KINDS
    )
    title = Both(f"while learning: {LOSS_LABEL.en}", f"训练中：{LOSS_LABEL.zh}")
    chart = Chart(title, Both("step", "步"), curves, log_y=True)
    return Findings((table,), (chart,), _verdict(columns))


def _of_seed(setup: _Setup, seed: int) -> tuple[dict[Label, tuple[float, ...]], dict[Kind, list[float]]]:
    """Outcomes by name, and training losses by step."""
    task = reversing(setup.lengths)
    test_set = task.held_out(setup.pairs)
    outcomes: dict[Label, tuple[float, ...]] = {}
    losses: dict[Kind, list[float]] = {}
    for kind in KINDS:
        model = _model(kind, task, seed)
        losses[kind] = train(model, task, plan(setup.steps, 3e-3), seed, batch=16)
        if kind == "batch":
            outcomes[MEANS] = _outcome(model, test_set)
            for module in model.modules():
                if isinstance(module, BatchNorm):
                    module.by_batch = True
        outcomes[BY_BATCH if kind == "batch" else LEARNING[kind]] = _outcome(model, test_set)
    return outcomes, losses


def _model(kind: Kind, task: ToyTask, seed: int) -> Transformer:
    """The paper's model with its norms replaced."""
    model = small_model(task, seed)
    if kind != "layer":
        for module in model.modules():
            if isinstance(module, AddAndNorm):
                norm = BatchNorm(model.config.d_model) if kind == "batch" else nn.Identity()
                module.register_module("norm", norm)
    return model


@torch.no_grad()
def _outcome(model: Transformer, pairs: Sequence[Pair]) -> tuple[float, ...]:
    """The numbers of `COLUMNS`."""
    alone, together = make_batch(pairs[:1]), make_batch(pairs)
    logits_TV, among_TV = model(alone.inputs, alone.outputs), model(together.inputs, together.outputs)
    company = (logits_TV - among_TV[: len(logits_TV)]).abs().max().item()
    some = pairs[:ALONE_PAIRS]
    right_alone = sum(exact(model, [pair]) for pair in some) / len(some)
    return score(model, pairs).loss, exact(model, some), right_alone, company


def _verdict(columns: dict[Label, list[PerSeed]]) -> tuple[Judgement, ...]:
    layer, means, by_batch, none = (columns[name] for name in NAMES)
    return (
        Judgement(
            layer[LOSS].below(means[LOSS]) and layer[LOSS].below(none[LOSS]),
            Both(
                f"LayerNorm learns best, for every seed: loss {layer[LOSS].mean:.3f}, BatchNorm "
                f"{means[LOSS].mean:.3f}, no norm {none[LOSS].mean:.3f}.",
                f"LayerNorm 学得最好，每个种子都如此：损失 {layer[LOSS].mean:.3f}，BatchNorm "
                f"{means[LOSS].mean:.3f}，不归一化 {none[LOSS].mean:.3f}。",
            ),
        ),
        Judgement(
            layer[COMPANY].high < 1e-3 < by_batch[COMPANY].low,
            Both(
                f"With batch statistics an answer depends on its batch mates: they change a logit by "
                f"{by_batch[COMPANY].mean:.2g}, with LayerNorm by {layer[COMPANY].mean:.1g}.",
                f"使用批统计时，结果取决于同批的句子：它们使一个 logit 改变 {by_batch[COMPANY].mean:.2g}，"
                f"LayerNorm 则为 {layer[COMPANY].mean:.1g}。",
            ),
        ),
        Judgement(
            by_batch[ALONE].below(layer[ALONE]) and by_batch[TOGETHER].below(layer[TOGETHER]),
            Both(
                f"Batch statistics fail when decoding: {by_batch[TOGETHER].mean:.0%} right together and "
                f"{by_batch[ALONE].mean:.0%} alone, by the means of training {means[ALONE].mean:.0%}, with "
                f"LayerNorm {layer[ALONE].mean:.0%}.",
                f"解码时批统计失效：一起解码 {by_batch[TOGETHER].mean:.0%} 正确，单独解码 "
                f"{by_batch[ALONE].mean:.0%}；使用训练均值 {means[ALONE].mean:.0%}，LayerNorm "
                f"{layer[ALONE].mean:.0%}。",
            ),
        ),
    )


EXPERIMENT = Experiment("norms", CLAIM, run)
