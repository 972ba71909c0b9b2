"""Ablating, adding and patching at any address: against plain hooks, in search, and as data."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.engine.engines.protocol import Search
from regard.look.influence.attribution import leave_one_out
from regard.look.interventions.ablation import effect_of_each_head
from regard.look.interventions.activations import Ablate, Add, Patch
from regard.look.interventions.interventions import HeadOff, from_json, to_json
from regard.look.trace.recorder import look
from regard.look.trace.trace import Trace
from regard.model.taps import addresses, recording
from regard.packing import pack
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.parity.tolerances import TOLERANCES
from tests.refusals import refused

TEXTS = (("两只狗", "two dogs"), ("鸟在垫子上", "12 birds ran"))

ENCODER, DECODER = "encoder.layers.0.feed_forward.output", "decoder.layers.1.feed_forward.output"
HEADS = "decoder.layers.0.multi_head_attention.heads"
VECTOR = tuple(np.linspace(-1, 2, 14).tolist())


def close(one, other):
    np.testing.assert_allclose(one, other, **TOLERANCES[torch.float64])


def seen_at(model, address, source, target):
    """What a whole recording of a pair has at an address."""
    trace = look(model, subwords(), source, target)
    with torch.no_grad(), recording(model) as seen:
        model(pack([trace.inputs.ids]), pack([trace.outputs.ids]))
    return seen[address].double().numpy()


def by_hook(model, path, change):
    """Log-probabilities of the usual pair with a plain forward hook that changes the output of a module."""
    trace = trace_of(model)
    hook = model.get_submodule(path).register_forward_hook(
        lambda _module, _given, output: change(output.clone())
    )
    try:
        with torch.no_grad():
            log_probs = model(pack([trace.inputs.ids]), pack([trace.outputs.ids])).log_softmax(-1)
    finally:
        hook.remove()
    return log_probs[range(len(trace.targets)), trace.targets]


def put(rows, value):
    def change(output):
        output[rows] = torch.as_tensor(value, dtype=output.dtype)
        return output

    return change


@pytest.mark.parametrize("address", [ENCODER, DECODER])
@pytest.mark.parametrize("positions", [None, (1, 3)])
def test_ablation_is_that_of_a_plain_hook(address, positions):
    model, path = model_of(), address.removesuffix(".output")
    rows = slice(None) if positions is None else list(positions)
    before = trace_of(model).log_probs
    zero = trace_of(model, interventions=[Ablate(at=address, by="zero", positions=positions)])
    close(zero.log_probs, by_hook(model, path, put(rows, 0.0)))
    mean = np.concatenate([seen_at(model, address, *text) for text in TEXTS]).mean(0)
    found = trace_of(model, interventions=[Ablate(at=address, by="mean", texts=TEXTS, positions=positions)])
    close(found.log_probs, by_hook(model, path, put(rows, mean)))
    assert not np.allclose(zero.log_probs, found.log_probs)
    assert not np.allclose(before, found.log_probs)


def test_resampling_takes_rows_of_the_texts_and_depends_on_the_seed():
    model = model_of()
    known = np.concatenate([seen_at(model, DECODER, *text) for text in TEXTS])
    found = [
        trace_of(model, interventions=[Ablate(at=DECODER, by="resample", texts=TEXTS, seed=seed)])
        for seed in (1, 1, 2)
    ]
    assert found[0] == found[1]
    assert not np.array_equal(found[0].log_probs, found[2].log_probs)
    for row in found[0].output("decoder-feed-forward", 1):
        assert np.isclose(known, row).all(-1).any()
    drawn = known[[found[0].interventions[0].drawn(place) for place in range(len(found[0].outputs))]]
    close(found[0].log_probs, by_hook(model, "decoder.layers.1.feed_forward", put(slice(None), drawn)))


def test_a_vector_is_added_with_its_scale():
    model = model_of()
    add = Add(at=ENCODER, values=(VECTOR,), scale=-2.0, positions=(2,))
    expected = by_hook(
        model,
        "encoder.layers.0.feed_forward",
        lambda x: x + torch.eye(len(x))[2][:, None] * -2 * torch.tensor(VECTOR, dtype=x.dtype),
    )
    close(trace_of(model, interventions=[add]).log_probs, expected)
    plus, minus = (seen_at(model, ENCODER, *text).mean(0) for text in TEXTS)
    steered = Add(at=ENCODER, plus=TEXTS[:1], minus=TEXTS[1:], scale=3)
    found = trace_of(model, interventions=[steered])
    close(found.interventions[0].values[0], plus - minus)
    expected = by_hook(model, "encoder.layers.0.feed_forward", lambda x: x + 3 * torch.tensor(plus - minus))
    close(found.log_probs, expected)


@pytest.mark.parametrize("address", [ENCODER, DECODER])
def test_a_patch_takes_the_rows_of_another_text_or_trace(address):
    model, path = model_of(), address.removesuffix(".output")
    other = seen_at(model, address, *TEXTS[1])
    patch = Patch(at=address, text=TEXTS[1], positions=(1, 2), from_positions=(3, 0))
    found = trace_of(model, interventions=[patch])
    close(found.log_probs, by_hook(model, path, put([1, 2], other[[3, 0]])))
    trace = look(model, subwords(), *TEXTS[1])
    same = replace(patch, text=None).of_trace(trace)
    close(trace_of(model, interventions=[same]).log_probs, found.log_probs)
    whole = trace_of(model, interventions=[Patch(at=address, text=("猫", "a"))])
    n = len(seen_at(model, address, "猫", "a"))
    assert len(whole.interventions[0].values) == n


def test_patching_a_text_with_itself_changes_nothing():
    model = model_of()
    before = trace_of(model)
    for address in addresses(model):
        if address.endswith((".scores", ".weights", ".logits")):
            continue
        found = trace_of(model, interventions=[Patch(at=address, text=(SOURCE, TARGET))])
        np.testing.assert_allclose(found.log_probs, before.log_probs, atol=1e-9, err_msg=address)


def test_one_head_is_changed_alone_and_the_trace_shows_it():
    model = model_of()
    off = trace_of(model, interventions=[HeadOff(kind="cross", layer=0, head=2)])
    zero = trace_of(model, interventions=[Ablate(at=HEADS, head=2, by="zero")])
    close(zero.log_probs, off.log_probs)
    before = trace_of(model)
    mean = trace_of(model, interventions=[Ablate(at=HEADS, head=1, by="mean", texts=TEXTS)])
    rows = np.concatenate([seen_at(model, HEADS, *text) for text in TEXTS])[:, 1].mean(0)
    close(mean.head_output("cross", 0, 1), np.tile(rows, (len(mean.outputs), 1)))
    close(mean.head_output("cross", 0, 0), before.head_output("cross", 0, 0))
    w_o = model.decoder.layers[0].multi_head_attention.w_o.weight.detach().numpy()
    joined = np.concatenate([mean.head_output("cross", 0, head) for head in range(3)], axis=-1)
    close(mean.output("cross", 0), joined @ w_o.T)
    steps = {step.name: step.values for step in mean.walk("cross", 0, 1, 2)}
    close(steps["intervention"], rows)


CHANGES = [
    [Ablate(at=ENCODER, by="mean", texts=TEXTS)],
    [Ablate(at=DECODER, by="resample", texts=TEXTS, seed=3)],
    [Add(at="decoder.layers.0.add_and_norm.2.output", values=(VECTOR,), positions=(0, 2))],
    [Patch(at=HEADS, head=0, text=TEXTS[1], positions=(1,)), Ablate(at=ENCODER, by="zero", positions=(1,))],
    [Patch(at="decoder.layers.1.multi_head_attention.v", text=TEXTS[0], positions=(2,))],
    [Ablate(at="decoder.layers.1.masked_multi_head_attention.k", by="mean", texts=TEXTS, positions=(1,))],
    [Add(at="output_embedding.embedded", plus=TEXTS[:1], minus=TEXTS[1:])],
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: f"{changes[0].OP} {changes[0].at}")
def test_a_search_writes_what_the_changed_model_would(changes):
    model = model_of()
    trace = look(model, subwords(), SOURCE, search=Search(beam_size=4, extra_length=3), interventions=changes)
    again = look(model, subwords(), SOURCE, trace.targets[:-1], interventions=changes)
    assert again == replace(trace, beam=None, engine="")  # the cached search against one uncached run
    found = trace.beam.path(trace.beam.winner.id)
    np.testing.assert_allclose([node.log_prob for node in found], trace.log_probs[: len(found)], atol=1e-4)
    for beam_size in (1, 4):
        search = Search(beam_size=beam_size, extra_length=3)
        found = look(model, subwords(), SOURCE, search=search, interventions=changes)
        intact = look(model, subwords(), SOURCE, found.targets[:-1])
        assert not np.allclose(found.log_probs, intact.log_probs)
        if beam_size == 1:
            said = [found.candidates(row)[0].id for row in range(len(found.outputs) - 1)]
            assert tuple(said) == found.targets[:-1]


def test_a_position_that_a_search_does_not_reach_is_an_error():
    model = model_of()
    changes = [Ablate(at=DECODER, by="zero", positions=(2, 60))]
    with refused("intervention_mismatch", "interventions[0] (ablate)", "60"):
        look(model, subwords(), SOURCE, search=Search(beam_size=2, extra_length=3), interventions=changes)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_trace_carries_what_repeats_it(architecture):
    model = model_of(architecture=architecture)
    stack = "decoder" if architecture == "decoder" else "encoder"
    texts = tuple((source, None if stack == "encoder" else target) for source, target in TEXTS)
    changes = [Ablate(at=f"{stack}.layers.1.feed_forward.hidden", by="mean", texts=texts)]
    trace = trace_of(model, interventions=changes)
    again = Trace.from_bytes(trace.to_bytes())
    assert again == trace
    assert not again.interventions[0].references
    repeated = trace_of(model, interventions=again.interventions)
    close(repeated.log_probs, trace.log_probs)
    # Many copies of the text at once, with the interventions in place.
    effects = effect_of_each_head(model, again)
    head = HeadOff(kind=stack, layer=0, head=1)
    off = trace_of(model, interventions=[*again.interventions, head])
    close(effects[stack][0, 1], off.log_probs.sum() - trace.log_probs.sum())
    assert leave_one_out(model, again, 0).shape == (len((again.inputs or again.outputs).tokens),)


def test_plain_values_come_back_and_work_as_they_are():
    model = model_of()
    for changes in CHANGES:
        plain = json.loads(json.dumps(to_json(changes)))
        assert from_json(plain) == tuple(changes)
        assert trace_of(model, interventions=plain) == trace_of(model, interventions=changes)
    saved = look(model, subwords(), *TEXTS[1])
    (patch,) = from_json([{"op": "patch", "at": ENCODER, "positions": [1], "trace": "a"}], {"a": saved}.get)
    assert patch.values == (tuple(saved.arrays[ENCODER][1].tolist()),)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"op": "ablate", "by": "mean", "texts": ["a"]}, "interventions[0].at"),
        ({"op": "ablate", "at": ENCODER}, "interventions[0].by"),
        ({"op": "ablate", "at": ENCODER, "by": "median"}, "interventions[0].by"),
        ({"op": "ablate", "at": ENCODER, "by": "mean"}, "interventions[0] (ablate): mean needs texts"),
        ({"op": "ablate", "at": ENCODER, "by": "zero", "texts": ["a"]}, "interventions[0] (ablate)"),
        (
            {"op": "ablate", "at": ENCODER, "by": "mean", "texts": "a"},
            "interventions[0].texts expects a list",
        ),
        ({"op": "ablate", "at": ENCODER, "by": "mean", "texts": [["a"]]}, "interventions[0].texts[0]"),
        ({"op": "ablate", "at": ENCODER, "by": "zero", "head": -1}, "interventions[0].head"),
        ({"op": "ablate", "at": ENCODER, "by": "zero", "positions": [1, 1]}, "interventions[0].positions"),
        ({"op": "ablate", "at": ENCODER, "by": "zero", "positions": [1.5]}, "interventions[0].positions[0]"),
        ({"op": "add", "at": ENCODER}, "interventions[0] (add)"),
        ({"op": "add", "at": ENCODER, "values": [[1.0], [2.0]]}, "must be 1 row, not 2"),
        ({"op": "add", "at": ENCODER, "values": [[1.0, float("nan")]]}, "interventions[0].values[0]"),
        ({"op": "add", "at": ENCODER, "values": [[1.0], [1.0, 2.0]]}, "interventions[0].values"),
        ({"op": "add", "at": ENCODER, "values": [[1.0]], "scale": "2"}, "interventions[0].scale"),
        ({"op": "add", "at": ENCODER, "values": [[1.0]], "by": "zero"}, "interventions[0].by is not a field"),
        ({"op": "patch", "at": ENCODER}, "give a text, a trace, or values"),
        ({"op": "patch", "at": ENCODER, "trace": "a"}, "interventions[0].trace"),
        (
            {"op": "patch", "at": ENCODER, "text": "a", "from_positions": [1]},
            "from_positions needs positions",
        ),
        ({"op": "patch", "at": ENCODER, "values": [[1.0]], "positions": [1, 2]}, "2 positions and 1 rows"),
    ],
)
def test_malformed_values_are_refused_by_place(value, place):
    with refused("bad_intervention", place):
        from_json([value])


@pytest.mark.parametrize(
    ("each", "place"),
    [
        (
            Ablate(at="encoder.layers.0.feed_forward.outputs", by="zero"),
            "encoder.layers.0.feed_forward.output",
        ),
        (Ablate(at="encoder.layers.0.multi_head_attention.weights", by="zero"), "use uniform, pin"),
        (Ablate(at="output_probabilities.logits", by="zero"), "intervene below"),
        (Ablate(at=ENCODER, by="zero", head=1), "has no heads"),
        (Ablate(at=HEADS, by="zero", head=3), "there is no head 3; they are numbered 0 to 2"),
        (Ablate(at=ENCODER, by="zero", positions=(99,)), "there is no token 99"),
        (Add(at=ENCODER, values=((1.0, 2.0),)), "has 14 numbers per token, values have 2"),
        (Patch(at=ENCODER, text=("猫", None), positions=(3,), from_positions=(50,)), "has no token 50"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_by_place(each, place):
    with refused("intervention_mismatch", "interventions[1]", place):
        trace_of(model_of(), interventions=[HeadOff(kind="cross", layer=0, head=0), each])
