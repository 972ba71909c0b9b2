"""Packed batches as the fast kernels need them: padded groups of similar length, or FlexAttention's tiles.

`SameSequence` (`masks.py`) computes them once for all layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from regard.errors import ShapeError
from regard.packing import Boundaries, PaddedView

TILE = 128
"""Tokens in one tile of FlexAttention; a compiled pack holds a multiple of it."""
WIDTHS = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024])
"""Sequences share a padded group if the first of these that is large enough is the same."""


@dataclass(frozen=True, eq=False)
class PaddedGroups:
    """Queries and keys of a batch, padded group by group, with a mask for each group."""

    queries: PaddedView
    keys: PaddedView
    may_attend: tuple[Tensor | None, ...]
    """For each group (B or 1, 1, L or 1, M); None where every query may attend to every key."""


def padded_groups(queries: Boundaries, keys: Boundaries, causal: bool) -> PaddedGroups:
    """Sequences of similar length together, so that there is little padding."""
    n_queries, n_keys = np.asarray(queries.known_lengths), np.asarray(keys.known_lengths)
    width = np.searchsorted(WIDTHS, np.maximum(n_queries, n_keys))
    groups = [np.flatnonzero(width == w) for w in np.unique(width)]
    padded_keys = PaddedView.of_groups(keys, groups)
    padded_queries = padded_keys if queries is keys else PaddedView.of_groups(queries, groups)
    device = keys.sequence_N.device
    masks = tuple(_group_mask(n_keys[group], causal, device) for group in groups)
    return PaddedGroups(padded_queries, padded_keys, masks)


def _group_mask(n_keys: np.ndarray, causal: bool, device: torch.device) -> Tensor | None:
    longest = int(n_keys.max())
    place_M = torch.arange(longest, device=device)
    may_attend = (place_M <= place_M[:, None])[None, None] if causal else None
    if n_keys.min() < longest:
        exists = (place_M < torch.from_numpy(n_keys).to(device)[:, None])[:, None, None]
        may_attend = exists if may_attend is None else may_attend & exists
    return may_attend


def tiles(queries: Boundaries, keys: Boundaries, causal: bool) -> BlockMask:
    """The mask for FlexAttention, computed from tensors of fixed shape only.

    Sequence numbers never fall, so a tile of queries meets a tile of keys where their ranges overlap.
    """
    q_seq_N, k_seq_N = queries.sequence_N, keys.sequence_N
    for n_tokens in (q_seq_N.shape[0], k_seq_N.shape[0]):
        if n_tokens % TILE:
            expected = f"a multiple of {TILE} packed tokens in a compiled step; call `Packed.filled` first"
            raise ShapeError("ids", expected, n_tokens, code="unfilled_pack")
    q_tiles, k_tiles = q_seq_N.view(-1, TILE), k_seq_N.view(-1, TILE)
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
        BLOCK_SIZE=(TILE, TILE),
        mask_mod=may_attend,
    )


def _runs(meet: Tensor, whole: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For each row, the number and indices of the tiles that meet it in part, and of those that do wholly.

    In each row the tiles that meet it are neighbours, and so are the whole ones among them. So their indices
    follow from where each run begins; sorting the rows would give the same and takes a minute to compile.
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
