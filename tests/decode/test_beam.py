"""Beam search against its definition, over steps that need no model."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decode.beam import Beams, Candidates, Ended, beam_search, expand, retire, select
from regard.decode.constraints import NEVER
from regard.decode.walk import likeliest, walk
from tests.decode import plain
from tests.decode.rigged import EOS, constraints, log, random_rig, start, stepping, table_rig

seeds = st.integers(0, 2**32)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


def search(rig, *limits, width, alpha=0.0, n_best=1, patience=None, **others):
    state, here = start(len(limits), width), constraints(*limits, **others)
    settings = {"width": width, "alpha": alpha, "n_best": n_best, "patience": patience}
    return beam_search(stepping(rig), state, here, **settings)


def assert_same(found, expected):
    assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert math.isclose(one.score, other.score, rel_tol=1e-5)


@settings(max_examples=60)
@given(seeds, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 5), alphas, st.data())
def test_every_source_finds_what_a_plain_search_to_the_very_limit_finds(seed, limits, width, alpha, data):
    """The plain one never stops early, so no source may be settled while something better can come."""
    rig = random_rig(seed, n_tokens=data.draw(st.integers(2, 7)))
    n_best = data.draw(st.integers(1, width))
    min_length = data.draw(st.integers(0, 3))
    prefixes = tuple(tuple(data.draw(st.lists(st.just(1), max_size=limit))) for limit in limits)
    found = search(
        rig, *limits, width=width, alpha=alpha, n_best=n_best, min_length=min_length, prefixes=prefixes
    )
    for source, (limit, prefix) in enumerate(zip(limits, prefixes, strict=True)):
        expected = plain.beam(rig, source, limit, width, alpha, prefix=prefix, min_length=min_length)
        assert_same(found[source], expected[:n_best])


@given(seeds, st.integers(1, 4), alphas, st.sampled_from([0.5, 1, 2]))
def test_with_a_patience_it_stops_where_the_plain_search_stops(seed, width, alpha, patience):
    rig = random_rig(seed, n_tokens=5)
    found = search(rig, 9, 5, width=width, alpha=alpha, patience=patience)
    for source, limit in enumerate((9, 5)):
        expected = plain.beam(rig, source, limit, width, alpha, patience=patience)
        assert_same(found[source], expected[:1])


def test_patience_can_miss_the_best():
    """Short outputs end first; the long one is worth waiting for once its length is made up for."""
    table = {1: [0.3, 0.0, 0.5, 0.2], 2: [0.1, 0.0, 0.0, 0.9], 3: [0.05, 0.0, 0.0, 0.95]}
    ((patient,),) = search(table_rig(table), 9, width=2, alpha=2.0)
    ((hasty,),) = search(table_rig(table), 9, width=2, alpha=2.0, patience=0.5)
    assert hasty.ids == ()
    assert patient.score > hasty.score


@given(seeds, alphas)
def test_a_beam_as_wide_as_all_there_is_finds_the_best_of_all(seed, alpha):
    n_tokens, limit = 3, 4
    rig = random_rig(seed, n_tokens)
    (found,) = search(rig, limit, width=n_tokens**limit, alpha=alpha, n_best=11)
    assert_same(found, plain.everything(rig, 0, limit, n_tokens, alpha)[:11])


@given(seeds, st.lists(st.integers(1, 11), min_size=1, max_size=5))
def test_a_beam_of_one_is_greedy_search(seed, limits):
    rig = random_rig(seed, n_tokens=7)
    found = search(rig, *limits, width=1, alpha=0.6)
    greedily = walk(stepping(rig), start(len(limits)), constraints(*limits), likeliest, 0.6)
    assert [one.ids for (one,) in found] == [one.ids for one in greedily]
    for (one,), other in zip(found, greedily, strict=True):
        assert math.isclose(one.score, other.score, rel_tol=1e-5)


def test_log_probabilities_are_told_token_by_token():
    table = {1: [0.1, 0.0, 0.6, 0.3], 2: [0.2, 0.0, 0.3, 0.5], 3: [0.7, 0.0, 0.2, 0.1]}
    ((best, second),) = search(table_rig(table), 9, width=4, n_best=2)
    assert (best.ids, second.ids) == ((2, 3), (3,))
    assert best.token_log_probs == pytest.approx([math.log(p) for p in (0.6, 0.5, 0.7)])
    assert second.token_log_probs == pytest.approx([math.log(p) for p in (0.3, 0.7)])


def test_a_source_with_fewer_outputs_than_asked_for_gives_what_there_is():
    table = {1: [0.4, 0.0, 0.6], 2: [1.0, 0.0, 0.0]}
    (found,) = search(table_rig(table), 9, width=3, n_best=3)
    assert [one.ids for one in found] == [(2,), ()]


class TestTheMoves:
    """On numbers that one can do by hand: one source, a beam of two, tokens 0 (ends), 1, 2."""

    beams = Beams(
        scores_BW=torch.tensor([[log(0.5), log(0.4)]]),
        last_BW=torch.tensor([[1, 2]]),
        sources_B=torch.tensor([0]),
    )
    log_probs = torch.tensor([[log(0.6), log(0.3), log(0.1)], [log(0.5), log(0.05), log(0.45)]])

    def test_expand_takes_twice_the_width_from_all_rows(self):
        candidates = expand(self.beams, self.log_probs)
        assert candidates.scores_BC.exp().tolist()[0] == pytest.approx([0.3, 0.2, 0.18, 0.15])
        assert candidates.rows_BC.tolist() == [[0, 1, 1, 0]]
        assert candidates.ids_BC.tolist() == [[EOS, EOS, 2, 1]]

    def test_select_replaces_what_ends_by_the_next_in_line(self):
        going, ending = select(expand(self.beams, self.log_probs), 2, EOS, torch.tensor([False]))
        assert going.ids_BC.tolist() == [[2, 1]]
        assert going.rows_BC.tolist() == [[1, 0]]
        assert ending.scores_BC.exp().tolist()[0] == pytest.approx([0.3, 0.2])

    def test_select_counts_only_ends_among_the_first(self):
        candidates = Candidates(
            torch.tensor([[-1.0, -2.0, -3.0, -4.0]]), torch.tensor([[0, 1, 0, 1]]),
            torch.tensor([[1, 2, EOS, 3]]), torch.zeros(1, 4),
        )  # fmt: skip
        going, ending = select(candidates, 2, EOS, torch.tensor([False]))
        assert going.ids_BC.tolist() == [[1, 2]]
        assert ending.scores_BC.tolist() == [[NEVER, NEVER]]
        _, ending = select(candidates, 2, EOS, torch.tensor([True]))
        assert ending.scores_BC.tolist() == [[-1.0, -2.0]]

    @pytest.mark.parametrize(("best", "settled"), [(-0.5, True), (-0.6, False)])
    def test_retire_weighs_the_best_that_can_still_come(self, best, settled):
        """The best that goes on has log-probability -1; at the limit it would be divided by 2."""
        beams = Beams(torch.tensor([[-1.0, -3.0]]), torch.tensor([[1, 2]]), torch.tensor([0]))
        ended = Ended(torch.tensor([[0.0, best]]), *[torch.empty(0)] * 4, torch.tensor([2]))
        assert retire(beams, ended, torch.tensor([2.0]), None).tolist() == [settled]
