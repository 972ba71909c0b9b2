"""Time and memory of self-attention and recurrence by length (4, Table 1), and what a cache saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
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
from regard.experiments.small_models import core_seconds, crossing, kept_bytes
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.packing import pack

CLAIM = Both(
    "Self-attention takes n²d products and recurrence nd², so attention is the faster one while a text is "
    "shorter than the model is wide; its memory grows with n²; decoding wants a cache.",
    "自注意力需要 n²d 次乘法，循环需要 nd² 次，因此文本长度小于模型宽度时注意力更快；"
    "它的内存随 n² 增长；解码需要缓存。",
)

FUSED, GRU, WRITTEN_OUT = KINDS = (
    Both("attention", "注意力"),
    "GRU",
    Both("attention, written out", "注意力，逐步写出"),
)
CACHED, ANEW = WAYS = (Both("with a cache", "用缓存"), Both("from the start each time", "每次从头"))
TOKENS = Both("tokens, n", "词元数 n")
TEXTS, WIDTH, HEADS = 4, 64, 4

Numbers = dict[Label, list[float]]
"""One number per length, by name."""


@dataclass(frozen=True, slots=True)
class _Setup:
    lengths: tuple[int, ...]
    written: tuple[int, ...]
    """Numbers of tokens to decode."""


SETUP: dict[Size, _Setup] = {
    "short": _Setup(lengths=(16, 32, 64), written=(4, 8)),
    "normal": _Setup(lengths=(16, 32, 64, 128, 256, 512, 1024, 2048), written=(16, 32, 64, 128, 256, 512)),
    "long": _Setup(lengths=tuple(2**i for i in range(4, 14)), written=tuple(2**i for i in range(4, 11))),
}


def products(n: int, d: int) -> tuple[int, int]:
    """Multiplications of one layer over n tokens: attention with its four projections, and a GRU.

    They are equal where n = d: 4nd² + 2n²d = 6nd².
    """
    return 4 * n * d**2 + 2 * n**2 * d, 6 * n * d**2


class _WrittenOut(MultiHeadAttention):
    """Attention computed step by step as in Figure 2, the way it runs while recording."""

    def forward(self, x: Tensor, *others: Any) -> Tensor:
        with recording(self, keep=()):
            return super().forward(x, *others)


class _Gru(nn.Module):
    """The states of a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x_BLD: Tensor) -> Tensor:
        states_BLD: Tensor = self.gru(x_BLD)[0]
        return states_BLD


def make_layer(kind: Label) -> nn.Module:
    """A layer whose input and output are (B, L, d_model)."""
    torch.manual_seed(1)
    if kind == GRU:
        return _Gru()
    return (MultiHeadAttention if kind == FUSED else _WrittenOut)(WIDTH, HEADS)


def make_model(length: int) -> Transformer:
    """A small model to decode with."""
    torch.manual_seed(1)
    sizes = ModelConfig(
        vocab_size=100,
        d_model=WIDTH,
        n_heads=HEADS,
        d_ff=4 * WIDTH,
        encoder_layers=1,
        decoder_layers=2,
        max_length=length + 1,
    )
    return Transformer(sizes).eval()


@torch.no_grad()
def decoded(model: Transformer, n: int, way: Label) -> Tensor:
    """The log-probabilities after each of n tokens, (n, V), decoded one token at a time."""
    ids = torch.arange(n) % model.config.vocab_size
    memory = model.encode(pack([[5, 6, 7]]))
    rows = []
    if way == CACHED:
        cache = model.start(memory, capacity=n)
        for id_1 in ids.split(1):
            row_1V, cache = model.step(id_1, cache)
            rows.append(row_1V)
    else:
        for end in range(1, n + 1):
            states_TD = model.decode(pack([ids[:end].tolist()]), memory)
            rows.append(model.output_probabilities.log_probs(states_TD[-1:]))
    return torch.cat(rows)


