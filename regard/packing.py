"""Sequences laid end to end: no padding, no pad id, only boundaries.

A batch of sentences is one long row of `N` real tokens. Embedding, Add & Norm, Feed Forward, output layer and
loss work on the row and do not know where a sentence ends. Attention must know; it reads `Boundaries`, and
the only padded view in the package is made and undone here.

Letters: `N` packed tokens, `B` sequences, `L` queries and `M` keys of a padded view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ShapeError


@dataclass(frozen=True, eq=False)
class Boundaries:
    """The sequence of each packed token, and its position in that sequence."""

    sequence_N: Tensor
    """Number of each token's sequence: 0 0 0 1 1 2 …, never falling."""
    positions_N: Tensor
    """Position of each token in its sequence: 0 1 2 0 1 0 …"""
    lengths: tuple[int, ...] | None
    """Lengths of the sequences. None inside a compiled step, which must not depend on them."""
    n_positions: int | None
    """Upper bound of the positions, exclusive. None if the host does not know it."""

    @staticmethod
    def of_lengths(lengths: Sequence[int], device: torch.device | str = "cpu") -> Boundaries:
        """Boundaries of sequences with these lengths, none of them empty."""
        lengths = tuple(int(length) for length in lengths)
        if not lengths:
            raise ShapeError("lengths", "at least one sequence", "none", code="no_sequences")
        empty = [i for i, length in enumerate(lengths) if length < 1]
        if empty:
            got = f"sequence {empty[0]} is empty"
            raise ShapeError("lengths", "sequences of at least one token", got, code="empty_sequence")
        counts = np.asarray(lengths)
        sequence = np.repeat(np.arange(len(lengths)), counts)
        positions = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        sequence_N, positions_N = (
            torch.from_numpy(sequence).to(device),
            torch.from_numpy(positions).to(device),
        )
        return Boundaries(sequence_N, positions_N, lengths, max(lengths))

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self.sequence_N.shape[0]

    @property
    def known_lengths(self) -> tuple[int, ...]:
        """Lengths of the sequences, where the host must know them."""
        assert self.lengths is not None, "a compiled step needs lengths that only the host knows"
        return self.lengths

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.known_lengths)

    @property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return max(self.known_lengths)

    @cached_property
    def starts_B(self) -> Tensor:
        """Index of the first token of each sequence."""
        lengths = np.asarray(self.known_lengths)
        return torch.from_numpy(np.cumsum(lengths) - lengths).to(self.sequence_N.device)

    @cached_property
    def ends_B(self) -> Tensor:
        """Index of the last token of each sequence."""
        return torch.from_numpy(np.cumsum(np.asarray(self.known_lengths)) - 1).to(self.sequence_N.device)

    def shifted(self, offsets_B: Tensor, n_positions: int) -> Boundaries:
        """The same sequences as continuations of others that have `offsets_B` tokens."""
        positions_N = self.positions_N + offsets_B[self.sequence_N]
        return Boundaries(self.sequence_N, positions_N, self.lengths, n_positions)

    @cached_property
    def padded(self) -> PaddedView:
        """The padded view of all the sequences, in their order."""
        return PaddedView.of_groups(self, [np.arange(self.n_sequences)])

    @cached_property
    def exists_BL(self) -> Tensor:
        """True where the padded view holds a token."""
        lengths_B = torch.tensor(self.known_lengths, device=self.sequence_N.device)
        return torch.arange(self.longest, device=lengths_B.device) < lengths_B[:, None]


@dataclass(frozen=True, eq=False)
class PaddedView:
    """Packed tokens as padded (B, L) cells, in one or several groups of sequences."""

    shapes: tuple[tuple[int, int], ...]
    """(B, L) of each group."""
    tokens: tuple[Tensor, ...]
    """For each group, the packed token in each of its B · L cells; any token in an empty cell."""
    empty: tuple[Tensor, ...]
    """For each group, the cells without a token."""
    cell_N: Tensor
    """The cell of each packed token, counting the cells of all groups in order."""

    @staticmethod
    def of_groups(boundaries: Boundaries, groups: Sequence[np.ndarray]) -> PaddedView:
        """A view in which each group of sequences is one block, as wide as its longest sequence."""
        device = boundaries.sequence_N.device
        all_lengths = np.asarray(boundaries.known_lengths)
        all_starts = np.cumsum(all_lengths) - all_lengths
        cell_N = np.empty(boundaries.n_tokens, dtype=np.int64)
        shapes, tokens, empty, first_cell = [], [], [], 0
        for group in groups:
            lengths, starts = all_lengths[group, None], all_starts[group, None]
            column = np.arange(lengths.max())[None, :]
            token_BL = starts + np.minimum(column, lengths - 1)
            exists = (column < lengths).ravel()
            cell_N[token_BL.ravel()[exists]] = first_cell + np.flatnonzero(exists)
            shapes.append((len(group), int(lengths.max())))
            tokens.append(torch.from_numpy(token_BL.ravel()).to(device))
            empty.append(torch.from_numpy(np.flatnonzero(~exists)).to(device))
            first_cell += token_BL.size
        return PaddedView(tuple(shapes), tuple(tokens), tuple(empty), torch.from_numpy(cell_N).to(device))

    def pad(self, x_N: Tensor) -> tuple[Tensor, ...]:
        """(N, …) to one (B, L, …) per group, with zeros in empty cells."""
        return self._pad(x_N) if is_transforming() else _Pad.apply(x_N, self)

    def unpad(self, padded: Sequence[Tensor]) -> Tensor:
        """One (B, L, …) per group to (N, …): undoes `pad`."""
        return self._unpad(padded) if is_transforming() else _Unpad.apply(self, *padded)

    def _pad(self, x_N: Tensor) -> tuple[Tensor, ...]:
        blocks = []
        for (B, L), token, empty in zip(self.shapes, self.tokens, self.empty, strict=True):
            cells = x_N.index_select(0, token)
            if len(empty):
                cells.index_fill_(0, empty, 0.0)
            blocks.append(cells.view(B, L, *x_N.shape[1:]))
        return tuple(blocks)

    def _unpad(self, padded: Sequence[Tensor]) -> Tensor:
        cells = [block.flatten(0, 1) for block in padded]
        return (cells[0] if len(cells) == 1 else torch.cat(cells)).index_select(0, self.cell_N)


