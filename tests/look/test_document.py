"""A trace as plain values and bytes says what the trace says."""

import json
from dataclasses import replace

import numpy as np
import pytest

from regard.engine.engines.protocol import Search
from regard.look.alignment.alignment import align, default_heads
from regard.look.export.document import alignment, beam, describe, matrix, plain, steps, walk
from regard.look.interventions.interventions import HeadOff, MaskSource
from regard.look.trace.recorder import look
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.refusals import refused

each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
WIDTHS = {"u8": np.uint8, "f16": np.float16, "f32": np.float32}


def numbers(values):
    """What JSON made of an array, as an array again; null is a score of a masked token."""
    return np.array(values, dtype=np.float64)


def through_json(values):
    return json.loads(json.dumps(values, allow_nan=False))


@each_architecture
def test_a_description_is_json_and_names_what_is_there(architecture):
    trace = trace_of(model_of(architecture=architecture))
    told = through_json(describe(trace))
    assert told["architecture"] == architecture
    for kind in told["kinds"]:
        name = kind["kind"]
        rows, columns = (len(told[kind[side]]["tokens"]) for side in ("queries", "keys"))
        assert trace.attention(name, kind["layers"] - 1, kind["heads"] - 1).shape == (rows, columns)
        with refused("unknown_place"):
            trace.attention(name, kind["layers"], 0)
        assert trace.q(name, 0, 0).shape[1] == told["sizes"]["d_k"]
        assert trace.v(name, 0, 0).shape[1] == told["sizes"]["d_v"]
    assert [each["id"] for each in told["wanted"]] == list(trace.targets)
    np.testing.assert_allclose([each["log_prob"] for each in told["wanted"]], trace.log_probs, rtol=1e-6)


def test_tokens_carry_their_words_and_their_places():
    told = describe(trace_of(model_of()))
    assert told["inputs"]["text"] == SOURCE
    assert told["outputs"]["text"] == TARGET
    assert [word["text"] for word in told["outputs"]["words"]] == ["<s>", "the", "cat", "sat"]
    first = told["outputs"]["tokens"][0]
    assert (first["special"], first["word"], first["start"], first["end"]) == (True, 0, 0, 0)
    assert "".join(each["text"] for each in told["wanted"]).startswith("the")
    assert told["wanted"][-1]["text"] == "</s>"


def test_masks_are_told():
    trace = trace_of(model_of(), interventions=[MaskSource(token=2)])
    told = {kind["kind"]: kind for kind in describe(trace)["kinds"]}
    assert told["cross"]["masked"] == told["encoder"]["masked"] == [2]
    assert told["decoder"]["causal"]
    assert not told["decoder"]["masked"]


def test_the_hash_names_what_was_seen():
    model = model_of()
    trace, again = trace_of(model), trace_of(model)
    changed = trace_of(model, interventions=[HeadOff(kind="cross", layer=0, head=0)])
    assert describe(trace)["hash"] == describe(again)["hash"] != describe(changed)["hash"]


@each_architecture
def test_steps_are_the_candidates_of_the_trace(architecture):
    trace = trace_of(model_of(architecture=architecture))
    told = through_json(steps(trace))
    assert len(told) == trace.arrays["said.ids"].shape[1]
    for row, step in enumerate(told):
        candidates = trace.candidates(row)
        assert [each["id"] for each in step["candidates"]] == [each.id for each in candidates]
        shares = np.array([each["probability"] for each in step["candidates"]])
        np.testing.assert_allclose(shares, [each.probability for each in candidates], rtol=1e-6)
        logits = np.array([each["logit"] for each in step["candidates"]])
        np.testing.assert_allclose(np.exp(logits - step["normaliser"]), shares, rtol=1e-5)
        assert shares.sum() + step["rest"] == pytest.approx(1, abs=1e-5)
        assert [layer["candidates"][0]["id"] for layer in step["lens"]] == [
            said[0].id for said in trace.lens(row)
        ]
        if step["chosen"]:
            assert step["chosen"]["probability"] == pytest.approx(np.exp(trace.log_probs[row]), rel=1e-5)
            assert step["lens"][-1]["chosen"] == step["chosen"]["probability"]
    assert sum(step["chosen"] is not None for step in told) == len(trace.targets)


def test_the_entropy_takes_the_unknown_rest_for_one_token():
    trace = trace_of(model_of())
    step = steps(trace)[0]
    shares = np.array([each["probability"] for each in step["candidates"]] + [step["rest"]])
    assert step["entropy"] == pytest.approx(-(shares * np.log2(shares)).sum(), rel=1e-4)
    assert 0 < step["entropy"] <= np.log2(len(shares))


