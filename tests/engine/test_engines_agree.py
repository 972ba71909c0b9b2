"""Two engines, one model: the same outputs with the same scores."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from regard.bundle import describe_bundle, load_bundle
from regard.bundle.bundle import add_file
from regard.bundle.manifest import SHORTLIST
from regard.decode.shortlist import Shortlist
from regard.engine.engines.ctranslate2_engine import CTranslate2Engine
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.engine.loading import shortlist_of
from tests.exchange.folders import BOS, EOS, sequences


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_engines_find_the_same_best_output(reverser, beam_size, alpha):
    """Where they part, theirs is no better: CTranslate2 stops once enough hypotheses have ended."""
    torch_engine = TorchEngine([load_bundle(reverser).model], bos=BOS, eos=EOS)
    ctranslate2_engine = CTranslate2Engine(reverser, bos=BOS, eos=EOS, quantisation="float32", threads=1)
    requests = [Request(ids=ids) for ids in sequences(200, 9, seed=3, vocab_size=13)]
    search = Search(beam_size=beam_size, length_penalty=alpha, extra_length=5)
    pairs = [
        (ours[0], theirs[0])
        for ours, theirs in zip(
            torch_engine.decode(requests, search), ctranslate2_engine.decode(requests, search), strict=True
        )
    ]
    same = [ours.ids == theirs.ids for ours, theirs in pairs]
    assert sum(same) >= 0.95 * len(same)
    for ours, theirs in pairs:
        if ours.ids == theirs.ids:
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)


@pytest.fixture
def shortened(reverser, tmp_path):
    """A function that returns the model folder with a shortlist."""

    def make(shortlist):
        folder = shutil.copytree(reverser, tmp_path / f"model-{len(shortlist.ids)}")
        add_file(folder, SHORTLIST, shortlist.to_bytes())
        return folder

    return make


def engines(folder):
    described = describe_bundle(folder)
    model, shortlist = load_bundle(folder).model, shortlist_of(described)
    return (
        TorchEngine([model], bos=BOS, eos=EOS, shortlist=shortlist),
        CTranslate2Engine(described, bos=BOS, eos=EOS, quantisation="float32", threads=1),
    )


REQUESTS = [Request(ids=ids) for ids in sequences(100, 9, seed=5, vocab_size=13)]
SHORT = Shortlist.from_rows([[0, 1, EOS, *range(i, min(i + 3, 13))] for i in range(13)])
"""Of a reverser, whose outputs are its inputs: these, and the next two."""


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("place", [0, 1])
def test_a_shortlist_of_everything_changes_nothing(reverser, shortened, beam_size, place):
    engine = engines(shortened(Shortlist.of_everything(13)))[place]
    without = engines(reverser)[place]
    search = Search(beam_size=beam_size, extra_length=5, shortlist=True)
    for ours, others in zip(engine.decode(REQUESTS, search), without.decode(REQUESTS, search), strict=True):
        assert ours[0].ids == others[0].ids
        assert ours[0].score == pytest.approx(others[0].score, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_engines_agree_with_a_shortlist(shortened, beam_size):
    """Each request is a batch of its own: a batch has the candidates of all its requests."""
    torch_engine, ctranslate2_engine = engines(shortened(SHORT))
    search = Search(beam_size=beam_size, extra_length=5, shortlist=True)
    same = 0
    for request in REQUESTS:
        ((ours, *_),), ((theirs, *_),) = (
            engine.decode([request], search) for engine in (torch_engine, ctranslate2_engine)
        )
        allowed = SHORT.candidates([request.ids])
        assert {*ours.ids, *theirs.ids} <= {*allowed.tolist()}
        same += ours.ids == theirs.ids
        if ours.ids == theirs.ids:
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)
    assert same >= 0.95 * len(REQUESTS)


def test_a_constraint_needs_no_candidates(shortened):
    """A prefix may be any token, and so may what `shortlist=False` finds."""
    nothing = Shortlist.from_rows([[0, 1, EOS]] * 13)
    for engine in engines(shortened(nothing)):
        (limited,), (free,) = (
            engine.decode([REQUESTS[0]], Search(extra_length=5, shortlist=each))[0] for each in (True, False)
        )
        assert {*limited.ids} <= {0, 1}
        assert {*free.ids} <= {*REQUESTS[0].ids}
        ((prefixed,),) = engine.decode(
            [replace(REQUESTS[0], prefix=(11,))], Search(extra_length=5, shortlist=True)
        )
        assert prefixed.ids[0] == 11


def test_a_stream_searches_among_all_tokens(shortened):
    for engine in engines(shortened(SHORT)):
        for request in REQUESTS[:20]:
            greedy = Search(beam_size=1, extra_length=5, shortlist=False)
            ((best,),) = engine._decode([request], greedy)
            assert [
                each for each in engine.stream(request, replace(greedy, shortlist=True)) if each != EOS
            ] == [*best.ids]
