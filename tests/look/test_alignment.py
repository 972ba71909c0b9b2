import numpy as np
import pytest

from regard.look.alignment.alignment import accuracy_of_each_head, align, best_heads
from regard.look.export import document
from regard.look.influence.attention import ROLES, head_roles, head_summaries
from regard.look.interventions.interventions import Pin, Uniform
from regard.look.trace.recorder import look
from tests.look.traced import model_of, subwords, trace_of
from tests.refusals import refused


def pinned(head, layer=1):
    """A trace in which one head looks where we say: at 猫 for cat, at 坐 for sat, at the end otherwise."""
    model = model_of()
    plain = trace_of(model)
    columns = {word.text: word.first for word in plain.inputs.words}
    goals = {"cat": columns["猫"], "sat": columns["坐"]}
    pins = [
        Pin(kind="cross", layer=layer, head=head, query=i, key=goals.get(word.text, len(plain.inputs) - 1))
        for word in plain.outputs.words
        for i in range(word.first, word.last + 1)
    ]
    return trace_of(model, interventions=pins)


def words_of(words):
    return [word.text for word in words]


def test_words_are_aligned_by_the_rows_of_their_own_tokens():
    aligned = align(pinned(2), [(1, 2)], "own")
    assert words_of(aligned.inputs) == ["猫", "坐", "在", "垫", "子", "上", "。"]
    assert words_of(aligned.outputs) == ["the", "cat", "sat"]
    np.testing.assert_array_equal(aligned.shares[1], np.eye(7)[0])
    np.testing.assert_array_equal(aligned.shares[2], np.eye(7)[1])
    assert aligned.shares[0].sum() == 0  # </s> drew it all
    assert aligned.links[1:] == ((0, 1), (1, 2))
    np.testing.assert_array_equal(aligned.coverage, [1, 1, 0, 0, 0, 0, 0])
    assert words_of(aligned.untouched) == ["在", "垫", "子", "上", "。"]


def test_several_heads_are_averaged_and_pieces_joined():
    model = model_of()
    trace = look(model, subwords(), "a 龘 cat", "two 龘")
    aligned = align(trace, [(0, 1), (2, 0)], "own")
    mean = (trace.attention("cross", 0, 1) + trace.attention("cross", 2, 0)) / 2
    assert words_of(aligned.inputs) == ["a", "龘", "cat"]
    columns = next(word for word in trace.inputs.words if word.text == "龘")
    rows = next(word for word in trace.outputs.words if word.text == "龘")
    assert columns.last > columns.first
    assert rows.last > rows.first
    cell = mean[rows.first : rows.last + 1, columns.first : columns.last + 1].sum(1).mean()
    assert aligned.shares[1, 1] == pytest.approx(cell)


def test_the_heads_that_align_best_are_found_by_measuring():
    traces, links = [pinned(2), pinned(2)], [[(0, 1), (1, 2)], [(0, 1)]]
    accuracy = accuracy_of_each_head(traces, links, "own")
    assert accuracy.shape == (3, 3)
    assert accuracy[1, 2] == 1.0
    assert best_heads(accuracy, 1) == ((1, 2),)
    assert best_heads(np.array([[0.1, 0.5], [0.9, 0.2]]), 3) == ((1, 0), (0, 1), (1, 1))


def test_what_cannot_be_aligned_is_refused():
    trace = trace_of(model_of())
    with refused("no_head"):
        align(trace, [])
    with refused("unknown_place", "head 9"):
        align(trace, [(0, 9)])
    with refused("nothing_to_show", "encoder-decoder"):
        align(trace_of(model_of(architecture="decoder")), [(0, 0)])
    with refused("nothing_to_show", "no words"):
        align(look(model_of(), subwords(), "", "the"), [(0, 0)])
    with refused("pair_count_mismatch", "1", "2"):
        accuracy_of_each_head([trace], [[], []])
    with refused("no_links"):
        accuracy_of_each_head([trace], [[]])
    with refused("no_traces"):
        head_roles([], "encoder")


@pytest.mark.parametrize(
    ("role", "goal"),
    [
        ("itself", lambda i, _: i),
        ("previous", lambda i, _: max(0, i - 1)),
        ("next", lambda i, last: min(last, i + 1)),
        ("first", lambda *_: 0),
        ("last", lambda _, last: last),
    ],
)
def test_a_head_made_to_play_a_role_is_found_to_play_it(role, goal):
    model = model_of()
    n = len(trace_of(model).inputs)
    pins = [Pin(kind="encoder", layer=1, head=2, query=i, key=goal(i, n - 1)) for i in range(n)]
    roles = head_roles([trace_of(model, interventions=pins)], "encoder")
    assert set(roles) == set(ROLES)
    assert roles[role][1, 2] == 1.0
    assert roles[role].shape == (2, 3)
    assert roles["focus"][1, 2] == pytest.approx(1.0)
    others = {"itself", "previous", "next"} - {role}
    assert all(roles[other][1, 2] < 0.6 for other in others)
    assert (np.delete(roles[role].ravel(), 5) < 1).all()


def test_an_even_head_has_no_role_however_short_the_text():
    for kind in ("encoder", "decoder", "cross"):
        for source, target in (("猫", "the"), ("猫坐在", "the cat sat")):
            change = [Uniform(kind=kind, layer=1, head=2)]
            even = look(model_of(), subwords(), source, target, interventions=change)
            summary = head_summaries(even, kind)[1][2]
            assert summary.role is None, (kind, source)
            n_seen = even.may_attend(kind).sum(axis=1)
            assert summary.entropy == pytest.approx(np.log2(n_seen).mean())
            assert summary.confidence == pytest.approx((1 / n_seen).mean())


def test_a_head_is_named_by_what_it_follows_beyond_an_even_head_s_share():
    model = model_of()
    n = len(trace_of(model).outputs)
    pins = [Pin(kind="decoder", layer=1, head=2, query=i, key=max(0, i - 1)) for i in range(n)]
    trace = trace_of(model, interventions=pins)
    summary = head_summaries(trace, "decoder")[1][2]
    assert (summary.role, summary.share) == ("previous", 1.0)
    assert summary.even == pytest.approx(np.mean([1 / (i + 1) for i in range(1, n)]))
    assert summary.distance == pytest.approx((n - 1) / n)
    shares = head_roles([trace], "decoder")
    for layer, heads in enumerate(head_summaries(trace, "decoder")):
        for head, each in enumerate(heads):
            assert each.role is None or each.share == pytest.approx(shares[each.role][layer, head])
    assert {each.distance for layer in head_summaries(trace, "cross") for each in layer} == {None}
    described = document.head_summaries(trace)
    assert described["decoder"][1][2]["role"] == "previous"
    assert [*described] == ["encoder", "decoder", "cross"]


def test_a_masked_head_cannot_be_found_to_look_ahead_and_an_even_one_has_no_focus():
    model = model_of()
    roles = head_roles([trace_of(model, interventions=[Uniform(kind="decoder", layer=0, head=1)])], "decoder")
    assert np.isnan(roles["next"]).all()
    assert roles["focus"][0, 1] == pytest.approx(0.0, abs=1e-12)
    rows = np.arange(2, 1 + len(trace_of(model).outputs))
    assert roles["first"][0, 1] == pytest.approx((1 / rows).mean())
    assert roles["special"][0, 1] == pytest.approx(np.r_[1.0, 1 / rows].mean())  # <s> alone is special
