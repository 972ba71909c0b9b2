"""Planning batches: which examples go together within a budget of tokens, without truncating any.

A plan cuts a sequence of examples into batches that respect the budget on every side. It needs lengths only:
a million of them take a fraction of a second. `examples` builds batches, `stream` yields them for training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.store import Store
from regard.errors import CorpusError

BLOCK = 128
"""Tokens in a tile of the compiled attention; budgets are multiples of it, so that tiles are full."""
MARGINS = (0.002, 0.005, 0.01, 0.02, 0.05)
"""How much larger than the mean a batch may be: tried in this order."""
PASS = 1 << 16
"""Examples that `one_pass` plans together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The number of tokens that a batch may have on each side."""

    tokens: tuple[int | None, ...]
    """Most tokens of each side; None for a side without a limit."""
    extra: tuple[int, ...]
    """Tokens added to an example on each side: BOS, EOS or [CLS]."""
    fixed: bool = False
    """Whether batches are filled up to this size, for a compiled step; the filler takes a token or more."""

    @staticmethod
    def balanced(store: Store, tokens: int, extra: Sequence[int], *, fixed: bool = False) -> Budget:
        """`tokens` for the longer side, and fewer for the other, so that both fill up together."""
        means = [side.n_tokens / len(store) + e for side, e in zip(store.facts.sides, extra, strict=True)]
        shares = [min(1.0, mean / max(means) * (1 + MARGINS[2])) for mean in means]
        room = [side.longest + e + fixed for side, e in zip(store.facts.sides, extra, strict=True)]
        sizes = [max(share * tokens, least) for share, least in zip(shares, room, strict=True)]
        rounded = [min(tokens, -(-int(np.ceil(size)) // BLOCK) * BLOCK) for size in sizes]
        return Budget(tokens=tuple(rounded), extra=tuple(extra), fixed=fixed)

    @property
    def limits(self) -> dict[int, int]:
        """Most tokens of examples, for each side with a limit."""
        return {side: most - self.fixed for side, most in enumerate(self.tokens) if most is not None}

    def check(self, store: Store) -> None:
        """Raise CorpusError if an example of the store is longer than a batch."""
        names = [side.name for side in store.facts.sides]
        assert len(self.tokens) == len(self.extra) == len(names), f"{self} is not for {', '.join(names)}"
        for side, most in self.limits.items():
            facts = store.facts.sides[side]
            if (needed := facts.longest + self.extra[side]) > most:
                where = f"example {facts.longest_at + 1:,} of {len(store):,}"
                problem = f"its {facts.name} take {needed:,} tokens, but a batch holds at most {most:,}"
                how = "raise the budget of tokens, or drop longer examples"
                raise CorpusError(f"{where}: {problem}; {how}", code="example_too_long")


@dataclass(frozen=True, eq=False)
class Plan:
    """Examples in order, and where to cut them: batch `i` is `order[cuts[i] : cuts[i + 1]]`."""

    order: np.ndarray
    cuts: np.ndarray
    fill: tuple[float, ...]
    """Share of the budget that is used, for each side with a limit."""

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        if not 0 <= i < len(self):
            raise IndexError(f"batch {i} of {len(self)}")
        return self.order[self.cuts[i] : self.cuts[i + 1]]

    def reordered(self, batches: np.ndarray) -> Plan:
        """The same batches in another order."""
        chosen = [self[i] for i in batches]
        cuts = np.cumsum([0, *map(len, chosen)])
        return Plan(np.concatenate(chosen), cuts, self.fill)


def group_by_length(store: Store, order: np.ndarray, budget: Budget, n_pools: int) -> np.ndarray:
    """The order with each of `n_pools` equal parts sorted by length.

    Sorted by the last side with a limit, then by the first, ascending and descending in turn, so that
    neighbours have similar lengths on both sides.
    """
    sides = list(budget.limits)
    first, last = store.lengths(sides[0], order), store.lengths(sides[-1], order)
    pool = np.arange(len(order)) * n_pools // max(1, len(order))
    return order[np.lexsort((np.where(last % 2, -first, first), last, pool))]


def plan_batches(store: Store, order: np.ndarray, budget: Budget) -> Plan:
    """Cut examples, in this order, into the fewest batches within the budget, of about equal size."""
    limits = np.array(list(budget.limits.values()))
    lengths = np.stack([store.lengths(side, order) + budget.extra[side] for side in budget.limits])
    ends = np.cumsum(lengths, axis=1)
    cuts = _cut(ends, limits)
    # A small last batch would count as much as a full one, so batches are evened out.
    mean, longest = ends[:, -1] / (len(cuts) - 1), lengths.max(axis=1)
    for margin in MARGINS:
        fewer = np.minimum(limits, np.maximum(longest, np.ceil(mean * (1 + margin))).astype(np.int64))
        if len(even := _cut(ends, fewer)) == len(cuts):
            cuts = even
            break
    fill = ends[:, -1] / ((len(cuts) - 1) * np.array([budget.tokens[side] for side in budget.limits]))
    return Plan(order, cuts, tuple(fill.tolist()))


def deal(store: Store, indices: np.ndarray, n_hands: int) -> list[np.ndarray]:
    """Deal examples to `n_hands` workers in the order of their lengths, so that all get about equal work.

    With fewer examples than workers, the last ones get none.
    """
    if n_hands == 1:
        return [indices]
    first, last = (store.lengths(side, indices) for side in (0, len(store.facts.sides) - 1))
    ordered = indices[np.lexsort((np.where(last % 2, -first, first), last))]
    # Back and forth: a worker that gets the shorter of two neighbours gets the longer one in the next round.
    place = np.arange(len(ordered)) % (2 * n_hands)
    hand = np.minimum(place, 2 * n_hands - 1 - place)
    return [ordered[hand == i] for i in range(n_hands)]


def _cut(ends: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Where to cut, given the cumulative lengths: one row per side."""
    cuts, n_examples, taken = [0], ends.shape[1], np.zeros_like(limits)
    while cuts[-1] < n_examples:
        fit = (
            np.searchsorted(row, most, side="right") for row, most in zip(ends, taken + limits, strict=True)
        )
        cut = int(min(fit))
        assert cut > cuts[-1], "an example is longer than a batch: Budget.check comes first"
        cuts.append(cut)
        taken = ends[:, cut - 1]
    return np.array(cuts)


def one_pass(store: Store, budget: Budget) -> Iterator[np.ndarray]:
    """The indices of every batch of one pass in the order of the store, for validation and scoring."""
    budget.check(store)
    for first in range(0, len(store), PASS):
        plan = plan_batches(store, np.arange(first, min(first + PASS, len(store))), budget)
        yield from map(plan.__getitem__, range(len(plan)))
        store.release()
