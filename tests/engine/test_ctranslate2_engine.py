"""CTranslate2 finds what torch finds, by our rules, and says why where it cannot."""

import os
import random
import re
import subprocess
import sys
from itertools import product

import pytest

from regard.decode.hypothesis import Hypothesis, loops
from regard.engine.engines import ctranslate2_engine
from regard.engine.engines.ctranslate2_engine import CTranslate2Engine, batches
from regard.engine.engines.protocol import Request, Search, with_second_attempt
from regard.errors import ConfigError, RequestError, ShapeError
from tests.architecture.sources import ROOT
from tests.exchange.folders import (
    BOS,
    EOS,
    sequences,
    small_folder,
    torch_greedy,
    torch_log_probs,
    torch_scores,
)
from tests.training.copying import VOCABULARY

GREEDY = Search(beam_size=1, length_penalty=0.0, extra_length=7)
BEAM = Search(beam_size=4, n_best=4, extra_length=7)


def sources(count, longest=9, seed=1):
    return sequences(count, longest, seed, VOCABULARY)


def requests(count, longest=9, seed=1):
    return [Request(ids=ids) for ids in sources(count, longest, seed)]


def ids_of(decoded):
    return [tuple(hypothesis.ids for hypothesis in each) for each in decoded]


def scores_of(decoded):
    return [hypothesis.score for each in decoded for hypothesis in each]


# --- the same as torch ------------------------------------------------------------------------------------


def test_greedy_search_finds_what_torch_finds_unless_two_tokens_are_as_likely(reverser, engine):
    asked = sources(1000)
    expected = torch_greedy(reverser, asked, [len(ids) + 7 for ids in asked])
    found = [best for (best,) in engine.decode([Request(ids=ids) for ids in asked], GREEDY)]
    assert len({each.ids for each in found}) > 500
    assert {each.finished for each in expected} == {True, False}
    pairs = list(zip(asked, found, expected, strict=True))
    same = [(ours, torchs) for _, ours, torchs in pairs if ours.ids == torchs.ids]
    assert len(same) >= 995
    assert all(ours.finished == torchs.finished for ours, torchs in same)
    assert [ours.log_prob for ours, _ in same] == pytest.approx([t.log_prob for _, t in same], abs=1e-4)
    for source, ours, torchs in pairs:
        if ours.ids != torchs.ids and not loops(torchs.ids):
            at = next(i for i, (a, b) in enumerate(zip(ours.ids, torchs.ids, strict=False)) if a != b)
            (rows,) = torch_log_probs(reverser, [source], [torchs.ids])
            first, second = rows[at].topk(2).values
            assert first - second < 1e-3


def test_scores_are_those_of_torch(reverser, engine):
    asked, targets = sources(83), sources(83, longest=12, seed=2)
    asked[5], targets[7] = (), ()
    found = engine.score(asked, targets)
    for ours, expected in zip(found, torch_scores(reverser, asked, targets), strict=True):
        assert ours == pytest.approx(expected, abs=1e-4)


def test_nothing_is_cut_from_long_inputs(tmp_path):
    """CTranslate2 reads 1,024 tokens, unless it is told otherwise."""
    folder = small_folder(tmp_path, max_length=1103)
    source, target = sequences(1, 1)[0] * 1061, sequences(1, 1, seed=2)[0] * 1049
    source = (*source, *sequences(1, 9)[0])
    engine = CTranslate2Engine(folder, bos=BOS, eos=EOS, quantisation="float32", threads=1)
    (found,) = engine.score([source], [target])
    assert found == pytest.approx(torch_scores(folder, [source], [target])[0], abs=1e-3)
    # A limit of a few tokens is enough to see what was read.
    ((best,),) = engine.decode([Request(ids=source)], Search(beam_size=1, extra_length=-1050))
    (expected,) = torch_greedy(folder, [source], [len(source) - 1050])
    assert best.ids == expected.ids


