"""Greedy search: the likeliest token, again and again."""

from __future__ import annotations

from torch import Tensor

from regard.decode.hypothesis import Hypothesis
from regard.decode.step import S, Step
from regard.decode.terms import Terms
from regard.decode.top import top
from regard.decode.walk import walk


def likeliest(log_probs_RV: Tensor, _sources_R: Tensor, _t: int) -> Tensor:
    """The likeliest token of each row."""
    return top(log_probs_RV, 1)[1][:, 0]


def greedy(step: Step[S], state: S, terms: Terms, *, alpha: float = 0.0) -> list[Hypothesis]:
    """For each source the output whose every token is the likeliest after those before it."""
    return walk(step, state, terms, likeliest, alpha)
