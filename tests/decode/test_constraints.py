"""What outputs may not contain, and requests that cannot be met."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.constraints import NEVER, without_repeats
from regard.decode.walk import likeliest, walk
from regard.errors import RequestError
from tests.decode.rigged import EOS, constraints, random_rig, start, stepping
from tests.refusals import refused


@pytest.mark.parametrize(
    ("so_far", "n", "forbidden"),
    [
        ([1, 2, 3, 1, 2], 3, {3}),
        ([1, 2, 3, 1, 2, 4, 1, 2], 3, {3, 4}),
        ([1, 2, 3, 2, 1], 3, set()),
        ([5, 5, 5], 2, {5}),
        ([4, 2, 4], 1, {2, 4}),
    ],
)
def test_tokens_that_would_repeat_what_is_there_are_forbidden(so_far, n, forbidden):
    log_probs = without_repeats(torch.full((1, 7), -2.0), torch.tensor([so_far]), n)
    assert {token for token, value in enumerate(log_probs[0].tolist()) if value == NEVER} == forbidden
    assert all(value in (-2.0, NEVER) for value in log_probs[0].tolist())


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_nothing_comes_twice_in_outputs_that_may_not_repeat(seed, n):
    rig = random_rig(seed, n_tokens=4, sharpness=4.0)
    found = walk(stepping(rig), start(3), constraints(23, 7, 31, no_repeat=n), likeliest, 0.0)
    for one in found:
        runs = [one.ids[i : i + n] for i in range(len(one.ids) - n + 1)]
        assert len(runs) == len(set(runs))


def test_without_the_rule_things_come_twice():
    found = walk(stepping(lambda *_: [-9.0, -1.0, -2.0]), start(1), constraints(7), likeliest, 0.0)
    assert found[0].ids == (1,) * 7


@pytest.mark.parametrize(
    ("limits", "others", "code", "place"),
    [
        ((3, 0), {}, "bad_limit", "0 tokens"),
        ((3, 3), {"prefixes": ((), (2, EOS))}, "bad_prefix", "contains 0"),
        (
            (3, 2),
            {"prefixes": ((2,), (2, 2, 2))},
            "bad_prefix",
            "the prefix has 3 tokens, the output has at most 2: shorten the prefix",
        ),
    ],
)
def test_constraints_that_cannot_be_met_are_refused(limits, others, code, place):
    with refused(code, place, error=RequestError):
        constraints(*limits, **others)
