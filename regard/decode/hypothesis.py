"""What a search finds. No torch here: an engine that needs none must start without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """An output, finished or cut off at the limit."""

    ids: tuple[int, ...]
    """Without the token that starts it and the one that ends it."""
    token_log_probs: tuple[float, ...]
    """Of each token, and of the one that ends it where it is finished."""
    score: float
    """What it was ranked by: its log-probability over the length penalty."""
    finished: bool
    """Whether it ended by itself."""
    repetitive: bool = False
    """Whether it goes round in a loop, and trying again did not help."""

    @property
    def log_prob(self) -> float:
        """Of all its tokens together."""
        return sum(self.token_log_probs)