def test_the_widest_beam_finds_the_best_of_all_outputs(reverser, engine):
    """Every output of at most two tokens can be scored; a beam as wide as the vocabulary misses none."""
    for token, alpha in product(range(3, VOCABULARY), (0.0, 0.6, 3.0)):
        search = Search(beam_size=VOCABULARY, length_penalty=alpha, extra_length=1)
        ((best,),) = engine.decode([Request(ids=(token,))], search)
        letters = [i for i in range(VOCABULARY) if i != EOS]
        (first,) = torch_log_probs(reverser, [(token,)], [()])
        seconds = torch_log_probs(reverser, [(token,)] * len(letters), [(i,) for i in letters])
        outputs = {(EOS,): float(first[0, EOS])}
        for i, rows in zip(letters, seconds, strict=True):
            outputs |= {(i, j): float(rows[0, i] + rows[1, j]) for j in range(VOCABULARY)}
        score, ids = max((value / ((5 + len(ids)) / 6) ** alpha, ids) for ids, value in outputs.items())
        assert best.score == pytest.approx(score, abs=1e-4)
        assert (*best.ids, EOS)[: len(ids)] == ids
        assert best.finished == (ids[-1] == EOS)


# --- scores and ranks are ours ----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_hypotheses_are_scored_and_ranked_by_our_penalty(reverser, engine, alpha):
    asked = sources(50)
    search = Search(beam_size=4, n_best=4, length_penalty=alpha, extra_length=7)
    decoded = engine.decode([Request(ids=ids) for ids in asked], search)
    for source, hypotheses in zip(asked, decoded, strict=True):
        assert len({(each.ids, each.finished) for each in hypotheses}) == 4
        assert [each.score for each in hypotheses] == sorted(
            (each.score for each in hypotheses), reverse=True
        )
        expected = torch_scores(reverser, [source] * 4, [each.ids for each in hypotheses])
        for each, log_probs in zip(hypotheses, expected, strict=True):
            n_tokens = len(each.ids) + each.finished
            assert each.log_prob == pytest.approx(sum(log_probs[:n_tokens]), abs=1e-4)
            assert each.score == pytest.approx(each.log_prob / ((5 + n_tokens) / 6) ** alpha)


def test_a_larger_penalty_prefers_longer_outputs(engine):
    asked = requests(50)
    decoded = {
        alpha: engine.decode(asked, Search(beam_size=4, n_best=4, length_penalty=alpha, extra_length=7))
        for alpha in (0.0, 4.0)
    }
    plain, penalised = (ids_of(each) for each in decoded.values())
    assert sum(len(each[0]) for each in penalised) > sum(len(each[0]) for each in plain)


def test_fewer_of_the_best_are_the_first_of_more(engine):
    asked = requests(50)
    many = engine.decode(asked, BEAM)
    for n_best in (1, 3):
        search = Search(beam_size=4, n_best=n_best, extra_length=7)
        assert engine.decode(asked, search) == [each[:n_best] for each in many]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_scores_of_tokens_are_given_where_asked_for(reverser, engine, beam_size):
    asked = requests(50)
    plain = engine.decode(asked, Search(beam_size=beam_size, extra_length=0))
    told = engine.decode(asked, Search(beam_size=beam_size, extra_length=0, token_scores=True))
    assert ids_of(told) == ids_of(plain)
    assert scores_of(told) == pytest.approx(scores_of(plain), abs=1e-4)
    expected = torch_scores(reverser, [each.ids for each in asked], [best.ids for (best,) in told])
    assert {best.finished for (best,) in told} == {True, False}
    for (best,), log_probs in zip(told, expected, strict=True):
        assert best.token_log_probs == pytest.approx(log_probs[: len(best.ids) + best.finished], abs=1e-4)


# --- what a request asks for ------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_prefix_begins_every_output_and_counts_as_what_it_is_worth(reverser, engine, beam_size):
    prefixes = [ids[:3] for ids in sources(50, seed=3)]
    asked = [Request(ids=ids, prefix=p) for ids, p in zip(sources(50), prefixes, strict=True)]
    search = Search(beam_size=beam_size, n_best=beam_size, extra_length=7)
    for request, hypotheses in zip(asked, engine.decode(asked, search), strict=True):
        assert hypotheses
        targets = [each.ids for each in hypotheses]
        expected = torch_scores(reverser, [request.ids] * len(targets), targets)
        for each, log_probs in zip(hypotheses, expected, strict=True):
            assert each.ids[: len(request.prefix)] == request.prefix
            n_tokens = len(each.ids) + each.finished
            assert each.token_log_probs == pytest.approx(log_probs[:n_tokens], abs=1e-4)
            assert each.score == pytest.approx(
                sum(log_probs[:n_tokens]) / ((5 + n_tokens) / 6) ** 0.6, abs=1e-4
            )


