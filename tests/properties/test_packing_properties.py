"""Packing, for sequences of any lengths."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.model.fast.layouts import WIDTHS, padded_groups
from regard.packing import Boundaries, PaddedView, pack, unpack

lengths = st.lists(st.integers(1, 41), min_size=1, max_size=9)
sequences = st.lists(st.lists(st.integers(0, 2**40), min_size=1, max_size=23), min_size=1, max_size=9)
pairs = st.lists(st.tuples(st.integers(1, 41), st.integers(1, 41)), min_size=1, max_size=9)


@given(sequences)
def test_what_is_packed_comes_apart_as_it_was(sequences):
    packed = pack(sequences)
    assert [one.tolist() for one in unpack(packed.ids_N, packed.boundaries)] == sequences
    assert packed.boundaries.known_lengths == tuple(map(len, sequences))


@given(lengths)
def test_each_token_is_found_by_its_sequence_and_its_place(lengths):
    boundaries = Boundaries.of_lengths(lengths)
    found = boundaries.starts_B[boundaries.sequence_N] + boundaries.positions_N
    assert torch.equal(found, torch.arange(sum(lengths)))
    assert torch.equal(boundaries.ends_B - boundaries.starts_B + 1, torch.tensor(lengths))


@given(lengths)
def test_what_is_padded_comes_out_as_it_went_in_and_the_rest_is_zero(lengths):
    boundaries = Boundaries.of_lengths(lengths)
    x = torch.randn(sum(lengths), 2, 3)
    (padded,) = boundaries.padded.pad(x)
    assert padded.shape == (len(lengths), max(lengths), 2, 3)
    assert torch.equal(boundaries.padded.unpad([padded]), x)
    assert torch.equal(padded[boundaries.exists_BL], x)
    assert (padded[~boundaries.exists_BL] == 0).all()


@given(lengths, st.data())
def test_in_any_groups_what_is_padded_comes_out_as_it_went_in(lengths, data):
    group_of = np.array([data.draw(st.integers(0, 2)) for _ in lengths])
    groups = [data.draw(st.permutations(list(np.flatnonzero(group_of == g)))) for g in np.unique(group_of)]
    boundaries = Boundaries.of_lengths(lengths)
    view = PaddedView.of_groups(boundaries, [np.array(group) for group in groups])
    x = torch.randn(sum(lengths), 5)
    blocks = view.pad(x)
    assert torch.equal(view.unpad(blocks), x)
    for group, block in zip(groups, blocks, strict=True):
        for i, row in zip(group, block, strict=True):
            assert torch.equal(row[: lengths[i]], unpack(x, boundaries)[i])
            assert (row[lengths[i] :] == 0).all()


@given(pairs)
def test_groups_of_like_length_hold_each_token_once_and_a_pair_together(pairs):
    queries, keys = (Boundaries.of_lengths(lengths) for lengths in zip(*pairs, strict=True))
    groups = padded_groups(queries, keys, causal=False)
    for view, boundaries in ((groups.queries, queries), (groups.keys, keys)):
        cells = torch.cat([block.flatten() for block in view.pad(torch.arange(1, boundaries.n_tokens + 1))])
        assert sorted(cells[cells > 0].tolist()) == list(range(1, boundaries.n_tokens + 1))
    # Row i of a group's queries and row i of its keys are of one sequence.
    of_queries = groups.queries.pad(queries.sequence_N + 1)
    of_keys = groups.keys.pad(keys.sequence_N + 1)
    for one, other in zip(of_queries, of_keys, strict=True):
        assert torch.equal(one[:, 0], other[:, 0])


@given(pairs)
def test_in_a_group_the_longest_is_less_than_twice_the_shortest_or_short(pairs):
    """Padding stays small: the widths that share a group lie between two neighbours of one list."""
    queries, keys = (Boundaries.of_lengths(lengths) for lengths in zip(*pairs, strict=True))
    groups = padded_groups(queries, keys, causal=False)
    for block in groups.keys.pad(keys.sequence_N):
        longer = [max(pairs[i]) for i in block[:, 0].tolist()]
        assert len({int(np.searchsorted(WIDTHS, n)) for n in longer}) == 1
        assert max(longer) <= max(2 * min(longer), int(WIDTHS[0]))


@given(lengths, st.integers(1, 50))
def test_a_filler_makes_up_the_number_and_leaves_the_rest_alone(lengths, missing):
    packed = pack([list(range(n)) for n in lengths])
    filled = packed.filled(sum(lengths) + missing)
    n = sum(lengths)
    assert filled.boundaries.known_lengths == (*lengths, missing)
    assert torch.equal(filled.ids_N[:n], packed.ids_N)
    assert torch.equal(filled.boundaries.positions_N[:n], packed.boundaries.positions_N)
    assert int(filled.boundaries.positions_N.max()) < max(lengths)
