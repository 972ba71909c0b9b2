"""Batches: examples packed to a budget of tokens, none of them cut.

A plan cuts examples, in the order in which they come, into batches that keep to the budget on every side. It
looks at lengths only, a million of them in a fraction of a second; what a batch holds is read later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.store import Store
from regard.errors import CorpusError
from regard.packing import Boundaries, Packed

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


# --- what a batch holds -----------------------------------------------------------------------------------


class PairsBatch(NamedTuple):
    """What a step of an encoder and decoder takes."""

    inputs: Packed
    outputs: Packed
    """Shifted right (3.1): BOS first, and the last token left out."""
    targets_T: Tensor
    """The token that should follow each token of `outputs`; EOS last."""
    counted_T: Tensor | None
    """False where a target belongs to the filler; None where there is none."""
    n_tokens: tuple[int, int]
    """Real tokens of inputs and of outputs."""

    def to(self, device: torch.device) -> PairsBatch:
        """The same on another device."""
        counted_T = None if self.counted_T is None else self.counted_T.to(device)
        inputs, outputs = self.inputs.to(device), self.outputs.to(device)
        return PairsBatch(inputs, outputs, self.targets_T.to(device), counted_T, self.n_tokens)


class TextBatch(NamedTuple):
    """What a step of a decoder alone takes."""

    outputs: Packed
    targets_T: Tensor
    counted_T: Tensor | None
    n_tokens: tuple[int]


class LabelledBatch(NamedTuple):
    """What a step of an encoder alone takes."""

    inputs: Packed
    """[CLS] first."""
    labels_B: Tensor
    n_tokens: tuple[int]


PAIRS_EXTRA, TEXT_EXTRA, LABELLED_EXTRA = (1, 1), (1,), (1, 0)
"""Tokens that are added to each side of an example by the functions below."""


def make_pairs_batch(
    store: Store, indices: np.ndarray, *, bos: int, eos: int, fill_to: Sequence[int | None] = (None, None)
) -> PairsBatch:
    """Inputs end with EOS; outputs begin with BOS, and targets end with EOS. Fixed sizes are filled up."""
    ids, lengths = store.gather(0, indices)
    inputs = _packed(_with_one_more(ids, lengths, eos, last=True), lengths + 1, fill_to[0])
    outputs, targets_T, counted_T, n_outputs = _shifted_right(store, 1, indices, bos, eos, fill_to[1])
    return PairsBatch(inputs, outputs, targets_T, counted_T, (len(ids) + len(indices), n_outputs))


def make_text_batch(
    store: Store, indices: np.ndarray, *, bos: int, eos: int, fill_to: Sequence[int | None] = (None,)
) -> TextBatch:
    """Texts to continue: outputs begin with BOS, and targets end with EOS."""
    outputs, targets_T, counted_T, n_outputs = _shifted_right(store, 0, indices, bos, eos, fill_to[0])
    return TextBatch(outputs, targets_T, counted_T, (n_outputs,))


def make_labelled_batch(store: Store, indices: np.ndarray, *, cls: int) -> LabelledBatch:
    """Texts that begin with [CLS], and one label each: the second side of an example has one id."""
    ids, lengths = store.gather(0, indices)
    labels, ones = store.gather(1, indices)
    assert (ones == 1).all(), "an example has one label"
    inputs = _packed(_with_one_more(ids, lengths, cls, last=False), lengths + 1, None)
    return LabelledBatch(inputs, torch.from_numpy(labels.astype(np.int64)), (inputs.boundaries.n_tokens,))


def _shifted_right(
    store: Store, side: int, indices: np.ndarray, bos: int, eos: int, fill_to: int | None
) -> tuple[Packed, Tensor, Tensor | None, int]:
    ids, lengths = store.gather(side, indices)
    outputs = _packed(_with_one_more(ids, lengths, bos, last=False), lengths + 1, fill_to)
    targets_T = torch.from_numpy(_with_one_more(ids, lengths, eos, last=True))
    n_real = len(targets_T)
    if fill_to is None:
        return outputs, targets_T, None, n_real
    filler = targets_T.new_zeros(fill_to - n_real)
    return outputs, torch.cat([targets_T, filler]), torch.arange(fill_to) < n_real, n_real


def _with_one_more(ids: np.ndarray, lengths: np.ndarray, token: int, *, last: bool) -> np.ndarray:
    """The same sequences, laid end to end, with one more token after or before each."""
    longer = np.full(len(ids) + len(lengths), token, dtype=np.int64)
    longer[np.arange(len(ids)) + np.repeat(np.arange(len(lengths)), lengths) + (not last)] = ids
    return longer


def _packed(ids: np.ndarray, lengths: np.ndarray, fill_to: int | None) -> Packed:
    packed = Packed(torch.from_numpy(ids), Boundaries.of_lengths(lengths.tolist()))
    return packed if fill_to is None else packed.filled(fill_to)


def cut_documents(documents: Iterable[np.ndarray], longest: int) -> Iterator[tuple[np.ndarray]]:
    """Documents as examples of at most `longest` tokens; a longer one is cut into equal parts."""
    for document in documents:
        yield from ((part,) for part in np.array_split(document, max(1, -(-len(document) // longest))))
