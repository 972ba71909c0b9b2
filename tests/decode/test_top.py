"""The largest few, found by groups, are those that sorting finds."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.step import GROUPS, top

(GROUP,) = GROUPS["cpu"]


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([7, 3 * GROUP, 11 * GROUP, 11 * GROUP + 1]))
def test_they_are_those_of_a_sort(seed, k, n):
    x = torch.randn(3, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values, places = top(x, k)
    expected = x.sort(dim=-1, descending=True)
    assert torch.equal(values, expected.values[:, :k])
    assert torch.equal(places, expected.indices[:, :k])


def test_what_must_never_be_comes_last():
    x = torch.full((1, 5 * GROUP), float("-inf"))
    x[0, 77] = -3.0
    assert top(x, 2)[1][0, 0] == 77
