"""The batches of each task: examples of a store, packed, with special tokens and targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from regard.data.store import Store
from regard.packing import Boundaries, Packed


class Batch(Protocol):
    """The interface of all batches."""

    @property
    def n_targets(self) -> int:
        """The number that the mean of a loss is divided by."""

    def to(self, device: torch.device, /) -> Self:
        """A copy on another device."""

    def idle(self) -> Self:
        """A copy whose targets do not count."""


class PairsBatch(NamedTuple):
    """A batch of pairs, for an encoder and a decoder."""

    inputs: Packed
    outputs: Packed
    """Shifted right (3.1): BOS first, without the last token."""
    targets_T: Tensor
    """The next token for each token of `outputs`; EOS last."""
    counted_T: Tensor | None
    """False for targets of the filler; None without a filler."""
    n_tokens: tuple[int, int]
    """Tokens of inputs and of outputs, without the filler."""

    @property
    def packs(self) -> tuple[Packed, ...]:
        """The inputs of the model."""
        return self.inputs, self.outputs

    @property
    def n_targets(self) -> int:
        """Tokens of outputs, without the filler."""
        return self.n_tokens[1]

    def to(self, device: torch.device) -> PairsBatch:
        """A copy on another device."""
        inputs, outputs = self.inputs.to(device), self.outputs.to(device)
        return PairsBatch(
            inputs, outputs, self.targets_T.to(device), _moved(self.counted_T, device), self.n_tokens
        )

    def idle(self) -> PairsBatch:
        """A copy whose targets do not count."""
        return self._replace(counted_T=_none_of(self.targets_T), n_tokens=(0, 0))


class TextBatch(NamedTuple):
    """A batch of texts, for a decoder alone."""

    outputs: Packed
    targets_T: Tensor
    """The next token in the text, for each token of `outputs`."""
    counted_T: Tensor | None
    n_targets: int

    @property
    def packs(self) -> tuple[Packed, ...]:
        """The inputs of the model."""
        return (self.outputs,)

    def to(self, device: torch.device) -> TextBatch:
        """A copy on another device."""
        outputs, counted_T = self.outputs.to(device), _moved(self.counted_T, device)
        return TextBatch(outputs, self.targets_T.to(device), counted_T, self.n_targets)

    def idle(self) -> TextBatch:
        """A copy whose targets do not count."""
        return self._replace(counted_T=_none_of(self.targets_T), n_targets=0)


class LabelledBatch(NamedTuple):
    """A batch of texts with one label each, for an encoder alone."""

    inputs: Packed
    """[CLS] first."""
    labels_B: Tensor
    counted_B: Tensor
    n_targets: int

    def to(self, device: torch.device) -> LabelledBatch:
        """A copy on another device."""
        labels_B, counted_B = self.labels_B.to(device), self.counted_B.to(device)
        return LabelledBatch(self.inputs.to(device), labels_B, counted_B, self.n_targets)

    def idle(self) -> LabelledBatch:
        """A copy whose targets do not count."""
        return self._replace(counted_B=_none_of(self.labels_B), n_targets=0)


class TaggedBatch(NamedTuple):
    """A batch of texts with any number of labels each, for an encoder alone."""

    inputs: Packed
    """[CLS] first."""
    labels_BY: Tensor
    """1 where a text has a label, otherwise 0."""
    counted_B: Tensor
    n_targets: int
    """Number of decisions: texts times labels."""

    def to(self, device: torch.device) -> TaggedBatch:
        """A copy on another device."""
        labels_BY, counted_B = self.labels_BY.to(device), self.counted_B.to(device)
        return TaggedBatch(self.inputs.to(device), labels_BY, counted_B, self.n_targets)

    def idle(self) -> TaggedBatch:
        """A copy whose targets do not count."""
        return self._replace(counted_B=_none_of(self.labels_BY), n_targets=0)


class PlainBatch(NamedTuple):
    """A batch of texts for masked language modelling, with an encoder alone."""

    inputs: Packed
    """[CLS] first."""
    open_N: Tensor
    """True where a token may be masked: not [CLS], nor the filler. Stays on the CPU, which draws masks."""
    n_targets: int
    """Number of tokens to predict."""
    n_places: int
    """Number of masks: `n_targets`, or for a batch of fixed size the most it can have."""

    def to(self, device: torch.device) -> PlainBatch:
        """A copy on another device."""
        return self._replace(inputs=self.inputs.to(device))

    def idle(self) -> PlainBatch:
        """A copy whose targets do not count."""
        return self._replace(n_targets=0)


PAIRS_EXTRA, TEXT_EXTRA, LABELLED_EXTRA, PLAIN_EXTRA = (1, 1), (-1,), (1, 0), (1,)
"""Tokens that the functions below add to each side of an example; the last token of a text is not read."""


def make_pairs_batch(
    store: Store, indices: np.ndarray, *, bos: int, eos: int, fill_to: Sequence[int | None] = (None, None)
) -> PairsBatch:
    """Pairs: inputs end with EOS; outputs begin with BOS, targets end with EOS. Filled up to `fill_to`."""
    ids, lengths = store.gather(0, indices)
    n_inputs = len(ids) + len(indices)
    inputs = _packed(_with_one_more(ids, lengths, eos, last=True), lengths + 1, fill_to[0])
    ids, lengths = store.gather(1, indices)
    outputs = _packed(_with_one_more(ids, lengths, bos, last=False), lengths + 1, fill_to[1])
    targets = _with_one_more(ids, lengths, eos, last=True)
    return PairsBatch(inputs, outputs, *_filled(targets, fill_to[1]), (n_inputs, len(targets)))


def make_text_batch(
    store: Store, indices: np.ndarray, *, fill_to: Sequence[int | None] = (None,)
) -> TextBatch:
    """Windows of text: the first token is input only, the last one target only."""
    ids, lengths = store.gather(0, indices)
    assert (lengths > 1).all(), "a window has an input and a target"
    ends = np.cumsum(lengths)
    outputs = _packed(np.delete(ids, ends - 1).astype(np.int64), lengths - 1, fill_to[0])
    targets = np.delete(ids, ends - lengths).astype(np.int64)
    return TextBatch(outputs, *_filled(targets, fill_to[0]), len(targets))


def make_labelled_batch(store: Store, indices: np.ndarray, *, cls: int) -> LabelledBatch:
    """Texts that begin with [CLS], with one label each: the only id of the second side."""
    ids, lengths = store.gather(0, indices)
    labels, ones = store.gather(1, indices)
    assert (ones == 1).all(), "an example has one label"
    inputs = _packed(_with_one_more(ids, lengths, cls, last=False), lengths + 1, None)
    labels_B = torch.from_numpy(labels.astype(np.int64))
    return LabelledBatch(inputs, labels_B, torch.ones(len(labels), dtype=torch.bool), len(labels))


def make_tagged_batch(store: Store, indices: np.ndarray, *, cls: int, n_labels: int) -> TaggedBatch:
    """Texts that begin with [CLS], with the labels of each: the ids of the second side."""
    ids, lengths = store.gather(0, indices)
    labels, counts = store.gather(1, indices)
    inputs = _packed(_with_one_more(ids, lengths, cls, last=False), lengths + 1, None)
    labels_BY = torch.zeros(len(indices), n_labels)
    labels_BY[np.repeat(np.arange(len(indices)), counts), labels.astype(np.int64)] = 1.0
    return TaggedBatch(inputs, labels_BY, torch.ones(len(indices), dtype=torch.bool), labels_BY.numel())


def make_plain_batch(
    store: Store, indices: np.ndarray, *, cls: int, share: float, fill_to: Sequence[int | None] = (None,)
) -> PlainBatch:
    """Texts that begin with [CLS], a share of whose tokens is predicted. Filled up to `fill_to`."""
    ids, lengths = store.gather(0, indices)
    inputs = _packed(_with_one_more(ids, lengths, cls, last=False), lengths + 1, fill_to[0])
    open_N = torch.arange(len(inputs.ids_N)) < len(ids) + len(indices)
    open_N[np.cumsum(lengths + 1) - lengths - 1] = False
    n_targets = max(1, round(share * len(ids)))
    n_places = n_targets if fill_to[0] is None else max(n_targets, round(share * fill_to[0]))
    return PlainBatch(inputs, open_N, n_targets, n_places)


def windows(documents: Iterable[np.ndarray], longest: int, *, bos: int, eos: int) -> Iterator[np.ndarray]:
    """Documents as examples for `make_text_batch`, of at most `longest` inputs.

    A long document is cut into equal parts. Each part begins with the last token of the previous one, or with
    BOS, and the last part ends with EOS, so that every token is a target once.
    """
    for document in documents:
        whole = np.concatenate([[bos], document, [eos]])
        n_windows = -(-(len(whole) - 1) // longest)
        cuts = np.linspace(0, len(whole) - 1, n_windows + 1).astype(np.int64)
        yield from (whole[cut : end + 1] for cut, end in pairwise(cuts.tolist()))


def _filled(targets: np.ndarray, fill_to: int | None) -> tuple[Tensor, Tensor | None]:
    """Targets filled up to a fixed size, and which of them count; None if all do."""
    targets_T = torch.from_numpy(targets)
    if fill_to is None:
        return targets_T, None
    filler = targets_T.new_zeros(fill_to - len(targets))
    return torch.cat([targets_T, filler]), torch.arange(fill_to) < len(targets)


def _with_one_more(ids: np.ndarray, lengths: np.ndarray, token: int, *, last: bool) -> np.ndarray:
    """The concatenated sequences, with one more token after or before each."""
    longer = np.full(len(ids) + len(lengths), token, dtype=np.int64)
    longer[np.arange(len(ids)) + np.repeat(np.arange(len(lengths)), lengths) + (not last)] = ids
    return longer


def _packed(ids: np.ndarray, lengths: np.ndarray, fill_to: int | None) -> Packed:
    packed = Packed(torch.from_numpy(ids), Boundaries.of_lengths(lengths.tolist()))
    return packed if fill_to is None else packed.filled(fill_to)


def _moved(flags: Tensor | None, device: torch.device) -> Tensor | None:
    return None if flags is None else flags.to(device)


def _none_of(targets: Tensor) -> Tensor:
    return torch.zeros(len(targets), dtype=torch.bool)
