"""Two engines, one model: the same outputs with the same scores."""

from __future__ import annotations

import pytest

from regard.bundle import load_bundle
from regard.engine.engines.ctranslate2_engine import CTranslate2Engine
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
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
