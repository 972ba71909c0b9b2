"""Ensembles: several models asked together, their probabilities averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor

from regard.decode.step import S, Step


@dataclass(frozen=True, eq=False)
class States(Generic[S]):
    """One state for each model."""

    each: tuple[S, ...]

    def reorder(self, rows_R: Tensor) -> States[S]:
        """As one state does."""
        return States(tuple(state.reorder(rows_R) for state in self.each))

    def keep(self, sources_B: Tensor) -> States[S]:
        """As one state does."""
        return States(tuple(state.keep(sources_B) for state in self.each))


def ensemble(steps: Sequence[Step[S]]) -> Step[States[S]]:
    """A step of all the models: the log of their mean probability, and their states after it."""

    def step(ids_R: Tensor, states: States[S]) -> tuple[Tensor, States[S]]:
        results = [one(ids_R, state) for one, state in zip(steps, states.each, strict=True)]
        log_probs_RV = log_mean_exp([log_probs for log_probs, _ in results])
        return log_probs_RV, States(tuple(state for _, state in results))

    return step


def log_mean_exp(each: Sequence[Tensor]) -> Tensor:
    """The log of the mean of what these are logs of."""
    return torch.stack(list(each)).logsumexp(dim=0) - math.log(len(each))