def test_the_beginning_of_an_output_leads_to_the_same_output(engine):
    asked = requests(50)
    outputs = [best.ids for (best,) in engine.decode(asked, GREEDY)]
    begun = [Request(ids=r.ids, prefix=ids[:2]) for r, ids in zip(asked, outputs, strict=True)]
    assert [best.ids for (best,) in engine.decode(begun, GREEDY)] == outputs


def test_a_prefix_longer_than_the_limit_is_kept(engine):
    request = Request(ids=(3,), prefix=(4, 5, 6, 7))
    ((best,),) = engine.decode([request], Search(beam_size=1, extra_length=0))
    assert (best.ids, best.finished) == (request.prefix, False)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_outputs_have_at_least_the_least_length_and_the_probabilities_of_the_model(
    reverser, engine, beam_size
):
    asked = sources(50, longest=4)
    search = Search(beam_size=beam_size, min_length=6, extra_length=7)
    found = [best for (best,) in engine.decode([Request(ids=ids) for ids in asked], search)]
    assert min(len(best.ids) for best in found) == 6
    expected = torch_scores(reverser, asked, [best.ids for best in found])
    for best, log_probs in zip(found, expected, strict=True):
        assert best.token_log_probs == pytest.approx(log_probs[: len(best.ids) + best.finished], abs=1e-4)


def test_a_least_length_beyond_the_limit_stops_at_the_limit(engine):
    ((best,),) = engine.decode([Request(ids=(3, 4))], Search(beam_size=4, min_length=50, extra_length=7))
    assert (len(best.ids), best.finished) == (9, False)


def test_an_output_may_be_empty(tmp_path):
    """CTranslate2 asks for one token at least, unless it is told otherwise."""
    folder = small_folder(tmp_path, vocab_size=5, seed=11)
    asked = sequences(100, 7, vocab_size=5)
    expected = [each.ids for each in torch_greedy(folder, asked, [len(ids) + 7 for ids in asked])]
    assert () in expected
    engine = CTranslate2Engine(folder, bos=BOS, eos=EOS, quantisation="float32", threads=1)
    decoded = engine.decode([Request(ids=ids) for ids in asked], GREEDY)
    assert [best.ids for (best,) in decoded] == expected


def test_an_empty_request_gives_an_empty_output(engine):
    first, second = engine.decode([Request(ids=()), Request(ids=(3, 4))], BEAM)
    assert [(each.ids, each.finished, each.log_prob, each.score) for each in first] == [((), True, 0.0, 0.0)]
    assert len(second) == 4
    assert engine.decode([], BEAM) == []
    assert list(engine.stream(Request(ids=()), GREEDY)) == []


# --- no batch mates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_a_result_depends_on_no_batch_mate(engine, search):
    asked = requests(120)
    asked += [Request(ids=each.ids, prefix=(5,)) for each in asked[:20]]
    together = engine.decode(asked, search)
    alone = [engine.decode([each], search)[0] for each in asked]
    assert ids_of(together) == ids_of(alone)
    assert scores_of(together) == pytest.approx(scores_of(alone), abs=1e-5)
    order = random.Random(1).sample(range(len(asked)), len(asked))
    shuffled = engine.decode([asked[i] for i in order], search)
    assert ids_of(shuffled) == ids_of(together[i] for i in order)


def test_with_a_budget_of_one_token_every_request_is_a_batch_of_the_same_result(
    reverser, engine, monkeypatch
):
    alone = CTranslate2Engine(reverser, bos=BOS, eos=EOS, quantisation="float32", threads=2, batch_tokens=1)
    sizes, start = set(), alone._start
    monkeypatch.setattr(alone, "_start", lambda batch, *rest: sizes.add(len(batch)) or start(batch, *rest))
    asked = requests(23)
    assert ids_of(alone.decode(asked, BEAM)) == ids_of(engine.decode(asked, BEAM))
    assert sizes == {1}


