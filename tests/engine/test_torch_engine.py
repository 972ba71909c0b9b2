"""The torch engine: alone or together, cached or not, searched or scored, the answers are the same."""

import math

import pytest
import torch

from regard.decode.hypothesis import loops
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.errors import ConfigError, RequestError
from regard.packing import pack
from tests.decode import plain
from tests.model.small import V, random_ids, small_model
from tests.refusals import refused
from tests.shapes import shape_suffixes_checked

BOS, EOS = 1, 0  # the ending token of the rigged steps, so that the plain search can be asked
LENGTHS = (7, 2, 13, 1, 5, 11, 3)
SEARCHES = {
    "greedy": Search(beam_size=1, extra_length=7),
    "beam": Search(beam_size=3, n_best=2, extra_length=7),
    "beam to a least length": Search(beam_size=3, min_length=5, length_penalty=1.0, extra_length=7),
    "drawn": Search(sample=True, n_best=2, top_p=0.9, seed=7, extra_length=7),
}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


@pytest.fixture(scope="module")
def model():
    """Some of its outputs end by themselves, some are cut off, and none goes round in a loop."""
    torch.manual_seed(0)
    return small_model(max_length=29, shared_embeddings="none", norm_position="pre")


@pytest.fixture(scope="module")
def engine(model):
    return TorchEngine([model], bos=BOS, eos=EOS)


@pytest.fixture(scope="module")
def requests():
    torch.manual_seed(13)
    ids = [tuple(1 + token % (V - 1) for token in one) for one in random_ids(LENGTHS)]
    return [Request(ids=one, prefix=(3, 5)[: i % 3]) for i, one in enumerate(ids)]


def rig_of(model, request: Request):
    """Log-probabilities after some tokens, the whole text read anew each time."""

    def rig(_source, ids):
        with torch.no_grad():
            logits = model(pack([[*request.ids, EOS]]), pack([[BOS, *ids]]))
        return logits[-1].log_softmax(dim=-1).tolist()

    return rig


def assert_same(found, expected):
    assert [[one.ids for one in best] for best in found] == [[one.ids for one in best] for best in expected]
    for best, others in zip(found, expected, strict=True):
        for one, other in zip(best, others, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-5)


@each_search
def test_alone_or_together_in_any_order(model, engine, requests, search):
    together = engine.decode(requests, search)
    alone = [
        TorchEngine([model], bos=BOS, eos=EOS, batch_tokens=1).decode([one], search)[0] for one in requests
    ]
    assert_same(together, alone)
    order = torch.randperm(len(requests)).tolist()
    shuffled = engine.decode([requests[i] for i in order], search)
    assert_same([shuffled[order.index(i)] for i in range(len(requests))], together)
    in_batches = TorchEngine([model], bos=BOS, eos=EOS, batch_tokens=40).decode(requests, search)
    assert_same(in_batches, together)


def test_some_outputs_end_and_some_are_cut_off(engine, requests):
    finished = [one.finished for best in engine.decode(requests, SEARCHES["beam"]) for one in best]
    assert 0 < sum(finished) < len(finished)


@pytest.mark.parametrize("width", [1, 3])
def test_with_a_cache_it_finds_what_a_plain_search_without_one_finds(model, engine, requests, width):
    search = Search(beam_size=width, n_best=width, extra_length=7)
    for request, found in zip(requests, engine.decode(requests, search), strict=True):
        limit = len(request.ids) + search.extra_length
        expected = plain.beam(rig_of(model, request), 0, limit, width, 0.6, prefix=request.prefix)[:width]
        assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-5)


@each_search
def test_an_output_scored_again_has_the_same_score(engine, requests, search):
    pairs = [
        (request, one)
        for request, best in zip(requests, engine.decode(requests, search), strict=True)
        for one in best
    ]
    scores = engine.score([request.ids for request, _ in pairs], [one.ids for _, one in pairs])
    for (_, one), score in zip(pairs, scores, strict=True):
        assert len(score) == len(one.ids) + 1
        assert one.token_log_probs == pytest.approx(score[: len(one.token_log_probs)], abs=1e-5)


