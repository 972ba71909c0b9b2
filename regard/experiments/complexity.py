"""Time and memory against length: self-attention and recurrence (4, Table 1), and decoding with a cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.experiments.experiment import Experiment, Size
from regard.experiments.findings import Both, Chart, Findings, Judgement, Line, PerSeed, Table
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.packing import pack

CLAIM = Both(
    "Self-attention takes n²d products and recurrence nd², so attention is faster while a sequence is shorter "
    "than the model is wide; its memory grows with n²; and decoding wants a cache.",
    "自注意力需要 n²d 次乘法，循环需要 nd² 次，所以序列短于模型宽度时注意力更快；它的内存随 n² 增长；解码需要缓存。",
)

FUSED, WRITTEN_OUT, GRU = KINDS = ("attention", "attention, written out", "GRU")
B, D, HEADS = 4, 64, 4


@dataclass(frozen=True, slots=True)
class _Setup:
    lengths: tuple[int, ...]
    written: tuple[int, ...]
    """Tokens that are decoded."""


SETUP: dict[Size, _Setup] = {
    "short": _Setup(lengths=(16, 32, 128), written=(4, 8)),
    "normal": _Setup(lengths=(16, 32, 64, 128, 256, 512, 1024, 2048), written=(16, 32, 64, 128, 256)),
    "long": _Setup(lengths=tuple(2**i for i in range(4, 14)), written=tuple(2**i for i in range(4, 11))),
}


def products(n: int, d: int) -> tuple[int, int]:
    """Multiplications of one layer over n tokens: of self-attention, its four projections included, and a GRU.

    They are as many where n = d: 4nd² + 2n²d = 6nd².
    """
    return 4 * n * d**2 + 2 * n**2 * d, 6 * n * d**2


def layer(kind: str) -> Callable[[Tensor], Tensor]:
    """A layer of each kind, from (B, n, D) to the same."""
    torch.manual_seed(1)
    if kind == GRU:
        gru = nn.GRU(D, D, batch_first=True)
        return lambda x: gru(x)[0]
    attention = MultiHeadAttention(D, HEADS)
    if kind == FUSED:
        return attention

    def written_out(x: Tensor) -> Tensor:
        with recording(attention, keep=lambda _: False):  # the plain road of Figure 2
            found: Tensor = attention(x)
            return found

    return written_out


def kept_bytes(run_layer: Callable[[Tensor], Tensor], n: int) -> int:
    """What a layer keeps for its backward pass, its weights and its input apart."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if not isinstance(tensor, nn.Parameter) and tensor.grad_fn is not None:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    x = torch.randn(B, n, D)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = run_layer(x)
    assert output.shape == x.shape
    return sum(kept.values())