def run(size: Size, _seeds: Sequence[int]) -> Findings:
    """Measure the three layers and both ways of decoding; nothing is trained."""
    setup = SETUP[size]
    times: Numbers = {kind: [] for kind in KINDS}
    kept: Numbers = {kind: [] for kind in KINDS}
    for n in setup.lengths:
        x_BLD = torch.randn(TEXTS, n, WIDTH)
        for kind in KINDS:
            layer = make_layer(kind)
            times[kind].append(1e3 * core_seconds(lambda: layer(x_BLD).sum().backward()))  # noqa: B023
            kept[kind].append(kept_bytes(layer, x_BLD) / 2**20)
    model = make_model(setup.written[-1])
    decoding: Numbers = {
        way: [1e3 * core_seconds(lambda: decoded(model, n, way)) for n in setup.written]  # noqa: B023
        for way in WAYS
    }
    counted = [products(n, WIDTH) for n in setup.lengths]
    work: Numbers = {FUSED: [a / 1e6 for a, _ in counted], GRU: [b / 1e6 for _, b in counted]}
    parts = (
        (Both("multiplications of a layer, millions", "一层的乘法次数，百万"), setup.lengths, work),
        (
            Both(f"{TEXTS} texts there and back, ms of one core", f"{TEXTS} 个文本前向加反向，单核毫秒"),
            setup.lengths,
            times,
        ),
        (Both("kept for the backward pass, MiB", "为反向传播保留的内存，MiB"), setup.lengths, kept),
        (Both("writing n tokens, ms of one core", "写出 n 个词元，单核毫秒"), setup.written, decoding),
    )
    tables = [
        ResultTable(name, (TOKENS, *map(str, places)), tuple((kind, *found[kind]) for kind in found))
        for name, places, found in parts
    ]
    charts = [
        Chart(name, TOKENS, _lines(places, found), log_x=True, log_y=True) for name, places, found in parts
    ]
    verdict = (_on_time(setup, times), _on_memory(setup, kept), _on_cache(setup, decoding))
    return Findings(tuple(tables), tuple(charts), verdict)


def _lines(places: Sequence[int], found: Numbers) -> tuple[Line, ...]:
    return tuple(Line(name, places, [PerSeed.of([y]) for y in ys]) for name, ys in found.items())


def _on_time(setup: _Setup, times: Numbers) -> Judgement:
    at, last = crossing(setup.lengths, times[FUSED], times[GRU]), setup.lengths[-1]
    narrow = [i for i, n in enumerate(setup.lengths) if n < WIDTH]
    holds = all(times[FUSED][i] < times[GRU][i] for i in narrow)
    ratio = times[GRU][-1] / times[FUSED][-1]
    where = (
        Both(
            f"do not cross up to {last}, where the GRU takes {ratio:.1f} times as long",
            f"直到 {last} 都不相交，此时 GRU 的耗时是注意力的 {ratio:.1f} 倍",
        )
        if at is None
        else Both(f"cross at {at:,.0f}", f"在 {at:,.0f} 处相交")
    )
    return Judgement(
        holds,
        Both(
            f"While n is below d = {WIDTH}, where the products are equally many, attention takes less time "
            f"than the GRU; on one core of this machine their times {where.en}.",
            f"n 小于 d = {WIDTH}（两者乘法次数相等之处）时，注意力比 GRU 用时更少；"
            f"在这台机器的一个核上，两者的时间{where.zh}。",
        ),
    )


def _on_memory(setup: _Setup, kept: Numbers) -> Judgement:
    before, last = setup.lengths[-2:]
    growth = {kind: found[-1] / found[-2] for kind, found in kept.items()}
    doubled = last / before
    return Judgement(
        growth[WRITTEN_OUT] > doubled**1.5 > growth[FUSED],
        Both(
            f"Memory grows with n² only where attention keeps its weights: from {before} to {last} tokens "
            f"what is kept grows {growth[WRITTEN_OUT]:.1f} times if attention is written out, "
            f"{growth[FUSED]:.1f} times as the package runs it, {growth[GRU]:.1f} times for the GRU.",
            f"只有保留注意力权重时，内存才随 n² 增长：从 {before} 到 {last} 个词元，所保留的内存在逐步写出时"
            f"增为 {growth[WRITTEN_OUT]:.1f} 倍，按本软件实际的算法为 {growth[FUSED]:.1f} 倍，"
            f"GRU 为 {growth[GRU]:.1f} 倍。",
        ),
    )


def _on_cache(setup: _Setup, decoding: Numbers) -> Judgement:
    saved = [anew / cached for anew, cached in zip(decoding[ANEW], decoding[CACHED], strict=True)]
    few, many = setup.written[0], setup.written[-1]
    return Judgement(
        saved[-1] > 1 and saved[-1] > saved[0],
        Both(
            f"A cache saves the more, the more is written: without it {few} tokens take {saved[0]:.1f} times "
            f"as long and {many} tokens {saved[-1]:.1f} times; then {many * (many + 1) // 2:,} tokens go "
            f"through the decoder instead of {many}.",
            f"写得越多，缓存节省越多：没有缓存，写 {few} 个词元的耗时是 {saved[0]:.1f} 倍，写 {many} 个是 "
            f"{saved[-1]:.1f} 倍；后者经过解码器的词元是 {many * (many + 1) // 2:,} 个，而不是 {many} 个。",
        ),
    )


EXPERIMENT = Experiment("complexity", CLAIM, run, seeded=False)
