"""The constraints of a search: how outputs begin and end, and what they must not contain.

Letters: `B` sources, `R` rows being decoded, `T` tokens of an output, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.errors import RequestError

NEVER = float("-inf")
"""The log-probability of a forbidden token."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Constraints:
    """Constraints on the outputs of several sources, for every kind of search."""

    bos: int
    """The token that begins an output."""
    eos: int
    """The token that ends an output."""
    limits: tuple[int, ...]
    """Per source, most tokens of an output, the end included."""
    min_length: int = 0
    """Fewest tokens of an output, the end not included."""
    prefixes: tuple[tuple[int, ...], ...] = ()
    """Per source, the tokens that outputs begin with; empty if no source has a prefix."""
    no_repeat: int = 0
    """No n-gram of this length occurs twice in an output; 0 for no limit."""
    device: torch.device | str = "cpu"

    def __post_init__(self) -> None:
        assert len(self.prefixes) in (0, len(self.limits)), "one prefix per source, or none at all"
        if min(self.limits) < 1:
            problem = f"the limit of an output is {min(self.limits)} tokens: it must be at least 1"
            raise RequestError(problem, code="bad_limit")
        for prefix, limit in zip(self.prefixes, self.limits, strict=False):
            if self.eos in prefix:
                problem = f"the prefix contains {self.eos}, the token that ends an output: remove it"
                raise RequestError(problem, code="bad_prefix")
            if len(prefix) > limit:
                problem = f"the prefix has {len(prefix)} tokens, the output has at most {limit}"
                remedy = "shorten the prefix, or increase `extra_length`"
                raise RequestError(f"{problem}: {remedy}", code="bad_prefix")

    @property
    def n_sources(self) -> int:
        """The number of sources."""
        return len(self.limits)

    @cached_property
    def limits_B(self) -> Tensor:
        """`limits` as a tensor on the device."""
        return torch.tensor(self.limits, device=self.device)

    @cached_property
    def _longest_prefix(self) -> int:
        return max(map(len, self.prefixes), default=0)

    @cached_property
    def _prefix_BT(self) -> Tensor:
        """The prefixes, padded with -1."""
        T = self._longest_prefix
        rows = [[*prefix, *[-1] * (T - len(prefix))] for prefix in self.prefixes]
        return torch.tensor(rows, dtype=torch.int64, device=self.device)

    def bind_at(self, t: int) -> bool:
        """Whether any constraint applies after t tokens; mostly none does."""
        return t < max(self.min_length, self._longest_prefix) or 0 < self.no_repeat <= t

    def apply(self, log_probs_RV: Tensor, so_far_RT: Tensor, sources_R: Tensor) -> Tensor:
        """Log-probabilities of the next token, with minus infinity for forbidden ones.

        They are not normalised again: the log-probability of a token stays the model's own.
        """
        t = so_far_RT.shape[1]
        allowed_RV = log_probs_RV
        if 0 < self.no_repeat <= t:
            allowed_RV = without_repeats(allowed_RV, so_far_RT, self.no_repeat)
        if t < self.min_length:
            allowed_RV = allowed_RV.index_fill(1, torch.tensor([self.eos], device=self.device), NEVER)
        if t < self._longest_prefix:
            token_R1 = self._prefix_BT[sources_R, t, None]
            forced_RV = torch.full_like(log_probs_RV, NEVER)
            forced_RV.scatter_(1, token_R1.clamp(min=0), log_probs_RV.gather(1, token_R1.clamp(min=0)))
            allowed_RV = torch.where(token_R1 < 0, allowed_RV, forced_RV)
        return allowed_RV


def without_repeats(log_probs_RV: Tensor, so_far_RT: Tensor, n: int) -> Tensor:
    """The log-probabilities, with minus infinity for tokens that would repeat an n-gram of their row."""
    windows = so_far_RT.unfold(1, n, 1)  # all n-grams
    latest = so_far_RT[:, so_far_RT.shape[1] - n + 1 :]
    again = (windows[:, :, :-1] == latest[:, None, :]).all(dim=-1)
    penalties = torch.zeros_like(again, dtype=log_probs_RV.dtype).masked_fill_(again, NEVER)
    return log_probs_RV.scatter_add(1, windows[:, :, -1], penalties)
