"""Greedy search: a walk that takes the likeliest token, again and again."""

from __future__ import annotations

from torch import Tensor

from regard.decode.top import top


def likeliest(log_probs_RV: Tensor, _sources_R: Tensor, _t: int) -> Tensor:
    """The likeliest token of each row."""
    return top(log_probs_RV, 1)[1][:, 0]
