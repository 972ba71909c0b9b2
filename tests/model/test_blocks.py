"""The tiles that a block-sparse kernel visits, against every pair of tokens and against torch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import BlockMask

from regard.model.fast.layouts import TILE, tiles
from regard.packing import Boundaries


def bare(sequence_N):
    """Boundaries as a compiled step has them: it knows no lengths."""
    return Boundaries(sequence_N, torch.zeros_like(sequence_N), None, None)


@st.composite
def packs(draw):
    """Sequence numbers of a pack of a few tiles: none falls, and each of `n` appears."""
    n_tiles, n = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    cuts = draw(st.sets(st.integers(1, n_tiles * TILE - 1), min_size=n - 1, max_size=n - 1))
    # Where a cut falls on the edge of a tile, a tile can be one sequence's alone.
    edges = draw(st.booleans())
    cuts = {max(1, cut // TILE * TILE) if edges else cut for cut in cuts}
    starts = torch.zeros(n_tiles * TILE, dtype=torch.int64)
    starts[sorted(cuts)] = 1
    return starts.cumsum(0)


def tiles_by_definition(q_N, k_N, causal):
    """Tiles in which some pair may attend, and tiles in which every pair may: (query tiles, key tiles)."""
    may = q_N[:, None] == k_N[None, :]
    if causal:
        may = may & torch.ones_like(may).tril()
    tiled = may.view(len(q_N) // TILE, TILE, len(k_N) // TILE, TILE)
    some, every = tiled.any(dim=3).any(dim=1), tiled.all(dim=3).all(dim=1)
    return some & ~every, every


def dense(counts, numbers):
    """The tiles that the first `counts` of each row's `numbers` name."""
    found = torch.zeros(numbers.shape[-2:], dtype=torch.bool)
    for row, n in enumerate(counts[0, 0].tolist()):
        named = numbers[0, 0, row, :n].long()
        assert len(set(named.tolist())) == n, "a tile is visited twice"
        found[row, named] = True
    return found


def check(blocks, partly, every):
    by_query = (
        dense(blocks.kv_num_blocks, blocks.kv_indices),
        dense(blocks.full_kv_num_blocks, blocks.full_kv_indices),
    )
    by_key = (
        dense(blocks.q_num_blocks, blocks.q_indices),
        dense(blocks.full_q_num_blocks, blocks.full_q_indices),
    )
    assert torch.equal(by_query[0], partly)
    assert torch.equal(by_query[1], every)
    assert torch.equal(by_key[0], partly.t())
    assert torch.equal(by_key[1], every.t())


@pytest.mark.parametrize("causal", [False, True])
@given(sequence_N=packs())
def test_self_attention_visits_the_tiles_that_the_rule_asks_for(causal, sequence_N):
    boundaries = bare(sequence_N)
    blocks = tiles(boundaries, boundaries, causal)
    check(blocks, *tiles_by_definition(sequence_N, sequence_N, causal))


@given(queries_N=packs(), keys_N=packs())
def test_cross_attention_visits_the_tiles_that_the_rule_asks_for(queries_N, keys_N):
    n = min(int(queries_N[-1]), int(keys_N[-1]))
    queries_N, keys_N = queries_N.clamp(max=n), keys_N.clamp(max=n)
    blocks = tiles(bare(queries_N), bare(keys_N), causal=False)
    check(blocks, *tiles_by_definition(queries_N, keys_N, causal=False))


@pytest.mark.parametrize("causal", [False, True])
@given(sequence_N=packs())
def test_torch_derives_the_same_key_side_from_the_query_side(causal, sequence_N):
    boundaries = bare(sequence_N)
    ours = tiles(boundaries, boundaries, causal)
    theirs = BlockMask.from_kv_blocks(
        ours.kv_num_blocks,
        ours.kv_indices,
        ours.full_kv_num_blocks,
        ours.full_kv_indices,
        BLOCK_SIZE=TILE,
        mask_mod=ours.mask_mod,
        seq_lengths=ours.seq_lengths,
    )
    for kind in ("q", "full_q"):
        counts, numbers = f"{kind}_num_blocks", f"{kind}_indices"
        assert getattr(ours, counts).dtype == getattr(theirs, counts).dtype
        assert getattr(ours, numbers).shape == getattr(theirs, numbers).shape
        assert torch.equal(getattr(ours, counts), getattr(theirs, counts))
        assert torch.equal(
            dense(getattr(ours, counts), getattr(ours, numbers)),
            dense(getattr(theirs, counts), getattr(theirs, numbers)),
        )


@given(sequence_N=packs())
def test_every_number_names_a_tile_that_exists(sequence_N):
    """Kernels read ahead, past the count."""
    boundaries = bare(sequence_N)
    blocks = tiles(boundaries, boundaries, causal=True)
    for numbers in (blocks.kv_indices, blocks.q_indices, blocks.full_kv_indices, blocks.full_q_indices):
        assert int(numbers.min()) >= 0
        assert int(numbers.max()) < len(sequence_N) // TILE
        assert numbers.dtype == torch.int32


def test_within_a_tile_the_rule_is_asked_token_by_token():
    q_N, k_N = torch.arange(2 * TILE) // 50, torch.arange(TILE) // 21
    within = tiles(bare(q_N), bare(k_N), causal=False).mask_mod
    causal = tiles(bare(q_N), bare(q_N), causal=True).mask_mod
    zero = torch.tensor(0)
    q, k = torch.arange(2 * TILE)[:, None], torch.arange(TILE)[None, :]
    assert torch.equal(within(zero, zero, q, k), q_N[:, None] == k_N)
    own = torch.arange(2 * TILE)[None, :]
    assert torch.equal(causal(zero, zero, q, own), (q_N[:, None] == q_N) & (q >= own))
