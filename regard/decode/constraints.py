"""The constraints of a search: how outputs begin and end, and what they may not contain.

Letters: `B` sources, `R` rows being decoded, `T` tokens of an output, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.errors import RequestError

NEVER = float("-inf")
"""The log-probability of what must not be."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Constraints:
    """What holds for the outputs of some sources, whoever searches."""

    bos: int
    """The token that starts an output."""
    eos: int
    """The token that ends one."""
    limits: tuple[int, ...]
    """Most tokens of each source's outputs, the one that ends them counted: so many steps, and no more."""
    min_length: int = 0
    """Fewest tokens, the one that ends them not counted."""
    prefixes: tuple[tuple[int, ...], ...] = ()
    """How the outputs of each source begin; none at all where no source has one."""
    no_repeat: int = 0
    """No so many tokens in a row come twice in an output; 0 if they may."""
    device: torch.device | str = "cpu"

    def __post_init__(self) -> None:
        assert len(self.prefixes) in (0, len(self.limits)), "a prefix for each source, or none at all"
        if min(self.limits) < 1:
            raise RequestError(f"an output may have {min(self.limits)} tokens; give it at least 1")
        for prefix, limit in zip(self.prefixes, self.limits, strict=False):
            if self.eos in prefix:
                raise RequestError(f"the prefix contains {self.eos}, the token that ends an output")
            if len(prefix) > limit:
                problem = f"the prefix has {len(prefix)} tokens, and the output at most {limit}"
                raise RequestError(f"{problem}: shorten it, or raise `extra_length`")

    @property
    def n_sources(self) -> int:
        """Sources that outputs are looked for."""
        return len(self.limits)

    @cached_property
    def limits_B(self) -> Tensor:
        """`limits`, where the search runs."""
        return torch.tensor(self.limits, device=self.device)

    @cached_property
    def _longest_prefix(self) -> int:
        return max(map(len, self.prefixes), default=0)

    @cached_property
    def _prefix_BT(self) -> Tensor:
        """The prefixes, -1 where there is nothing to follow any more."""
        T = self._longest_prefix
        rows = [[*prefix, *[-1] * (T - len(prefix))] for prefix in self.prefixes]
        return torch.tensor(rows, dtype=torch.int64, device=self.device)

    def bind_at(self, t: int) -> bool:
        """Whether there is anything to forbid after t tokens; mostly there is not."""
        return t < max(self.min_length, self._longest_prefix) or 0 < self.no_repeat <= t

    def apply(self, log_probs_RV: Tensor, so_far_RT: Tensor, sources_R: Tensor) -> Tensor:
        """Log-probabilities of the next token, those of what may not come next at minus infinity.

        What remains is not made up to 1 again: the log-probability of a token stays the model's own.
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
    """Minus infinity for every token that would complete n tokens in a row which the row has already."""
    windows = so_far_RT.unfold(1, n, 1)  # n tokens in a row, from each place where there are as many
    latest = so_far_RT[:, so_far_RT.shape[1] - n + 1 :]
    again = (windows[:, :, :-1] == latest[:, None, :]).all(dim=-1)
    penalties = torch.zeros_like(again, dtype=log_probs_RV.dtype).masked_fill_(again, NEVER)
    return log_probs_RV.scatter_add(1, windows[:, :, -1], penalties)
