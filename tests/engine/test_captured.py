"""Captured searches: fixed shapes, shared places and moves between sizes change no answer."""

import pytest
import torch

from regard.decode.beam import beam_search
from regard.decode.constraints import Constraints
from regard.decode.walk import likeliest, walk
from regard.engine.engines import captured
from regard.engine.engines.captured import CapturedSearches, rounded_up
from regard.packing import pack
from tests.model.small import random_ids, small_model

BOS, EOS = 1, 0
LENGTHS = (7, 2, 13, 1, 5, 11, 3)
DEPARTURES = {
    "the paper's": {},
    "rotary": {"positions": "rotary", "norm_position": "pre", "norm": "rms"},
    "alibi": {"positions": "alibi"},
    "t5-relative": {"positions": "t5-relative", "similarity": "dot", "norm_position": "pre"},
    "learned, d_v free": {"positions": "learned", "d_v": 6, "similarity": "cosine"},
}


@pytest.fixture(params=DEPARTURES.values(), ids=DEPARTURES)
def model(request):
    torch.manual_seed(3)
    return small_model(max_length=40, shared_embeddings="none", **request.param).eval()


@pytest.fixture
def _small_sizes(monkeypatch):
    """Sizes that must be left for others many times in a search."""
    monkeypatch.setattr(captured, "LENGTHS", 4)


def ordinary(model, memory, constraints, width, n_best):
    state = model.start(memory, max(constraints.limits), width)
    if width == 1:
        return [(one,) for one in walk(model.step, state, constraints, likeliest, 0.6)]
    return beam_search(model.step, state, constraints, width=width, alpha=0.6, n_best=n_best)


@pytest.mark.usefixtures("_small_sizes")
@pytest.mark.parametrize(("width", "n_best"), [(1, 1), (3, 3), (4, 1)])
def test_a_search_finds_the_same_by_both_roads(model, width, n_best):
    torch.manual_seed(5)
    inputs = pack(random_ids(LENGTHS))
    constraints = Constraints(bos=BOS, eos=EOS, limits=tuple(5 + 3 * n for n in (4, 1, 8, 2, 3, 9, 1)))
    searches = CapturedSearches(model, EOS)
    with torch.inference_mode():
        memory = model.encode(inputs)
        found = searches.search(memory, constraints, width=width, alpha=0.6, n_best=n_best)
        expected = ordinary(model, memory, constraints, width, n_best)
    assert [[one.ids for one in best] for best in found] == [[one.ids for one in best] for best in expected]
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-5)
    assert len({shape[0] for shape in searches._steps}) > 1, "fewer sources moved to a smaller size"
    assert len({shape[2] for shape in searches._steps}) > 2, "longer outputs moved to a greater room"


def test_a_second_search_is_not_told_of_the_first(model):
    torch.manual_seed(7)
    memories = [model.encode(pack(random_ids(lengths))) for lengths in ((9, 4, 6), (3, 8))]
    used = CapturedSearches(model, EOS)
    how = {"width": 3, "alpha": 0.6, "n_best": 2}
    with torch.inference_mode():
        used.search(memories[0], Constraints(bos=BOS, eos=EOS, limits=(12, 12, 12)), **how)
        constraints = Constraints(bos=BOS, eos=EOS, limits=(9, 12))
        assert used.search(memories[1], constraints, **how) == CapturedSearches(model, EOS).search(
            memories[1], constraints, **how
        )


def test_outputs_as_long_as_the_model_can_write(model):
    memory = model.encode(pack(random_ids((3,))))
    limit = model.config.max_length - 1
    constraints = Constraints(bos=BOS, eos=model.config.vocab_size - 1, limits=(limit,))
    with torch.inference_mode():
        ((best,),) = CapturedSearches(model, constraints.eos).search(
            memory, constraints, width=2, alpha=0.0, n_best=1
        )
        ((expected,),) = ordinary(model, memory, constraints, 2, 1)
    assert best.ids == expected.ids


def test_sizes_are_few_and_leave_at_most_a_third_empty():
    sizes = [rounded_up(n) for n in range(1, 600)]
    assert all(n <= size <= max(1, 3 * n // 2) for n, size in enumerate(sizes, start=1))
    assert len(set(sizes)) == 19
