"""Loops are told from what merely repeats itself for a while."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.hypothesis import LONGEST_ROUND, ROUNDS, TOKENS, loops


@given(
    st.lists(st.integers(0, 9), max_size=20),
    st.lists(st.integers(0, 9), min_size=1, max_size=LONGEST_ROUND),
    st.integers(0, LONGEST_ROUND),
)
def test_a_round_repeated_to_the_end_is_a_loop_wherever_it_is_cut_off(before, around, cut):
    rounds = ROUNDS + 1 + TOKENS // len(around)
    assert loops([*before, *around * rounds, *around[: cut % len(around)]])


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [7] * (TOKENS - 1),
        [1, 2, 3, 4, 5, 6, 7] * (ROUNDS - 1),
        [7] * 40 + [8],
        list(range(100)),
        [1, 2, 3, 4, 5, 6, 7, 8, 9] * 2 + [1, 2, 3, 4] * 3,
    ],
)
def test_these_are_no_loops(ids):
    assert not loops(ids)