@pytest.mark.parametrize("seed", [3, 4, 7])
def test_neither_the_limit_nor_the_prefix_of_another_changes_a_search(tmp_path, seed):
    """Few tokens, drawn weights: outputs end at once, at their limit and in between, and many are as good."""
    folder = small_folder(tmp_path, vocab_size=5, seed=seed)
    engine = CTranslate2Engine(folder, bos=BOS, eos=EOS, quantisation="float32", threads=1)
    asked = [Request(ids=ids) for ids in sequences(60, 11, vocab_size=5)]
    asked += [Request(ids=each.ids, prefix=(3, 4)) for each in asked[:20]]
    for beam_size in (1, 2, 4):
        search = Search(beam_size=beam_size, n_best=beam_size, extra_length=2)
        together = engine.decode(asked, search)
        alone = [engine.decode([each], search)[0] for each in asked]
        assert ids_of(together) == ids_of(alone)
        endings = [[each.finished for each in hypotheses] for hypotheses in together]
        assert endings == [[each.finished for each in hypotheses] for hypotheses in alone]
        for request, hypotheses in zip(asked, together, strict=True):
            assert len({(each.ids, each.finished) for each in hypotheses}) == len(hypotheses)
            limit = len(request.ids) + 2
            assert max(len(each.ids) + each.finished for each in hypotheses) <= limit
            assert all(each.finished or len(each.ids) == limit for each in hypotheses)


def test_outputs_stay_within_the_positions(tmp_path):
    engine = CTranslate2Engine(small_folder(tmp_path, max_length=17), bos=BOS, eos=EOS, threads=1)
    decoded = engine.decode([Request(ids=tuple(range(3, 19)))], Search(beam_size=1))
    assert len(decoded[0][0].ids) <= 16


# --- loops ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 4])
def test_what_goes_round_in_a_loop_is_tried_again_and_scored_by_the_model(tmp_path, beam_size):
    folder = small_folder(tmp_path, vocab_size=11, seed=5)
    engine = CTranslate2Engine(folder, bos=BOS, eos=EOS, quantisation="float32", threads=1)
    asked = [Request(ids=ids) for ids in sequences(60, 11, vocab_size=11)]
    search = Search(beam_size=beam_size, extra_length=11)
    first, found = (decode(asked, search) for decode in (engine._decode, engine.decode))
    looping = [loops(best.ids) for (best,) in first]
    assert 0 < sum(looping) < len(asked)
    for request, (before,), (best,), looped in zip(asked, first, found, looping, strict=True):
        assert (best == before) is not looped
        assert loops(best.ids) == best.repetitive
        if looped:
            (log_probs,) = torch_scores(folder, [request.ids], [best.ids])
            assert best.token_log_probs == pytest.approx(log_probs[: len(best.token_log_probs)], abs=1e-4)


def test_what_still_goes_round_is_flagged():
    loop = Hypothesis(ids=(7,) * 20, token_log_probs=(), score=-1.0, finished=False)
    plain = Hypothesis(ids=(7, 8), token_log_probs=(), score=-1.0, finished=True)
    asked = [Request(ids=(3,)), Request(ids=(7,) * 20), Request(ids=(4,)), Request(ids=(5,))]
    tried = []

    def again(requests):
        tried.extend(requests)
        return [(loop,), ()]

    found = with_second_attempt(asked, [(loop,), (loop,), (plain,), (loop,)], again)
    assert tried == [asked[0], asked[3]]
    assert [best.repetitive for (best,) in found] == [True, False, False, True]


# --- int8 -------------------------------------------------------------------------------------------------


def test_int8_is_close(reverser, engine):
    coarse = CTranslate2Engine(reverser, bos=BOS, eos=EOS, threads=1)
    asked, targets = sources(300), sources(300, seed=2)
    fine = engine.decode([Request(ids=ids) for ids in asked], GREEDY)
    found = coarse.decode([Request(ids=ids) for ids in asked], GREEDY)
    assert sum(a == b for a, b in zip(ids_of(fine), ids_of(found), strict=True)) > 240
    pairs = zip(engine.score(asked, targets), coarse.score(asked, targets), strict=True)
    differences = [abs(sum(a) - sum(b)) / len(a) for a, b in pairs]
    assert 0 < sum(differences) / len(differences) < 0.05


