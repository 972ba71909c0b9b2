"""Positions as a bias on the scores of self-attention, by the distance of query and key.

    softmax(Q Kᵀ / √d_k + bias(distance)) V

Cross-attention has no bias: there is no distance between a token of the outputs and one of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from regard.config import ModelConfig, registries
from regard.model.positional_encoding import Positions, keep_computed


@registries.positions.register("alibi")
class Alibi(Positions):
    """Departure 16: scores fall in proportion to distance (ALiBi; Press, Smith and Lewis, 2022).

    The decoder's queries see earlier keys only; in the encoder both directions count alike.
    """

    slopes_H: Tensor

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.n_heads = config.n_heads
        self.register_buffer("slopes_H", self._new_slopes(), persistent=False)

    def _new_slopes(self) -> Tensor:
        return torch.tensor(slopes(self.n_heads))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        return keep_computed(self, "slopes_H", self._new_slopes, partial(super()._apply, fn, recurse))

    def score_bias(self, queries_L: Tensor, keys_M: Tensor) -> Tensor:
        """-slope · |distance|, (heads, L, M)."""
        distance_LM = (keys_M - queries_L[:, None]).abs()
        return -self.slopes_H[:, None, None] * distance_LM


def slopes(n_heads: int) -> list[float]:
    """2^(-8/n), 2^(-16/n), … for n heads, n a power of two; others take every second slope of 2n as well."""
    power = 1 << (n_heads.bit_length() - 1)
    of_power = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    of_next = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * power, 2)]
    return [*of_power, *of_next[: n_heads - power]]


@registries.positions.register("t5-relative")
class T5RelativePositions(Positions):
    """Departure 17: a learned number per head and bucket of distances (T5; Raffel and others, 2020).

    All layers of a stack share one table. Half of the buckets hold one distance each, the others grow
    logarithmically up to `FARTHEST`; beyond it, all distances share the last bucket. The encoder divides its
    buckets between keys before and after the query.
    """

    BUCKETS, FARTHEST = 32, 128

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.causal = causal
        self.weight = nn.Parameter(torch.randn(self.BUCKETS, config.n_heads) * config.d_model**-0.5)

    def score_bias(self, queries_L: Tensor, keys_M: Tensor) -> Tensor:
        """The learned number of each distance's bucket, (heads, L, M)."""
        buckets_LM = self.buckets(keys_M - queries_L[:, None])
        return nn.functional.embedding(buckets_LM, self.weight).permute(2, 0, 1)

    def buckets(self, distance_LM: Tensor) -> Tensor:
        """The bucket of each distance from query to key, which is negative for earlier keys."""
        n_buckets = self.BUCKETS if self.causal else self.BUCKETS // 2
        later = 0 if self.causal else n_buckets * (distance_LM > 0)
        steps = (-distance_LM).clamp(min=0) if self.causal else distance_LM.abs()
        exact = n_buckets // 2
        # How far between `exact` and FARTHEST on a logarithmic scale; steps below `exact` are not used.
        share = (steps.clamp(min=1).float() / exact).log() / math.log(self.FARTHEST / exact)
        logarithmic = (exact + (share * (n_buckets - exact)).long()).clamp(max=n_buckets - 1)
        return later + torch.where(steps < exact, steps, logarithmic)
