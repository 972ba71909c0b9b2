"""What is changed inside a model, and nothing besides."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.config import ModelConfig
from regard.engine.engines.protocol import Search
from regard.look.influence.attribution import deletion_curve
from regard.look.interventions.ablation import effect_of_each_head
from regard.look.interventions.apply import replacing
from regard.look.interventions.interventions import (
    HeadOff,
    MaskSource,
    NoPositions,
    NoScale,
    Pin,
    SkipBlock,
    Uniform,
    check,
    from_json,
    to_json,
)
from regard.look.trace.recorder import look
from regard.model.build import build
from regard.model.taps import recording
from regard.packing import pack
from tests.look.traced import ARCHITECTURES, DEPARTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.parity.tolerances import TOLERANCES
from tests.refusals import refused

EACH = [
    HeadOff(kind="cross", layer=1, head=2),
    Uniform(kind="encoder", layer=0, head=1),
    Pin(kind="decoder", layer=2, head=0, query=3, key=1),
    MaskSource(token=2),
    SkipBlock(block="decoder-feed-forward", layer=0),
    NoScale(),
    NoPositions(),
]


def close(one, other):
    np.testing.assert_allclose(one, other, **TOLERANCES[torch.float64])


def total(trace):
    return float(trace.log_probs.sum())


def sibling(model, **changes):
    """A model of another configuration with the same weights, where both have them."""
    other = build(replace(model.config, **changes)).to(torch.float64).eval()
    other.load_state_dict(model.state_dict(), strict=False)
    other.compute_dtype = torch.float64
    return other


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_empty_list_changes_no_bit(architecture):
    model = model_of(torch.float32, architecture=architecture)
    trace = trace_of(model)
    assert trace_of(model, interventions=[]) == trace
    with torch.inference_mode(), recording(model) as seen:
        model(*[pack([side.ids]) for side in (trace.inputs, trace.outputs) if side is not None])
    for name in {"encoder.output", "decoder.output"} & seen.keys():
        assert np.array_equal(trace.arrays[name], seen[name])


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.OP)
def test_each_changes_what_the_model_says_and_leaves_the_model_alone(each):
    model = model_of()
    before = trace_of(model)
    assert abs(total(trace_of(model, interventions=[each])) - total(before)) > 1e-6
    assert trace_of(model) == before


def test_a_head_that_is_off_adds_nothing_to_its_block():
    model = model_of()
    trace = trace_of(model, interventions=[HeadOff(kind="cross", layer=1, head=2)])
    w_o = model.decoder.layers[1].multi_head_attention.w_o.weight.detach().numpy()
    heads = [trace.attention("cross", 1, i) @ trace.v("cross", 1, i) for i in range(3)]
    close(trace.output("cross", 1), np.concatenate([heads[0], heads[1], 0 * heads[2]], axis=-1) @ w_o.T)
    assert np.array_equal(trace.output("cross", 0), trace_of(model).output("cross", 0))


def test_uniform_attention_is_even_over_what_may_be_seen():
    model = model_of()
    trace = trace_of(model, interventions=[Uniform(kind="decoder", layer=1, head=0)])
    n = len(trace.outputs)
    close(trace.attention("decoder", 1, 0), np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None])
    others = trace_of(model)
    assert np.array_equal(trace.attention("decoder", 1, 1), others.attention("decoder", 1, 1))


def test_a_pinned_query_looks_at_its_key_alone():
    model = model_of()
    trace = trace_of(model, interventions=[Pin(kind="cross", layer=0, head=1, query=2, key=5)])
    rows, before = trace.attention("cross", 0, 1), trace_of(model).attention("cross", 0, 1)
    assert np.array_equal(rows[2], np.eye(len(trace.inputs))[5])
    assert np.array_equal(np.delete(rows, 2, 0), np.delete(before, 2, 0))


@pytest.mark.parametrize("settings", DEPARTURES)
@torch.no_grad()
def test_what_a_trace_shows_of_changed_attention_is_what_the_model_did(settings):
    model = model_of(**settings)
    changes = [EACH[1], EACH[2], EACH[3], Pin(kind="cross", layer=1, head=1, query=0, key=4)]
    unbiased = settings.get("positions") != "alibi"
    changes += [NoScale()] if model.config.similarity == "scaled-dot" and unbiased else []
    trace = trace_of(model, interventions=changes)
    for kind, module in (("encoder", "multi_head_attention"), ("decoder", "masked_multi_head_attention"),
                         ("cross", "multi_head_attention")):  # fmt: skip
        stack = model.encoder if kind == "encoder" else model.decoder
        for i, layer in enumerate(stack.layers):
            heads = [trace.attention(kind, i, head) @ trace.v(kind, i, head) for head in range(3)]
            output = getattr(layer, module).w_o(torch.tensor(np.concatenate(heads, axis=-1)))
            close(trace.output(kind, i), output)


def test_a_masked_source_token_has_no_say():
    model = model_of()
    trace = trace_of(model, interventions=[MaskSource(token=2)])
    for kind in ("encoder", "cross"):
        assert not trace.may_attend(kind)[:, 2].any()
        assert (trace.attention(kind, 1, 1)[:, 2] == 0).all()
    ids = list(subwords().encode_one(SOURCE))
    other = look(model, subwords(), [*ids[:2], 9, *ids[3:]], TARGET, interventions=[MaskSource(token=2)])
    assert np.array_equal(trace.log_probs, other.log_probs)


@pytest.mark.parametrize("norm_position", ["pre", "post"])
def test_a_skipped_block_is_a_block_whose_weights_are_zero(norm_position):
    model = model_of(norm_position=norm_position)
    skips = [SkipBlock(block="encoder", layer=1), SkipBlock(block="decoder-feed-forward", layer=0)]
    trace = trace_of(model, interventions=skips)
    with torch.no_grad():
        model.encoder.layers[1].multi_head_attention.w_o.weight.zero_()
        model.decoder.layers[0].feed_forward.narrow.weight.zero_()
        model.decoder.layers[0].feed_forward.narrow.bias.zero_()
    close(trace.log_probs, trace_of(model).log_probs)


def test_without_its_scale_the_paper_s_similarity_is_the_plain_dot_product():
    model = model_of()
    trace = trace_of(model, interventions=[NoScale()])
    plain = trace_of(sibling(model, similarity="dot"))
    close(trace.log_probs, plain.log_probs)
    close(trace.scores("decoder", 2, 1), plain.scores("decoder", 2, 1))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_positions_a_model_is_one_that_was_never_told_them(positions, architecture):
    model = model_of(architecture=architecture, positions=positions)
    trace = trace_of(model, interventions=[NoPositions()])
    assert np.array_equal(trace.log_probs, trace_of(sibling(model, positions="none")).log_probs)
    assert trace.config.positions == "none"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])  # engines run a packed copy in float32
@pytest.mark.parametrize(
    "changes",
    [
        [HeadOff(kind="cross", layer=1, head=2), SkipBlock(block="encoder", layer=1)],
        [Uniform(kind="decoder", layer=1, head=0), MaskSource(token=1)],
        [NoScale(), NoPositions(), Pin(kind="encoder", layer=0, head=1, query=1, key=3)],
    ],
)
def test_a_search_is_intervened_in_as_the_trace_is(changes, dtype):
    model = model_of(dtype)
    trace = look(model, subwords(), SOURCE, interventions=changes)
    again = look(model, subwords(), SOURCE, trace.targets[:-1], interventions=changes)
    assert again == replace(trace, beam=None, engine="")
    found = trace.beam.path(trace.beam.winner.id)
    np.testing.assert_allclose([node.log_prob for node in found], trace.log_probs[: len(found)], atol=1e-4)
    # Greedy: each token found is the one that the changed model, read whole, finds likeliest.
    greedy = look(
        model, subwords(), SOURCE, search=Search(beam_size=1, extra_length=3), interventions=changes
    )
    said = [greedy.candidates(row)[0].id for row in range(len(greedy.outputs) - 1)]
    assert tuple(said) == greedy.targets[:-1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("changed", [False, True])
def test_the_effect_of_each_head_is_that_of_switching_them_off_one_by_one(architecture, changed, monkeypatch):
    kind = "decoder" if architecture == "decoder" else "encoder"
    before = [NoPositions(), SkipBlock(block=kind, layer=1)] if changed else []
    monkeypatch.setattr(
        "regard.look.interventions.ablation.BATCH_TOKENS", 40
    )  # several batches, the last not full
    model = model_of(architecture=architecture)
    trace = trace_of(model, interventions=before)
    effects = effect_of_each_head(model, trace)
    assert set(effects) == set(trace.kinds)
    for kind, of_kind in effects.items():
        for (layer, head), effect in np.ndenumerate(of_kind):
            one = trace_of(model, interventions=[*before, HeadOff(kind=kind, layer=layer, head=head)])
            log_prob = total(one)
            if architecture == "encoder":  # its own best label may be another one
                log_prob = np.log({each.id: each.probability for each in one.candidates(0)}[trace.targets[0]])
            close(log_prob - total(trace), effect)
    assert effects[trace.kinds[0]].std() > 1e-4


def test_effects_want_the_model_that_the_trace_came_from():
    trace = trace_of(model_of())
    with refused("trace_mismatch"):
        effect_of_each_head(model_of(d_ff=7), trace)
    with refused("model_in_training"):
        effect_of_each_head(model_of().train(), trace)
    n_rows = len(trace.targets)
    with refused("unknown_place", f"no row {n_rows + 1}; the output has rows 0 to {n_rows - 1}"):
        effect_of_each_head(model_of(), trace, n_rows + 1)


def test_a_list_travels_as_json():
    assert from_json(json.loads(json.dumps(to_json(EACH)))) == tuple(EACH)
    assert to_json([EACH[0], NoScale()]) == [
        {"op": "head-off", "kind": "cross", "layer": 1, "head": 2}, {"op": "no-scale"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({}, "interventions expects a list, got a table"),
        ([3], "interventions[0] expects an object"),
        ([{"op": "no-scale"}, {"op": "heads-off"}], 'interventions[1].op = "heads-off"'),
        ([{"op": "heads-off"}], "did you mean head-off"),
        ([{"kind": "cross"}], "op = None"),
        ([{"op": ["uniform"]}], "op = a list"),
        ([{"op": "mask-source"}], "interventions[0].token"),
        ([{"op": "mask-source", "token": "cat"}], 'token expects an integer, got "cat"'),
        ([{"op": "mask-source", "token": True}], "got true"),
        ([{"op": "no-scale", "layer": 1}], "interventions[0].layer"),
        ([{"op": "uniform", "kind": "corss", "layer": 0, "head": 0}], "did you mean cross"),
    ],
)
def test_a_list_that_is_none_is_refused_by_name(values, place):
    with refused("bad_intervention", place):
        from_json(values)


@pytest.mark.parametrize(
    ("each", "place"),
    [
        (HeadOff(kind="cross", layer=3, head=0), "interventions[0] (head-off): there is no layer 3"),
        (Uniform(kind="encoder", layer=0, head=-1), "head -1; they are numbered 0 to 2"),
        (Pin(kind="cross", layer=0, head=0, query=9, key=0), "query 9; they are numbered 0 to 4"),
        (Pin(kind="cross", layer=0, head=0, query=0, key=7), "key 7; they are numbered 0 to 6"),
        (Pin(kind="decoder", layer=0, head=0, query=1, key=2), "later key 2"),
        (MaskSource(token=7), "token 7; they are numbered 0 to 6"),
        (SkipBlock(block="encoder", layer=2), "layer 2; they are numbered 0 to 1"),
    ],
)
def test_what_a_model_or_a_text_does_not_have_is_refused(each, place):
    config = ModelConfig(vocab_size=9, d_model=6, n_heads=3, encoder_layers=2, decoder_layers=3)
    check(EACH, config, 7, 5)
    with refused("intervention_mismatch", place):
        check([each], config, 7, 5)


def test_what_makes_no_sense_is_refused():
    config = ModelConfig(vocab_size=9, d_model=6, n_heads=3)
    with refused("intervention_mismatch", "give a target"):
        check([Pin(kind="cross", layer=0, head=0, query=0, key=0)], config, 7, None)
    check([Pin(kind="encoder", layer=0, head=0, query=0, key=0)], config, 7, None)
    check([Pin(kind="decoder", layer=0, head=0, query=3, key=1), MaskSource(token=1)], config, 7, 5)
    with refused("intervention_mismatch", "every token"):
        check([MaskSource(token=0), MaskSource(token=1)], config, 2, 5)
    with refused("intervention_mismatch", "(pin): key 1"):
        check([Pin(kind="cross", layer=0, head=0, query=0, key=1), MaskSource(token=1)], config, 2, 5)
    with refused("intervention_mismatch", "cosine"):
        check([NoScale()], replace(config, similarity="cosine"), 2, 5)
    with refused("intervention_mismatch", "no positions"):
        check([NoPositions()], replace(config, positions="none"), 2, 5)
    alone = replace(config, architecture="decoder")
    with refused("intervention_mismatch", "no inputs"):
        check([MaskSource(token=0)], alone, 0, 5)
    with refused("intervention_mismatch", "kind cross", "which has decoder"):
        check([HeadOff(kind="cross", layer=0, head=0)], alone, 0, 5)
    with refused("intervention_mismatch", "block encoder"):
        check([SkipBlock(block="encoder", layer=0)], alone, 0, 5)


@pytest.mark.parametrize(
    ("address", "shape"),
    [
        ("decoder.layers.1.multi_head_attention.scores", (1, 3, 5, 8)),
        ("decoder.layers.1.multi_head_attention.heads", (5, 3, 11)),
        ("decoder.layers.0.feed_forward.output", (5, 14)),
    ],
)
def test_what_is_replaced_is_itself_left_alone(address, shape):
    value = torch.randn(shape)
    kept = value.clone()
    assert not torch.equal(replacing(EACH, model_of().config)(address, value), value)
    assert torch.equal(value, kept)


def test_what_is_said_twice_counts_once():
    model, twice = model_of(), [NoScale(), HeadOff(kind="cross", layer=0, head=1)] * 2
    one, other = trace_of(model, interventions=twice[:2]), trace_of(model, interventions=twice)
    assert np.array_equal(one.log_probs, other.log_probs)
    assert np.array_equal(one.attention("cross", 0, 0), other.attention("cross", 0, 0))


def test_one_query_is_pinned_to_one_key():
    config = ModelConfig(vocab_size=9, d_model=6, n_heads=3)
    pin = Pin(kind="decoder", layer=0, head=0, query=3, key=1)
    check([pin, pin, replace(pin, query=4, key=0)], config, 7, 5)
    with refused("intervention_mismatch", "interventions[1] (pin)", "key 1"):
        check([pin, replace(pin, key=2)], config, 7, 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "change", [MaskSource(token=1), Pin(kind="cross", layer=1, head=2, query=2, key=3)], ids=lambda c: c.OP
)
def test_coarse_models_are_intervened_in_too(dtype, change):
    fine, coarse = model_of(torch.float32), model_of(dtype)
    expected, found = (trace_of(model, interventions=[change]) for model in (fine, coarse))
    assert np.allclose(found.log_probs, expected.log_probs, atol=0.3)
    assert np.array_equal(found.attention("cross", 1, 2) == 0, expected.attention("cross", 1, 2) == 0)
    curve = deletion_curve(coarse, found, 1, np.arange(len(found.inputs)))
    assert np.isfinite(curve).all()


def test_the_order_of_a_list_says_nothing():
    model = model_of()
    several = [
        MaskSource(token=2), Pin(kind="cross", layer=0, head=0, query=1, key=1), NoScale(),
        Uniform(kind="cross", layer=0, head=0), HeadOff(kind="encoder", layer=1, head=2),
    ]  # fmt: skip
    one, other = trace_of(model, interventions=several), trace_of(model, interventions=several[::-1])
    assert np.array_equal(one.log_probs, other.log_probs)
    assert (one.attention("cross", 0, 0)[:, 2] == 0).all()
    assert one.attention("cross", 0, 0)[1, 1] == 1
