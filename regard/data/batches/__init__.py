"""Batches: examples packed to a budget of tokens, none of them cut.

A plan cuts examples, in the order in which they come, into batches that keep to the budget on every side. It
looks at lengths only, a million of them in a fraction of a second; what a batch holds is read later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.store import Store
from regard.errors import CorpusError

BLOCK = 128
"""Tokens in a tile of the compiled attention: sizes that it divides waste nothing."""
MARGINS = (0.002, 0.005, 0.01, 0.02, 0.05)
"""How much fuller than the mean a batch may be, tried one after another."""
PASS = 1 << 16
"""Examples that one pass in order looks at together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """How many tokens a batch may have, side by side."""

    tokens: tuple[int | None, ...]
    """Most tokens of each side; None for a side without a limit."""
    extra: tuple[int, ...]
    """Tokens that the model adds to an example on each side: BOS, EOS or [CLS]."""
    fixed: bool = False
    """Whether batches are filled to exactly this size, as a compiled step wants; the filler takes a token."""

    @staticmethod
    def balanced(store: Store, tokens: int, extra: Sequence[int], *, fixed: bool = False) -> Budget:
        """`tokens` for the longer side, and what goes with it for the other: both fill up together."""
        means = [side.n_tokens / len(store) + e for side, e in zip(store.facts.sides, extra, strict=True)]
        shares = [min(1.0, mean / max(means) * (1 + MARGINS[2])) for mean in means]
        room = [side.longest + e + fixed for side, e in zip(store.facts.sides, extra, strict=True)]
        sizes = [max(share * tokens, least) for share, least in zip(shares, room, strict=True)]
        wanted = [min(tokens, -(-int(np.ceil(size)) // BLOCK) * BLOCK) for size in sizes]
        return Budget(tokens=tuple(wanted), extra=tuple(extra), fixed=fixed)

    @property
    def limits(self) -> dict[int, int]:
        """Most tokens that examples may take, for each side that has a limit."""
        return {side: most - self.fixed for side, most in enumerate(self.tokens) if most is not None}

    def check(self, store: Store) -> None:
        """Refuse a store that has an example longer than a batch."""
        names = [side.name for side in store.facts.sides]
        assert len(self.tokens) == len(self.extra) == len(names), f"{self} is not for {', '.join(names)}"
        for side, most in self.limits.items():
            facts = store.facts.sides[side]
            if (needed := facts.longest + self.extra[side]) > most:
                where = f"example {facts.longest_at + 1:,} of {len(store):,}"
                takes = f"its {facts.name} take {needed:,} tokens, and a batch holds at most {most:,}"
                raise CorpusError(f"{where}: {takes}; raise the budget of tokens, or drop longer examples")


@dataclass(frozen=True, eq=False)
class Plan:
    """Which examples go together: batch `i` is `order[cuts[i] : cuts[i + 1]]`."""

    order: np.ndarray
    cuts: np.ndarray
    fill: tuple[float, ...]
    """Share of the budget that is used, for each side that has a limit."""

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
    """Each of `n_pools` equal parts of `order`, sorted by length.

    The last side that has a limit decides, then the first, rising and falling in turn, so that neighbours
    stay alike where the deciding length changes.
    """
    sides = list(budget.limits)
    first, last = store.lengths(sides[0], order), store.lengths(sides[-1], order)
    pool = np.arange(len(order)) * n_pools // max(1, len(order))
    return order[np.lexsort((np.where(last % 2, -first, first), last, pool))]


def plan_batches(store: Store, order: np.ndarray, budget: Budget) -> Plan:
    """Cut examples, in this order, into as few batches as keep to the budget, about equally full."""
    limits = np.array(list(budget.limits.values()))
    lengths = np.stack([store.lengths(side, order) + budget.extra[side] for side in budget.limits])
    ends = np.cumsum(lengths, axis=1)
    cuts = _cut(ends, limits)
    # A last batch of a few examples would count as much as a full one: spread what there is.
    mean, longest = ends[:, -1] / (len(cuts) - 1), lengths.max(axis=1)
    for margin in MARGINS:
        fewer = np.minimum(limits, np.maximum(longest, np.ceil(mean * (1 + margin))).astype(np.int64))
        if len(even := _cut(ends, fewer)) == len(cuts):
            cuts = even
            break
    fill = ends[:, -1] / ((len(cuts) - 1) * np.array([budget.tokens[side] for side in budget.limits]))
    return Plan(order, cuts, tuple(fill.tolist()))


def deal(store: Store, indices: np.ndarray, n_hands: int) -> list[np.ndarray]:
    """Examples dealt out like cards in the order of their lengths, so that all hands are about equally heavy.

    Where there are fewer examples than hands, the last ones stay empty.
    """
    if n_hands == 1:
        return [indices]
    first, last = (store.lengths(side, indices) for side in (0, len(store.facts.sides) - 1))
    ordered = indices[np.lexsort((np.where(last % 2, -first, first), last))]
    # There and back: who gets the shorter of two neighbours in one round gets the longer one in the next.
    place = np.arange(len(ordered)) % (2 * n_hands)
    hand = np.minimum(place, 2 * n_hands - 1 - place)
    return [ordered[hand == i] for i in range(n_hands)]


def _cut(ends: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Where to cut, given the running sums of lengths on each side, one side a row."""
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
    """The examples of every batch of one pass in the order of the store: to validate, to score."""
    budget.check(store)
    for first in range(0, len(store), PASS):
        plan = plan_batches(store, np.arange(first, min(first + PASS, len(store))), budget)
        yield from map(plan.__getitem__, range(len(plan)))
        store.release()
