"""Who may attend to whom. True means *may*, everywhere.

Two forms: a boolean tensor, for ordinary (batch, length, d_model) tensors; `SameSequence`, for packed ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from regard.errors import ShapeError
from regard.packing import Boundaries, PaddedView

BLOCK = 128
"""Tokens in one tile of the block-sparse kernel; a compiled pack holds a multiple of it."""
WIDTHS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024])
"""Sequences share a padded group when the same of these is the first that holds them."""


def causal_mask(n_queries: int, device: torch.device | str = "cpu") -> Tensor:
    """Position i may attend to positions up to i (3.2.3, third use): outputs cannot peek ahead."""
    return torch.ones(n_queries, n_queries, dtype=torch.bool, device=device).tril()


def length_mask(lengths_B: Tensor, longest: int | None = None) -> Tensor:
    """(B, 1, 1, M): every query may attend to the tokens that exist."""
    longest = int(lengths_B.max()) if longest is None else longest
    exists_BM = torch.arange(longest, device=lengths_B.device) < lengths_B[:, None]
    return exists_BM[:, None, None, :]


@dataclass(frozen=True, eq=False)
class PaddedGroups:
    """Queries and keys of a batch, padded group by group, and who may attend in each group."""

    queries: PaddedView
    keys: PaddedView
    may_attend: tuple[Tensor | None, ...]
    """For each group (B or 1, 1, L or 1, M); None where every query may attend to every key."""


class SameSequence:
    """A packed query may attend to the keys of its own sequence; if causal, to none that come after it."""

    def __init__(self, queries: Boundaries, keys: Boundaries, causal: bool) -> None:
        on_host = queries.lengths is not None and keys.lengths is not None
        if on_host and queries.n_sequences != keys.n_sequences:
            raise ShapeError("keys", f"{queries.n_sequences} sequences, as queries have", keys.n_sequences)
        self.queries, self.keys, self.causal = queries, keys, causal
        # One mask serves every layer, so what the kernels want of it is worked out once.
        self.blocks = None if on_host and not torch.compiler.is_compiling() else self._make_blocks()
        self._groups: PaddedGroups | None = None

    def as_mask(self) -> Tensor:
        """The rule written out over the padded view, (B, 1, L, M)."""
        may_attend_BLM = self.keys.exists_BL[:, None, :]
        if self.causal:
            may_attend_BLM = may_attend_BLM & causal_mask(self.keys.longest, may_attend_BLM.device)
        return may_attend_BLM[:, None].expand(-1, -1, self.queries.longest, -1)

    @property
    def groups(self) -> PaddedGroups:
        """Sequences of like length together, so that padding stays small."""
        if self._groups is None:
            self._groups = self._make_groups()
        return self._groups

    def _make_groups(self) -> PaddedGroups:
        n_queries, n_keys = np.asarray(self.queries.known_lengths), np.asarray(self.keys.known_lengths)
        width = np.searchsorted(WIDTHS, np.maximum(n_queries, n_keys))
        groups = [np.flatnonzero(width == w) for w in np.unique(width)]
        keys = PaddedView.of_groups(self.keys, groups)
        queries = keys if self.queries is self.keys else PaddedView.of_groups(self.queries, groups)
        masks = tuple(self._group_mask(n_keys[group]) for group in groups)
        return PaddedGroups(queries, keys, masks)

    def _group_mask(self, n_keys: np.ndarray) -> Tensor | None:
        device, longest = self.keys.sequence_N.device, int(n_keys.max())
        mask = causal_mask(longest, device)[None, None] if self.causal else None
        if n_keys.min() < longest:
            exists = length_mask(torch.from_numpy(n_keys).to(device), longest)
            mask = exists if mask is None else mask & exists
        return mask

    def _make_blocks(self) -> BlockMask:
        """The rule for a block-sparse kernel, from tensors of fixed shape alone.

        Sequence numbers never fall, so a tile of queries meets a tile of keys where their ranges overlap.
        """
        q_seq_N, k_seq_N, causal = self.queries.sequence_N, self.keys.sequence_N, self.causal
        for n_tokens in (q_seq_N.shape[0], k_seq_N.shape[0]):
            if n_tokens % BLOCK:
                expected = (
                    f"a multiple of {BLOCK} packed tokens in what is compiled, as `Packed.filled` makes it"
                )
                raise ShapeError("ids", expected, n_tokens)
        q_tiles, k_tiles = q_seq_N.view(-1, BLOCK), k_seq_N.view(-1, BLOCK)
        q_first, q_last = q_tiles[:, :1], q_tiles[:, -1:]
        k_first, k_last = k_tiles[None, :, 0], k_tiles[None, :, -1]
        meet = (k_first <= q_last) & (q_first <= k_last)
        whole = (q_first == q_last) & (q_first == k_first) & (k_first == k_last)
        if causal:
            row = torch.arange(q_tiles.shape[0], device=q_seq_N.device)
            meet, whole = meet & (row[:, None] >= row), whole & (row[:, None] > row)

        def may_attend(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
            same = q_seq_N[q] == k_seq_N[k]
            return same & (q >= k) if causal else same

        by_query, by_key = _runs(meet, whole), _runs(meet.t(), whole.t())
        return BlockMask(
            (q_seq_N.shape[0], k_seq_N.shape[0]),
            *by_query,
            *by_key,
            BLOCK_SIZE=(BLOCK, BLOCK),
            mask_mod=may_attend,
        )


def _runs(meet: Tensor, whole: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For each row, how many tiles meet it in part and which, how many are wholly allowed and which.

    In each row the tiles that meet it are neighbours, and so are the whole ones among them. So their numbers
    follow from where each run begins: to sort the rows would say the same, and takes a minute to compile.
    """
    n_tiles = meet.shape[1]
    tile = torch.arange(n_tiles, device=meet.device, dtype=torch.int32)
    first, first_whole = (torch.where(run, tile, n_tiles).amin(dim=1, keepdim=True) for run in (meet, whole))
    n_whole = whole.sum(dim=1, keepdim=True, dtype=torch.int32)
    n_partly = meet.sum(dim=1, keepdim=True, dtype=torch.int32) - n_whole
    partly = first + tile
    partly = torch.where(partly >= first_whole, partly + n_whole, partly) % n_tiles
    wholly = (first_whole + tile) % n_tiles
    return tuple(x.contiguous()[None, None] for x in (n_partly[:, 0], partly, n_whole[:, 0], wholly))  # type: ignore[return-value]
