"""Captured steps: fixed shapes, shared places and moves between stores change no answer."""

import pytest
import torch

from regard.decode.beam import beam_search
from regard.decode.greedy import likeliest
from regard.decode.terms import Terms
from regard.decode.walk import walk
from regard.engine import captured
from regard.engine.captured import CapturedSteps, rounded_up
from regard.packing import pack
from tests.model.small import random_ids, small_model

BOS, EOS = 1, 0
LENGTHS = (7, 2, 13, 1, 5, 11, 3)
DEPARTURES = {
    "the paper's": {},
    "rotary": {"positions": "rotary", "norm_position": "pre", "norm": "rms"},
    "learned, d_v free": {"positions": "learned", "d_v": 6, "similarity": "cosine"},
}


@pytest.fixture(params=DEPARTURES.values(), ids=DEPARTURES)
def model(request):
    torch.manual_seed(3)
    return small_model(max_length=40, shared_embeddings="none", **request.param).eval()


@pytest.fixture
def small_stores(monkeypatch):
    """Stores that must be left for others many times in a search."""
    monkeypatch.setattr(captured, "LENGTHS", 4)


def both_roads(model, search):
    """What a search finds with the ordinary cache, and with captured steps."""
    torch.manual_seed(5)
    inputs = pack(random_ids(LENGTHS))
    terms = Terms(bos=BOS, eos=EOS, limits=tuple(5 + 3 * n for n in (4, 1, 8, 2, 3, 9, 1)))
    with torch.inference_mode():
        memory = model.encode(inputs)
        steps = CapturedSteps(model)
        ordinary = search(model.step, lambda beams: model.start(memory, max(terms.limits), beams), terms)
        fast = search(steps.step, lambda beams: steps.start(memory, beams), terms)
    return ordinary, fast, steps


def greedy(step, start, terms):
    return [(one,) for one in walk(step, start(1), terms, likeliest, 0.6)]


def beam(step, start, terms):
    return beam_search(step, start(3), terms, width=3, alpha=0.6, n_best=3)


@pytest.mark.usefixtures("small_stores")
@pytest.mark.parametrize("search", [greedy, beam])
def test_a_search_finds_the_same_by_both_roads(model, search):
    ordinary, fast, steps = both_roads(model, search)
    assert [[one.ids for one in best] for best in fast] == [[one.ids for one in best] for best in ordinary]
    for ours, theirs in zip(fast, ordinary, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-5)
    sizes = {shape[0] for shape in steps._steps}
    rooms = {shape[2] for shape in steps._steps}
    assert len(sizes) > 1 and len(rooms) > 2, "the search moved between stores, of other sizes and rooms"


def test_a_second_search_is_not_told_of_the_first(model):
    torch.manual_seed(7)
    memories = [model.encode(pack(random_ids(lengths))) for lengths in ((9, 4), (3, 8))]
    terms = Terms(bos=BOS, eos=EOS, limits=(12, 12))
    used, fresh = CapturedSteps(model), CapturedSteps(model)
    with torch.inference_mode():
        beam(used.step, lambda beams: used.start(memories[0], beams), terms)
        after = beam(used.step, lambda beams: used.start(memories[1], beams), terms)
        alone = beam(fresh.step, lambda beams: fresh.start(memories[1], beams), terms)
    assert after == alone


def test_sizes_are_few_and_leave_at_most_a_third_empty():
    sizes = [rounded_up(n) for n in range(1, 600)]
    assert all(n <= size <= max(1, 3 * n // 2) for n, size in enumerate(sizes, start=1))
    assert len(set(sizes)) == 19
