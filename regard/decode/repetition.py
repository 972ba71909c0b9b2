"""Outputs that go round in a loop: the same few tokens over and over, to the end."""

from __future__ import annotations

from collections.abc import Sequence

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
