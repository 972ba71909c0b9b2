"""All that a search knows of a model: `log_probs, state = step(ids, state)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from torch import Tensor


class State(Protocol):
    """What a model remembers of the rows being decoded; those of one source stand together."""

    def reorder(self, rows_R: Tensor, /) -> Self:
        """Row i goes on from what was row `rows_R[i]`, of the same source."""

    def keep(self, sources_B: Tensor, /) -> Self:
        """Only these sources, each with all its rows."""


S = TypeVar("S", bound=State)
Step = Callable[[Tensor, S], tuple[Tensor, S]]
"""One more token in every row: log-probabilities of the next, (R, V), and the state after it."""
