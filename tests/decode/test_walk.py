"""Greedy search, and what it shares with sampling, over steps that need no model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.walk import likeliest, stream, walk
from tests.decode.rigged import EOS, constraints, random_rig, start, stepping, table_rig

# After the token in front (1 starts), how likely the next ones (0 ends) are.
TABLE = {1: [0.1, 0.0, 0.6, 0.3], 2: [0.2, 0.0, 0.3, 0.5], 3: [0.7, 0.0, 0.2, 0.1]}
seeds = st.integers(0, 2**32)
limits_of_some = st.lists(st.integers(1, 11), min_size=1, max_size=7)


def greedily(rig, *limits, **others):
    return walk(stepping(rig), start(len(limits)), constraints(*limits, **others), likeliest, 0.6)


def by_hand(rig, source, limit):
    """The likeliest token, again and again."""
    ids = ()
    for _ in range(limit):
        log_probs = rig(source, ids)
        ids = (*ids, log_probs.index(max(log_probs)))
        if ids[-1] == EOS:
            break
    return ids


def test_it_takes_the_likeliest_token_until_the_end():
    (found,) = greedily(table_rig(TABLE), 9)
    assert (found.ids, found.finished) == ((2, 3), True)
    assert found.token_log_probs == pytest.approx([math.log(p) for p in (0.6, 0.5, 0.7)])
    assert found.score == pytest.approx(math.log(0.6 * 0.5 * 0.7) / (8 / 6) ** 0.6)


def test_a_row_stops_at_its_own_limit_and_says_that_it_did_not_end():
    cut, whole = greedily(table_rig(TABLE), 1, 9)
    assert (cut.ids, cut.finished) == ((2,), False)
    assert whole.finished


@given(seeds, limits_of_some)
def test_every_row_goes_its_own_way_whoever_leaves(seed, limits):
    rig = random_rig(seed, n_tokens=5)
    for source, (found, limit) in enumerate(zip(greedily(rig, *limits), limits, strict=True)):
        expected = by_hand(rig, source, limit)
        assert found.ids == tuple(token for token in expected if token != EOS)
        assert found.finished == (expected[-1] == EOS)
        assert len(found.token_log_probs) == len(expected)
        assert found.log_prob == pytest.approx(
            sum(rig(source, expected[:t])[token] for t, token in enumerate(expected)), rel=1e-5
        )


@given(seeds, st.integers(1, 11), st.integers(0, 13))
def test_no_output_is_shorter_than_asked_for_unless_its_limit_is(seed, limit, min_length):
    (found,) = greedily(random_rig(seed, n_tokens=3), limit, min_length=min_length)
    assert min(min_length, limit) <= len(found.ids) <= limit


@given(seeds, st.lists(st.lists(st.integers(1, 4), max_size=5), min_size=1, max_size=4))
def test_an_output_begins_as_asked_for_and_goes_on_as_it_would_from_there(seed, prefixes):
    rig = random_rig(seed, n_tokens=5)
    prefixes = tuple(map(tuple, prefixes))
    found = greedily(rig, *[9] * len(prefixes), prefixes=prefixes)
    for source, (one, prefix) in enumerate(zip(found, prefixes, strict=True)):
        rest = by_hand(lambda _, ids, s=source, p=prefix: rig(s, (*p, *ids)), 0, 9 - len(prefix))
        assert one.ids == (*prefix, *(token for token in rest if token != EOS))
        told = [rig(source, one.ids[:t])[token] for t, token in enumerate(one.ids)]
        assert one.token_log_probs[: len(told)] == pytest.approx(told, rel=1e-5)


@given(seeds, st.integers(1, 11), st.lists(st.integers(1, 4), max_size=3))
def test_streamed_tokens_are_those_of_the_output(seed, limit, prefix):
    rig, here = random_rig(seed, n_tokens=5), {"prefixes": (tuple(prefix[:limit]),)}
    (found,) = greedily(rig, limit, **here)
    ids = (*found.ids, *([EOS] if found.finished else []))
    assert tuple(stream(stepping(rig), start(1), constraints(limit, **here), likeliest)) == ids


def test_a_stream_asks_for_no_more_than_it_has_told():
    asked = []

    def rig(_source, ids):
        asked.append(ids)
        return table_rig(TABLE)(0, ids)

    tokens = stream(stepping(rig), start(1), constraints(9), likeliest)
    assert next(tokens) == 2
    assert len(asked) == 1
    assert next(tokens) == 3
    assert len(asked) == 2