def test_torch_is_not_imported(reverser):
    program = (
        "import sys\n"
        "from regard.engine.engines.ctranslate2_engine import CTranslate2Engine\n"
        "from regard.engine.engines.protocol import Request, Search\n"
        "engine = CTranslate2Engine(sys.argv[1], bos=1, eos=2)\n"
        "((best, *_),) = engine.decode([Request(ids=(3, 4, 5))], Search(token_scores=True))\n"
        "print(len(best.ids), 'torch' in sys.modules)\n"
    )
    environment = os.environ | {
        "REGARD_CACHE": str(reverser.parent / "cache")
    }  # so that it is converted, too
    command = [sys.executable, "-c", program, str(reverser)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
    n_tokens, has_torch = done.stdout.split()
    assert int(n_tokens) > 0
    assert has_torch == "False"


# --- streams, refusals, batches ---------------------------------------------------------------------------


def test_a_stream_is_greedy_search_token_by_token(engine):
    asked = [*requests(20), Request(ids=(3, 4, 5), prefix=(7, 8))]
    searches = [GREEDY, Search(beam_size=1, min_length=6, extra_length=7)]
    for request, search in product(asked, searches):
        ((best,),) = engine.decode([request], search)
        assert tuple(engine.stream(request, search)) == (*best.ids, *([EOS] if best.finished else []))


def test_a_stream_may_be_left(engine):
    stream = engine.stream(Request(ids=(3, 4, 5, 6)), Search(beam_size=1, min_length=9, extra_length=9))
    assert isinstance(next(stream), int)
    stream.close()
    assert list(stream) == []


REFUSED = {
    "drawing": (Search(sample=True), Request(ids=(3,)), "samples are not reproducible"),
    "n_best": (Search(beam_size=2, n_best=3), Request(ids=(3,)), "3 hypotheses with `beam_size=2`"),
    "phrases": (Search(), Request(ids=(3,), phrases=(((4, 5),),)), "required phrases"),
    "length": (
        Search(),
        Request(ids=(3,) * 1024),
        r"a sequence has 1,024 tokens; model.max_length = 1,024",
    ),
    "prefix": (Search(), Request(ids=(3,), prefix=(4,) * 1024), "a sequence has 1,024 tokens"),
}


@pytest.mark.parametrize(("search", "request_", "reason"), REFUSED.values(), ids=REFUSED)
def test_it_says_what_it_cannot_do(engine, search, request_, reason):
    assert re.search(reason, engine.unsupported(search, [Request(ids=(3, 4)), request_]))
    with pytest.raises(RequestError, match=reason):
        engine.decode([request_], search)
    with pytest.raises(RequestError, match=reason):
        list(engine.stream(request_, search))


def test_it_refuses_nothing_else(engine):
    longest = Request(ids=(3,) * 1023, prefix=(4,) * 1023)
    assert engine.unsupported(Search(beam_size=2, n_best=2, min_length=3), [longest]) is None
    assert engine.unsupported(Search(), []) is None


def test_ids_that_do_not_exist_are_named(engine):
    for wrong in (VOCABULARY, -1):
        for request in (Request(ids=(3, wrong)), Request(ids=(3,), prefix=(wrong,))):
            with pytest.raises(ShapeError, match=f"token ids from 0 to 12, got {wrong}"):
                engine.decode([request], GREEDY)
    with pytest.raises(ShapeError, match="one for each of 2 sources, got 1"):
        engine.score([(3,), (4,)], [(3,)])
    with pytest.raises(RequestError, match=r"1,024"):
        engine.score([(3,)], [(4,) * 1024])


def test_a_quantisation_that_the_cpu_lacks_is_refused(reverser, monkeypatch):
    monkeypatch.setattr(ctranslate2_engine.ctranslate2, "get_supported_compute_types", lambda _: {"float32"})
    with pytest.raises(ConfigError, match="does not support int8; it supports float32"):
        CTranslate2Engine(reverser, bos=BOS, eos=EOS)


@pytest.mark.parametrize("n_replicas", [1, 3])
def test_batches_hold_everything_once_and_keep_all_replicas_equally_busy(n_replicas):
    lengths = [1 + 7 * i % 29 for i in range(100)]
    found = list(batches(lengths, 101, n_replicas))
    assert sorted(place for batch in found for place in batch) == list(range(100))
    assert len(found) % n_replicas == 0
    tokens = [sum(lengths[place] for place in batch) for batch in found]
    assert max(tokens) <= 101 + max(lengths)
    assert max(tokens) - min(tokens) <= 2 * max(lengths)
    shortest = [min(lengths[place] for place in batch) for batch in found]
    longest = [max(lengths[place] for place in batch) for batch in found]
    assert all(after <= before for before, after in zip(shortest, longest[1:], strict=False)), (
        "like with like"
    )
    assert len(list(batches(lengths, 10**6, n_replicas))) == n_replicas
    assert list(batches([50], 7, n_replicas)) == [[0]]