def test_scores_do_not_depend_on_slices_or_batches(engine, requests, monkeypatch):
    sources, targets = [one.ids for one in requests], [one.ids[::-1] for one in requests]
    whole = engine.score(sources, targets)
    monkeypatch.setattr("regard.engine.engines.torch_engine.LOGITS", 3 * V)
    monkeypatch.setattr(engine, "_batch_tokens", 20)
    for one, other in zip(engine.score(sources, targets), whole, strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_one_model_twice_is_the_model(model, engine, requests):
    twice = TorchEngine([model, model], bos=BOS, eos=EOS)
    for search in SEARCHES.values():
        assert_same(twice.decode(requests, search), engine.decode(requests, search))
    sources, targets = [one.ids for one in requests], [one.ids for one in requests]
    for one, other in zip(twice.score(sources, targets), engine.score(sources, targets), strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_an_ensemble_is_more_than_its_first_model(model, engine, requests):
    torch.manual_seed(17)
    both = TorchEngine([model, small_model(max_length=29)], bos=BOS, eos=EOS)
    assert both.decode(requests, SEARCHES["beam"]) != engine.decode(requests, SEARCHES["beam"])


def test_a_seed_brings_the_draw_back_and_another_does_not(engine, requests):
    drawn = [engine.decode(requests, Search(sample=True, seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_outputs_drawn_for_one_request_are_each_drawn_anew(engine, requests):
    (found, *_) = engine.decode(requests, Search(sample=True, n_best=5))
    assert len({one.ids for one in found}) > 1
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize("search", [Search(extra_length=7), Search(sample=True, seed=3, extra_length=7)])
def test_streamed_tokens_are_those_of_the_output(engine, requests, search):
    at_once = Search(beam_size=1, sample=search.sample, seed=search.seed, extra_length=7)
    for request, (found,) in zip(requests, engine.decode(requests, at_once), strict=True):
        assert tuple(engine.stream(request, search)) == (*found.ids, *([EOS] if found.finished else []))


def test_phrases_are_in_the_output_and_others_are_left_as_they_were(engine, requests):
    phrases = (((4, 6), (4, 7, 8)), ((9,),))
    asked = [Request(ids=one.ids, phrases=phrases if i % 2 else ()) for i, one in enumerate(requests)]
    free = [Request(ids=one.ids) for one in requests]
    found = engine.decode(asked, SEARCHES["beam"])
    without = engine.decode(free, SEARCHES["beam"])
    for i, best in enumerate(found):
        if i % 2:
            for one in best:
                text = " ".join(map(str, one.ids)).join("  ")
                assert " 4 6 " in text or " 4 7 8 " in text
                assert " 9 " in text
    assert_same(found[::2], without[::2])


def test_an_output_that_goes_round_in_a_loop_is_tried_again():
    torch.manual_seed(11)
    model = small_model(max_length=61)
    engine, search = TorchEngine([model], bos=BOS, eos=EOS), Search(beam_size=1, extra_length=40)
    request = Request(ids=(3, 4, 5))
    assert loops(tuple(engine.stream(request, search))), "choose a seed whose model goes round in a loop"
    ((found,),) = engine.decode([request], search)
    assert not loops(found.ids)
    assert not found.repetitive
    circling = Request(ids=(3, 4) * 10)  # an input in a loop may have an output in a loop
    ((found,),) = engine.decode([circling], search)
    assert loops(found.ids)
    assert not found.repetitive


def test_a_loop_that_cannot_be_helped_is_flagged(engine):
    (found,) = engine.decode([Request(ids=(3, 4), prefix=(5,) * 20)], Search(extra_length=7))
    assert found[0].ids == (5,) * 20
    assert found[0].repetitive


def test_an_empty_request_and_no_request(engine):
    assert engine.decode([], Search()) == [] == engine.score([], [])
    empty, (other,) = engine.decode([Request(ids=()), Request(ids=(3,))], Search(extra_length=3))
    assert [(one.ids, one.finished) for one in empty] == [((), True)]
    assert list(engine.stream(Request(ids=()), Search())) == []
    assert other.token_log_probs
    ((score,),) = engine.score([()], [()])
    assert score < 0


def test_no_output_outgrows_the_model(engine):
    (found,) = engine.decode([Request(ids=(3, 4) * 13)], Search(beam_size=1, min_length=99))
    assert len(found[0].ids) == 28, "max_length is 29, and one place is for the token that starts an output"


def test_bf16_flows_where_the_model_says_so(requests):
    model = small_model(dtype=torch.float32, max_length=29)
    model.compute_dtype = torch.bfloat16
    engine = TorchEngine([model], bos=BOS, eos=EOS)
    for best in engine.decode(requests, SEARCHES["beam"]):
        assert best
        assert all(math.isfinite(one.score) for one in best)


def test_a_model_in_training_decodes_without_dropout(requests):
    model = small_model(dropout=0.5, max_length=29).train()
    engine = TorchEngine([model], bos=BOS, eos=EOS)
    assert engine.decode(requests, Search()) == engine.decode(requests, Search())


def test_names_tell_true_shapes(engine, requests):
    with shape_suffixes_checked("regard.decode") as checked:
        for search in SEARCHES.values():
            engine.decode([*requests, *requests[:2]], search)
        engine.decode([Request(ids=(3, 4), phrases=(((5, 6),),))], SEARCHES["beam"])
        engine.decode([Request(ids=(3, 4), prefix=(5,) * 20)], Search(extra_length=20))
    assert {"regard.decode.beam.expand", "regard.decode.phrases.PhraseGuide.expand"} <= checked


@pytest.mark.parametrize(
    ("request_", "search", "complaint"),
    [
        (Request(ids=(3,) * 29), Search(), "^30 tokens.* reads at most 29"),
        (Request(ids=(3, V)), Search(), f"no token {V}; the vocabulary ends at {V - 1}"),
        (Request(ids=(3,), prefix=(-1,)), Search(), "no token -1"),
        (Request(ids=(3,), phrases=(((V,),),)), Search(), f"no token {V}"),
        (Request(ids=(3,), phrases=((),)), Search(), "no spelling"),
        (Request(ids=(3,), phrases=(((4,) * 9,),)), Search(extra_length=5), "at least 10 tokens"),
        (Request(ids=(3,), phrases=(((4,),),)), Search(sample=True), "need beam search; remove `sample`"),
        (Request(ids=(3,), prefix=(4, EOS)), Search(), "^the prefix contains 0"),
        (Request(ids=(3,)), Search(n_best=5), "`n_best=5` needs a `beam_size` of at least 5"),
        (Request(ids=(3,)), Search(beam_size=0), "at least 1"),
    ],
)
def test_what_cannot_be_done_is_refused(engine, request_, search, complaint):
    with pytest.raises(RequestError, match=complaint):
        engine.decode([request_], search)


def test_other_refusals(engine, model):
    with refused("too_long", "pair 1", "30 tokens"):
        engine.score([(3,), (3,)], [(4,), (4,) * 29])
    with refused("pair_count_mismatch", "2 sources and 1 targets"):
        engine.score([(3,), (3,)], [(4,)])
    with refused("unsupported_request"):
        list(engine.stream(Request(ids=(3,), phrases=(((4,),),)), Search()))
    with pytest.raises(ConfigError, match="temperature"):
        engine.decode([Request(ids=(3,))], Search(sample=True, temperature=0.0))
    with refused("no_model"):
        TorchEngine([], bos=BOS, eos=EOS)
    with refused("ensemble_mismatch", str(V), str(V + 2)):
        TorchEngine([model, small_model(vocab_size=V + 2)], bos=BOS, eos=EOS)
