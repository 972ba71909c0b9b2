"""What a search finds, and what it is ranked by. No torch here: an engine that needs none starts without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ** alpha: a log-probability is divided by it, so that long ones get a chance (6.1).

    `length` counts the tokens whose log-probabilities were added up, so the one that ends an output counts
    where it was reached. A score then follows from a hypothesis alone, an empty output has a length, and
    dividend and divisor grow together. (CTranslate2 divides by length ** alpha and leaves the last one out;
    an engine built on it ranks its hypotheses anew, by this.)
    """
    return float(((5 + length) / 6) ** alpha)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """An output, finished or cut off at the limit."""

    ids: tuple[int, ...]
    """Without the token that starts it and the one that ends it."""
    token_log_probs: tuple[float, ...]
    """Of each token, and of the one that ends it where it is finished; none where only `total` is known."""
    score: float
    """What it was ranked by: its log-probability over the length penalty."""
    finished: bool
    """Whether it ended by itself."""
    repetitive: bool = False
    """Whether it goes round in a loop, and trying again did not help."""
    total: float | None = None
    """Log-probability of all tokens together, where that is all that an engine was asked for."""

    @staticmethod
    def of_tokens(
        ids: Sequence[int], token_log_probs: Sequence[float], *, eos: int, alpha: float
    ) -> Hypothesis:
        """What was found, token by token; the last one may be the one that ends it."""
        finished = bool(ids) and ids[-1] == eos
        return Hypothesis(
            ids=tuple(ids[:-1] if finished else ids),
            token_log_probs=tuple(token_log_probs),
            score=sum(token_log_probs) / length_penalty(len(token_log_probs), alpha),
            finished=finished,
        )

    @property
    def log_prob(self) -> float:
        """Of all its tokens together."""
        return sum(self.token_log_probs) if self.total is None else self.total


LONGEST_ROUND = 16
"""Tokens of the longest round that is looked for."""
ROUNDS = 4
"""A loop goes round at least so often …"""
TOKENS = 16
"""… and takes at least so many tokens: laughter and long numbers may repeat themselves for a while."""


def loops(ids: Sequence[int]) -> bool:
    """Whether these tokens end in a loop.

    >>> loops([7, 8, 9] + [1, 2, 3] * 6)
    True
    >>> loops([1, 2, 3] * 3)
    False
    """
    ids = tuple(ids)
    return any(_goes_round(ids, n) for n in range(1, LONGEST_ROUND + 1))


def _goes_round(ids: tuple[int, ...], n: int) -> bool:
    """Whether the last n tokens are the same as those before them, time and again."""
    tail = max(ROUNDS * n, TOKENS)
    return len(ids) >= tail and ids[-tail + n :] == ids[-tail:-n]
