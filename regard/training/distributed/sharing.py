"""How a step's batch is shared out: a hand for each process, and each hand in parts that fit into memory.

All processes read the same stream of batches, so they agree on every step without a word. What a step learns
does not depend on how it is shared out, apart from rounding and the draws of dropout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.batches import BLOCK, Budget, deal
from regard.data.batches.examples import Batch
from regard.data.store import Store
from regard.training.lesson import Lesson


@dataclass(frozen=True, eq=False)
class Turn:
    """What one process does in one step."""

    store: Store
    indices: np.ndarray
    """The examples of the whole step, of all processes, to share them out anew."""
    batches: Sequence[Batch]
    """This process's hand, in parts."""
    n_targets: int
    """Targets of the whole step, of all processes: what the mean is taken over."""
    asked_parts: int
    """Parts that were asked for; a small hand has fewer."""

    @property
    def n_parts(self) -> int:
        """Parts that the hand is taken in."""
        return len(self.batches)


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Which process this is, of how many, and what its batches look like."""

    lesson: Lesson
    budget: Budget
    """Of a whole step, all processes together."""
    longest: tuple[int, ...]
    """Tokens of the longest example, side by side."""
    rank: int = 0
    world_size: int = 1

    def turn(self, store: Store, indices: np.ndarray, n_parts: int) -> Turn:
        """This process's part of a step, in at most `n_parts` parts, and in at least one."""
        hands = deal(store, indices, self.world_size)
        n_targets = self.lesson.n_targets(store, indices)
        # Sharded processes go through their parts in step, so all have as many as the largest hand needs.
        parts = deal(store, hands[self.rank], min(n_parts, max(map(len, hands))))
        sizes = self.sizes(n_parts)
        batches = [
            self._batch(store, part, sizes) if len(part) else self._idle(store, indices[:1], sizes)
            for part in parts
        ]
        return Turn(store, indices, batches, n_targets, n_parts)

    def sizes(self, n_parts: int) -> tuple[int | None, ...]:
        """Tokens that each part is filled up to, side by side; None for no filling."""
        if not self.budget.fixed:
            return tuple(None for _ in self.budget.tokens)
        pieces = n_parts * self.world_size
        # Hands differ by some sentences; two of the longest, on top of an even share, hold that in practice.
        slack = [0 if pieces == 1 else 2 * (longest + 1) for longest in self.longest]
        shares = [(most or 0) / pieces + more for most, more in zip(self.budget.tokens, slack, strict=True)]
        return tuple(-(-int(np.ceil(share)) // BLOCK) * BLOCK for share in shares)

    def _batch(self, store: Store, indices: np.ndarray, sizes: tuple[int | None, ...]) -> Batch:
        if not self.budget.fixed:
            return self.lesson.batch(store, indices)
        extra = self.budget.extra
        lengths = [
            int(store.lengths(side, indices).sum()) + extra[side] * len(indices) for side in range(len(sizes))
        ]
        # A part that is heavier than it should be is compiled for its own size: slow once, never wrong.
        fill = [max(size or 0, -(-(n + 1) // BLOCK) * BLOCK) for size, n in zip(sizes, lengths, strict=True)]
        return self.lesson.batch(store, indices, fill)

    def _idle(self, store: Store, indices: np.ndarray, sizes: tuple[int | None, ...]) -> Batch:
        """For a process that nothing is left for: it computes along, and its result counts for nothing."""
        return self._batch(store, indices, sizes).idle()