def is_transforming() -> bool:
    """Whether a `torch.func` transform is active, which cannot use hand-written gradients."""
    active: bool = torch._C._are_functorch_transforms_active()  # torch has no public name for it
    return active


# The gradient of padding is unpadding, and vice versa; autograd alone would add rows one by one.
class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_N: Tensor, view: PaddedView) -> tuple[Tensor, ...]:
        ctx.view = view
        return view._pad(x_N)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.view.unpad(grads), None


class _Unpad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, view: PaddedView, *padded: Tensor) -> Tensor:
        ctx.view = view
        return view._unpad(padded)

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.view.pad(grad_N)


@dataclass(frozen=True, eq=False)
class Packed:
    """Token ids of several sequences, laid end to end."""

    ids_N: Tensor
    boundaries: Boundaries

    def __post_init__(self) -> None:
        if self.ids_N.dim() != 1:
            expected = "one dimension: tokens laid end to end"
            raise ShapeError("ids_N", expected, tuple(self.ids_N.shape), code="bad_shape")
        if self.ids_N.is_floating_point():
            raise ShapeError("ids_N", "integers", self.ids_N.dtype, code="not_ids")
        if self.ids_N.shape[0] != self.boundaries.n_tokens:
            expected = f"{self.boundaries.n_tokens} tokens"
            raise ShapeError("ids_N", expected, self.ids_N.shape[0], code="token_count_mismatch")

    def __repr__(self) -> str:
        return f"Packed({len(self)} sequences, {self.boundaries.n_tokens} tokens)"

    def __len__(self) -> int:
        return self.boundaries.n_sequences

    def filled(self, n_tokens: int) -> Packed:
        """The same with one more sequence, a filler, up to exactly `n_tokens`: a compiled step has one shape.

        The filler is a sequence like any other, so every row of the pack is computed and finite. It has at
        least one token, so that inputs and outputs always have the same number of sequences. The loss must
        not count it.
        """
        missing = n_tokens - self.boundaries.n_tokens
        if missing < 1:
            expected = f"more than the {self.boundaries.n_tokens} packed tokens"
            raise ShapeError("n_tokens", expected, n_tokens, code="pack_too_small")
        b = Boundaries.of_lengths((*self.boundaries.known_lengths, missing), self.ids_N.device)
        # Its positions repeat, or a long filler would exceed the learned ones.
        positions_N = b.positions_N % self.boundaries.longest
        boundaries = Boundaries(b.sequence_N, positions_N, b.lengths, self.boundaries.n_positions)
        return Packed(torch.cat([self.ids_N, self.ids_N.new_zeros(missing)]), boundaries)

    def to(self, device: torch.device | str) -> Packed:
        """The same sequences on another device."""
        b = self.boundaries
        moved = Boundaries(b.sequence_N.to(device), b.positions_N.to(device), b.lengths, b.n_positions)
        return Packed(self.ids_N.to(device), moved)


def pack(sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Packed:
    """Lay sequences of token ids end to end.

    >>> pack([[5, 6, 7], [8]]).ids_N
    tensor([5, 6, 7, 8])
    """
    given: Sequence[object] = sequences
    if wrong := [ids for ids in given if isinstance(ids, str) or not hasattr(ids, "__len__")]:
        raise ShapeError("sequences", "a list of token ids per sequence", repr(wrong[0]), code="not_ids")
    boundaries = Boundaries.of_lengths([len(sequence) for sequence in sequences], device)
    ids = np.concatenate([np.asarray(sequence) for sequence in sequences])
    if ids.dtype.kind not in "iu":
        raise ShapeError("sequences", "token ids, which are integers", ids.dtype, code="not_ids")
    return Packed(torch.from_numpy(ids.astype(np.int64)).to(device), boundaries)


def unpack(x_N: Tensor, boundaries: Boundaries) -> list[Tensor]:
    """Split a packed (N, …) tensor into one tensor per sequence; undoes `pack`."""
    if x_N.shape[0] != boundaries.n_tokens:
        expected = f"{boundaries.n_tokens} packed tokens"
        raise ShapeError("x_N", expected, x_N.shape[0], code="token_count_mismatch")
    return list(x_N.split(boundaries.known_lengths))
