"""Two traces beside each other, against numbers made by hand and against changes that are known."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.look.interventions.interventions import HeadOff, Uniform
from regard.look.trace.comparison import compare, jensen_shannon, match
from regard.look.trace.recorder import look
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.refusals import refused

ids = st.lists(st.integers(0, 3), max_size=9).map(tuple)


@given(ids, ids)
def test_matched_tokens_are_equal_in_order_and_the_rest_is_told(one, other):
    found = match(one, other)
    assert all(one[i] == other[j] for i, j in found.both)
    assert list(found.both) == sorted(found.both)
    for side, sequence, rest in ((0, one, found.only_in_one), (1, other, found.only_in_other)):
        assert sorted([*(p[side] for p in found.both), *rest]) == list(range(len(sequence)))
    assert match(one, one).is_whole


def entropy(row):
    return -sum(p * math.log2(p) for p in row if p)


def test_rows_are_as_far_apart_as_their_entropies_say():
    rows = np.random.default_rng(1).dirichlet(np.ones(5) / 2, (2, 7))
    rows[0, 0] = rows[1, 0]
    found = jensen_shannon(*rows)
    divergences = [entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2 for p, q in zip(*rows, strict=True)]
    np.testing.assert_allclose(found**2, divergences, atol=1e-12)
    assert found[0] == 0
    assert jensen_shannon(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])).tolist() == [1.0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_trace_does_not_differ_from_itself(architecture):
    trace = trace_of(model_of(architecture=architecture))
    found = compare(trace, trace)
    assert all(each is None or each.is_whole for each in (found.inputs, found.outputs))
    assert all((found.heads(kind) == 0).all() for kind in trace.kinds)
    assert [said.change for said in found.log_probs] == [0.0] * len(trace.targets)
    assert found.candidates == ()


def test_a_head_that_was_changed_is_the_one_that_looks_elsewhere():
    model = model_of()
    intact = trace_of(model)
    changed = trace_of(model, interventions=[Uniform(kind="cross", layer=2, head=1)])
    found = compare(intact, changed)
    apart = found.heads("cross")
    assert apart[2, 1] > 0.01
    np.testing.assert_allclose(np.delete(apart.ravel(), 2 * 3 + 1), 0, atol=1e-6)  # nothing lies above it
    even = np.full((1, len(intact.inputs)), 1 / len(intact.inputs))
    expected = jensen_shannon(intact.attention("cross", 2, 1)[1:2], even)[0]
    assert found.rows("cross", 2, 1)[1] == pytest.approx(expected)
    np.testing.assert_allclose(
        [said.change for said in found.log_probs], changed.log_probs - intact.log_probs, atol=1e-12
    )


def test_candidates_that_came_and_went_are_told():
    model = model_of()
    off = [HeadOff(kind="cross", layer=layer, head=head) for layer in range(3) for head in range(3)]
    one, other = trace_of(model), trace_of(model, interventions=off)
    found = compare(one, other)
    assert found.candidates
    for said in found.candidates:
        i, j = said.places
        before, after = ({each.id for each in trace.candidates(row)} for trace, row in ((one, i), (other, j)))
        assert {each.id for each in said.only_in_one} == before - after
        assert {each.id for each in said.only_in_other} == after - before
        assert said.likeliest == (one.candidates(i)[0], other.candidates(j)[0])
    untold = {(i, i) for i in range(len(one.outputs))} - {said.places for said in found.candidates}
    assert all(one.candidates(i)[0].id == other.candidates(i)[0].id for i, _ in untold)


def test_of_two_sentences_what_is_the_same_is_compared_and_the_rest_told():
    model = model_of()
    one, other = look(model, subwords(), SOURCE, TARGET), look(model, subwords(), SOURCE, "the dogs sat")
    found = compare(one, other)
    assert found.inputs.is_whole
    assert [one.outputs[i].text for i in found.outputs.only_in_one] == ["cat"]
    assert "".join(other.outputs[i].text for i in found.outputs.only_in_other) == "dogs"
    queries = list(found.outputs.both)
    assert queries[:2] == [(0, 0), (1, 1)]  # <s> and "the", before which nothing differs
    np.testing.assert_allclose(found.rows("decoder", 0, 0)[:2], 0, atol=1e-6)
    # "sat" may look at "cat" in one, at "dogs" in the other: both go to the rest.
    i, j = queries[-1]
    shared = [[p[side] for p in queries] for side in (0, 1)]
    rows = []
    for trace, place, keys in ((one, i, shared[0]), (other, j, shared[1])):
        weights = trace.attention("decoder", 0, 0)[place]
        rows.append(np.r_[weights[keys], 1 - weights[keys].sum()][None])
    assert found.rows("decoder", 0, 0)[-1] == pytest.approx(jensen_shannon(*rows)[0])


def test_without_a_token_in_common_there_is_no_distance():
    model = model_of(architecture="decoder")
    bare = [look(model, subwords(), text, bos=bos) for text, bos in (("cat", 7), ("dogs", 8))]
    found = compare(*bare)
    assert np.isnan(found.heads("decoder")).all()
    assert found.to_json()["heads"]["decoder"][0] == [None] * 3


def test_a_comparison_is_plain_values():
    model = model_of(torch.float32)
    found = compare(trace_of(model), trace_of(model, interventions=[HeadOff(kind="cross", layer=0, head=0)]))
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert values["heads"]["cross"] == found.heads("cross").tolist()
    assert len(values["log_probs"]) == len(found.log_probs)
    assert values["outputs"]["both"][0] == [0, 0]


def test_models_of_another_shape_are_refused():
    with refused("trace_mismatch", "2 decoder layers"):
        compare(trace_of(model_of()), trace_of(model_of(decoder_layers=2)))
    with refused("trace_mismatch"):
        compare(trace_of(model_of()), trace_of(model_of(architecture="decoder")))