def test_a_walk_keeps_names_words_shapes_and_numbers():
    trace = trace_of(model_of())
    told = through_json(walk(trace, "decoder", 2, 1, 1))
    for step, real in zip(told, trace.walk("decoder", 2, 1, 1), strict=True):
        assert (step["name"], step["latex"], step["chinese"]) == (real.name, real.latex, real.chinese)
        assert step["shape"] == list(real.values.shape)
        assert step["rows"] == list(real.rows)
        finite = np.where(np.isfinite(real.values), real.values, np.nan)
        np.testing.assert_allclose(numbers(step["values"]), finite, rtol=1e-6)
    masked = next(step for step in told if step["name"] == "masked")["values"]
    assert [value is None for value in masked] == (~trace.may_attend("decoder")[1]).tolist()


def test_alignment_is_that_of_the_heads_given():
    trace = trace_of(model_of())
    told, real = through_json(alignment(trace, [(0, 1)], "own")), align(trace, [(0, 1)], "own")
    np.testing.assert_allclose(told["shares"], real.shares, atol=1e-4)
    np.testing.assert_allclose(told["coverage"], real.coverage, rtol=1e-6)
    assert told["links"] == [list(link) for link in real.links]
    assert [told["inputs"][i]["text"] for i in told["untouched"]] == [word.text for word in real.untouched]
    assert told["measured"]


def test_alignment_is_by_the_usual_heads_where_none_are_given():
    trace = trace_of(model_of())
    told, usual = alignment(trace), default_heads(trace.config).heads
    assert told["heads"] == [list(head) for head in usual]
    assert not told["measured"]
    np.testing.assert_allclose(told["shares"], align(trace, usual).shares, atol=1e-4)


def test_a_tree_is_json_also_where_a_score_is_not_finite():
    tree = look(model_of(), subwords(), SOURCE, search=Search(beam_size=2, extra_length=0)).beam
    assert through_json(beam(tree)) == tree.to_json()
    never = replace(tree, nodes=(replace(tree.nodes[0], log_prob=-np.inf), *tree.nodes[1:]))
    assert through_json(beam(never))["nodes"][0] == {**tree.to_json()["nodes"][0], "log_prob": None}


def test_who_found_the_output_is_told():
    trace = look(model_of(), subwords(), SOURCE, search=Search(extra_length=0))
    told = describe(replace(trace, weights_hash="abc"))
    assert (told["engine"], told["weights_hash"]) == ("torch", "abc")


@pytest.mark.parametrize(("dtype", "close"), [("u8", 2e-3), ("f16", 1e-3), ("f32", 1e-7)])
def test_a_matrix_is_its_bytes_times_its_scale(dtype, close):
    trace = trace_of(model_of())
    found = matrix(trace, "cross", 2, 1, dtype=dtype)
    read = np.frombuffer(found.data, WIDTHS[dtype]).reshape(found.shape) * found.scale
    np.testing.assert_allclose(read, trace.attention("cross", 2, 1), atol=close)
    layer = matrix(trace, "cross", 2, None, dtype=dtype)
    heads = np.frombuffer(layer.data, WIDTHS[dtype]).reshape(layer.shape) * layer.scale
    assert heads.shape == (trace.config.n_heads, *found.shape)
    np.testing.assert_allclose(heads[1], trace.attention("cross", 2, 1), atol=close)


def test_bytes_show_the_largest_weight_as_it_is():
    trace = trace_of(model_of())
    found = matrix(trace, "encoder", 0, 0)
    assert max(found.data) == 255
    assert 255 * found.scale == pytest.approx(trace.attention("encoder", 0, 0).max())


def test_scores_need_a_precision_that_goes_below_nothing():
    trace = trace_of(model_of())
    found = matrix(trace, "decoder", 0, 0, "scores", "f32")
    np.testing.assert_allclose(
        np.frombuffer(found.data, np.float32).reshape(found.shape),
        trace.scores("decoder", 0, 0),
        rtol=1e-6,
    )
    with refused("bad_option", "f16 or f32"):
        matrix(trace, "decoder", 0, 0, "scores", "u8")


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        (("cross", 9, 0), "unknown_place", "layer 9"),
        (("cross", 0, 9), "unknown_place", "head 9"),
        (("sideways", 0, 0), "unknown_place", "sideways"),
        (("cross", 0, 0, "norms"), "bad_option", "norms"),
        (("cross", 0, 0, "weights", "f8"), "bad_option", "f8"),
    ],
)
def test_what_is_not_there_is_named(arguments, code, place):
    with refused(code, place):
        matrix(trace_of(model_of()), *arguments)


def test_plain_numbers_come_back_as_float32():
    array = np.random.default_rng(1).normal(size=(2, 3, 5)).astype(np.float32)
    assert np.array_equal(np.array(plain(array), np.float32), array)
    assert plain(np.float32(0.1)) == 0.1
    assert plain(np.array([1.0, -np.inf])) == [1.0, None]
