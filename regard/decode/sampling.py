"""Sampling: tokens drawn at random from the model's distribution.

A draw depends on the seed of its source and on the step only, not on the rest of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.walk import Choose
from regard.errors import ConfigError
from regard.host import widest_float

COLD, COLDEST = 1e-3, 1e-30
"""Temperatures below which quotients are computed from the highest one, and below which nothing changes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """The tokens to draw from. The rules apply in order, each to the tokens that the rules before it left.

    They affect the draw only: reported log-probabilities stay the model's own.
    """

    temperature: float = 1.0
    """Divisor of log-probabilities: below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = 0
    """Draw from this number of most probable tokens; 0 for all."""
    top_p: float = 1.0
    """Draw from the fewest most probable tokens whose probabilities sum to at least this."""
    min_p: float = 0.0
    """Draw from tokens with at least this share of the highest probability."""

    def __post_init__(self) -> None:
        checks = {
            f"`temperature={self.temperature}` must be above 0": self.temperature > 0,
            f"`top_k={self.top_k}` must be at least 0": self.top_k >= 0,
            f"`top_p={self.top_p}` must be above 0 and at most 1": 0 < self.top_p <= 1,
            f"`min_p={self.min_p}` must be at least 0 and at most 1": 0 <= self.min_p <= 1,
        }
        if problems := [problem for problem, holds in checks.items() if not holds]:
            raise ConfigError(problems, code="bad_sampling")

    @property
    def from_all(self) -> bool:
        """Whether every token may be drawn."""
        return self.top_k == 0 and self.top_p == 1.0 and self.min_p == 0.0

    def draw(self, log_probs_RV: Tensor, uniform_R: Tensor) -> Tensor:
        """The token at which the cumulative probability of a row exceeds its uniform number."""
        scaled_RV = log_probs_RV / self.temperature
        if self.temperature < COLD:  # the quotients may be infinite, even those of the most probable tokens
            scaled_RV = (log_probs_RV - log_probs_RV.amax(dim=-1, keepdim=True)) / max(
                self.temperature, COLDEST
            )
        if self.from_all:
            return _exceeding(torch.softmax(scaled_RV, dim=-1), uniform_R)
        sorted_RV, ids_RV = scaled_RV.topk(min(self.top_k or scaled_RV.shape[1], scaled_RV.shape[1]))
        probs_RV = torch.softmax(sorted_RV, dim=-1)
        if self.top_p < 1.0:
            before_RV = probs_RV.cumsum(dim=-1) - probs_RV
            probs_RV = probs_RV.masked_fill(before_RV >= self.top_p, 0.0)
        probs_RV = probs_RV.masked_fill(probs_RV < self.min_p * probs_RV[:, :1], 0.0)
        return ids_RV.gather(1, _exceeding(probs_RV, uniform_R)[:, None])[:, 0]


def _exceeding(probs_RV: Tensor, uniform_R: Tensor) -> Tensor:
    """The first index at which the cumulative sum exceeds this share of the total."""
    sums_RV = probs_RV.to(uniform_R.dtype).cumsum(dim=-1)
    places_R1 = torch.searchsorted(sums_RV, uniform_R[:, None] * sums_RV[:, -1:], right=True)
    return places_R1[:, 0].clamp(max=probs_RV.shape[1] - 1)


def sampler(sampling: Sampling, seeds: Sequence[int], n_steps: int, device: torch.device | str) -> Choose:
    """A random choice for a walk over sources with these seeds."""
    # With the CPU's generator, a seed gives the same numbers on every device.
    numbers = [
        torch.rand(n_steps, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        for seed in seeds
    ]
    uniform_BT = torch.stack(numbers).to(widest_float(device)).to(device)

    def choose(log_probs_RV: Tensor, sources_R: Tensor, t: int) -> Tensor:
        return sampling.draw(log_probs_RV, uniform_BT[sources_R, t])

    return choose
