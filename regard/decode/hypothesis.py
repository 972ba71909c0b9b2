"""The result of a search, and its score. Without torch, so that the CTranslate2 engine starts without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ** alpha, the divisor of a log-probability, which favours longer outputs (6.1).

    `length` counts all tokens whose log-probabilities are summed, the end included if it was reached. So an
    empty output has a length, and the score depends on the hypothesis alone. (CTranslate2 divides by
    length ** alpha without the end; its engine ranks hypotheses again by this penalty.)
    """
    return float(((5 + length) / 6) ** alpha)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """An output, finished or cut at the limit."""

    ids: tuple[int, ...]
    """Token ids, without those that begin and end the output."""
    token_log_probs: tuple[float, ...]
    """Of every token, and of the end if finished; empty if only `total` is known."""
    score: float
    """Log-probability divided by the length penalty; hypotheses are ranked by it."""
    finished: bool
    """Whether the model ended it before the limit."""
    repetitive: bool = False
    """Whether it ends in a loop, even after a second try."""
    total: float | None = None
    """Log-probability of all tokens, if the engine returned only the sum."""

    @staticmethod
    def of_tokens(
        ids: Sequence[int], token_log_probs: Sequence[float], *, eos: int, alpha: float
    ) -> Hypothesis:
        """The hypothesis of these tokens; the last one may be the end."""
        finished = bool(ids) and ids[-1] == eos
        return Hypothesis(
            ids=tuple(ids[:-1] if finished else ids),
            token_log_probs=tuple(token_log_probs),
            score=sum(token_log_probs) / length_penalty(len(token_log_probs), alpha),
            finished=finished,
        )

    @property
    def log_prob(self) -> float:
        """The log-probability of all tokens."""
        return sum(self.token_log_probs) if self.total is None else self.total


LONGEST_ROUND = 16
"""Longest period of a loop, in tokens."""
ROUNDS = 4
"""Fewest periods of a loop …"""
TOKENS = 16
"""… and fewest tokens: laughter and long numbers repeat themselves for a while."""


def loops(ids: Sequence[int]) -> bool:
    """Whether an output ends in a loop.

    >>> loops([7, 8, 9] + [1, 2, 3] * 6)
    True
    >>> loops([1, 2, 3] * 3)
    False
    """
    ids = tuple(ids)
    return any(_goes_round(ids, n) for n in range(1, LONGEST_ROUND + 1))


def _goes_round(ids: tuple[int, ...], n: int) -> bool:
    """Whether the output ends in repetitions of its last n tokens."""
    tail = max(ROUNDS * n, TOKENS)
    return len(ids) >= tail and ids[-tail + n :] == ids[-tail:-n]
