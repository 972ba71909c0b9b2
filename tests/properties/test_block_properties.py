"""The tiles of a compiled step: which of them a block-sparse kernel reads whole, reads with a mask, or skips.

On CPUs that kernel reads every tile with the mask, so only this test sees a tile in the wrong list.
"""

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.model.fast.layouts import TILE, tiles
from regard.packing import Boundaries, pack

lengths = st.integers(1, 2 * TILE)
pairs = st.lists(st.tuples(lengths, lengths), min_size=1, max_size=5)


def filled(lengths: tuple[int, ...]) -> Boundaries:
    """Made up to whole tiles, as a compiled step wants it."""
    n_tiles = sum(lengths) // TILE + 1
    b = pack([[0] * n for n in lengths]).filled(n_tiles * TILE).boundaries
    return Boundaries(b.sequence_N, b.positions_N, None, None)


def listed(counts: torch.Tensor, indices: torch.Tensor) -> set[tuple[int, int]]:
    """(tile of queries, tile of keys), each at most once."""
    tiles = [(i, j) for i, n in enumerate(counts[0, 0].tolist()) for j in indices[0, 0, i, :n].tolist()]
    assert len(tiles) == len(set(tiles))
    return set(tiles)


@settings(max_examples=15)
@given(pairs, st.booleans())
@example(pairs=[(3, 7), (263, 257), (5, 31)], causal=True)
@example(pairs=[(3, 7), (263, 257), (5, 31)], causal=False)
def test_a_tile_is_read_whole_where_all_may_attend_and_skipped_where_nobody_may(pairs, causal):
    queries, keys = (filled(lengths) for lengths in zip(*pairs, strict=True))
    keys = queries if causal else keys
    blocks = tiles(queries, keys, causal)
    q, k = torch.arange(queries.n_tokens)[:, None], torch.arange(keys.n_tokens)
    may_attend = queries.sequence_N[:, None] == keys.sequence_N
    may_attend = may_attend & (q >= k) if causal else may_attend
    assert torch.equal(blocks.mask_mod(torch.tensor(0), torch.tensor(0), q, k), may_attend)

    masked = listed(blocks.kv_num_blocks, blocks.kv_indices)
    whole = listed(blocks.full_kv_num_blocks, blocks.full_kv_indices)
    assert not masked & whole
    for i, rows in enumerate(may_attend.split(TILE)):
        for j, tile in enumerate(rows.split(TILE, dim=1)):
            assert ((i, j) in whole) == bool(tile.all())
            assert ((i, j) in masked) == bool(tile.any() and not tile.all())
