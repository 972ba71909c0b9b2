"""What a trace shows is what the model did."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.look.interventions.ablation import effect_of_each_head
from regard.look.interventions.interventions import HeadOff, MaskSource
from regard.look.trace.blocks import contents_of
from regard.look.trace.recorder import look
from regard.look.trace.trace import Trace
from regard.model.taps import recording
from regard.packing import pack
from tests.look.traced import ARCHITECTURES, DEPARTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.model.small import small_model
from tests.parity.tolerances import ANGLES, TOLERANCES, assert_close
from tests.refusals import refused
from tests.shapes import shape_suffixes_checked

each_setting = pytest.mark.parametrize(
    "changes", DEPARTURES, ids=lambda s: "-".join(map(str, s.values())) or "paper"
)
each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
MODULES = {
    "encoder": "multi_head_attention",
    "decoder": "masked_multi_head_attention",
    "cross": "multi_head_attention",
}


def packs(trace):
    return [pack([side.ids]) for side in (trace.inputs, trace.outputs) if side is not None]


def heads_of(trace):
    config = trace.config
    for kind in trace.kinds:
        for layer in range(config.encoder_layers if kind == "encoder" else config.decoder_layers):
            for head in range(config.n_heads):
                yield kind, layer, head


def address(kind, layer):
    return f"{'encoder' if kind == 'encoder' else 'decoder'}.layers.{layer}.{MODULES[kind]}"


def close(one, other, dtype=torch.float64):
    np.testing.assert_allclose(one, other, **TOLERANCES[dtype])


@each_architecture
@each_setting
@torch.no_grad()
def test_attention_is_what_a_whole_recording_shows(architecture, changes):
    model = model_of(architecture=architecture, **changes)
    trace = trace_of(model)
    with recording(model) as seen:
        model(*packs(trace))
    for kind, layer, head in heads_of(trace):
        at = address(kind, layer)
        close(trace.scores(kind, layer, head), seen[f"{at}.scores"][0, head])
        close(trace.attention(kind, layer, head), seen[f"{at}.weights"][0, head])
        for name, shown in (("q", trace.q), ("k", trace.k), ("v", trace.v)):
            assert np.array_equal(shown(kind, layer, head), seen[f"{at}.{name}"][:, head])
        assert np.array_equal(trace.output(kind, layer), seen[f"{at}.output"])


@settings(max_examples=12)
@given(
    st.sampled_from(ARCHITECTURES),
    st.sampled_from(DEPARTURES),
    st.fixed_dictionaries(
        {"n_heads": st.integers(1, 3), "d_v": st.integers(1, 5), "decoder_layers": st.integers(1, 2)}
    ),
    st.text("猫坐在thecat 龘", max_size=9),
)
@torch.no_grad()
def test_rows_sum_to_one_and_the_weighted_sum_through_w_o_is_the_block_s_output(
    architecture, changes, sizes, text
):
    model = model_of(architecture=architecture, **changes, **sizes)
    trace = look(model, subwords(), text, None if architecture == "encoder" else "a cat")
    for kind in trace.kinds:
        layer = 0
        heads = []
        for head in range(model.config.n_heads):
            weights = trace.attention(kind, layer, head)
            close(weights.sum(-1), np.ones(len(weights)))
            assert (weights[~trace.may_attend(kind)] == 0).all()
            heads.append(weights @ trace.v(kind, layer, head))
        w_o = model.get_submodule(address(kind, layer)).w_o
        close(trace.output(kind, layer), w_o(torch.tensor(np.concatenate(heads, -1))))


@each_architecture
@each_setting
@torch.no_grad()
def test_what_the_model_says_is_what_it_says_when_nobody_looks(architecture, changes):
    model = model_of(architecture=architecture, **changes)
    trace = trace_of(model)
    log_probs = model(*packs(trace)).log_softmax(-1)
    close(trace.log_probs, log_probs[range(len(trace.targets)), trace.targets])
    for row in range(len(log_probs)):
        best = log_probs[row].exp().topk(min(10, log_probs.shape[1]))
        candidates = trace.candidates(row)
        assert [each.id for each in candidates] == best.indices.tolist()
        close([each.probability for each in candidates], best.values)
    assert trace.outputs is None or candidates[0].piece == subwords().pieces([candidates[0].id])[0]


@each_architecture
@pytest.mark.parametrize("norm_position", ["pre", "post"])
@torch.no_grad()
def test_the_lens_shows_what_a_model_with_fewer_layers_would_say(architecture, norm_position):
    model = model_of(architecture=architecture, norm_position=norm_position)
    trace = trace_of(model)
    stack = model.encoder if architecture == "encoder" else model.decoder
    for n in range(len(stack.layers), 0, -1):
        del stack.layers[n:]
        log_probs = model(*packs(trace)).log_softmax(-1)
        for row in (0, len(log_probs) - 1):
            said = trace.lens(row)[n - 1]
            close([each.probability for each in said], log_probs[row, [each.id for each in said]].exp())
            assert said[0].id == log_probs[row].argmax()


@torch.no_grad()
def test_without_a_target_the_best_hypothesis_is_traced():
    model = model_of()
    ids = tuple(subwords().encode_one(SOURCE).tolist())
    search = Search(beam_size=3, extra_length=4)
    engine = TorchEngine([model], bos=subwords().bos_id, eos=subwords().eos_id)
    ((best,),) = engine.decode([Request(ids=ids)], search)
    trace = look(model, subwords(), SOURCE, search=search)
    assert trace.targets[:-1] == best.ids == trace.outputs.ids[1:]
    close(trace.log_probs[: len(best.token_log_probs)], best.token_log_probs, torch.float32)
    assert trace.engine == "torch"
    assert trace.beam.ids(trace.beam.winner.id)[: len(best.ids)] == best.ids
    assert look(model, subwords(), ids, best.ids) == replace(trace, beam=None, engine="")


def test_the_decoder_alone_reads_the_source_and_then_the_target():
    model, (one, other) = model_of(architecture="decoder"), subwords().encode(["the cat", "sat on"])
    trace = look(model, subwords(), "the cat", "sat on")
    assert trace.targets == (*one, *other)
    assert trace.outputs.ids == (subwords().bos_id, *one, *other)
    assert trace == look(model, subwords(), [*one, *other])
    assert len(trace.candidates(len(trace.targets))) == 10  # what would come next


def test_other_ends_may_be_named():
    trace = trace_of(model_of(), bos=7, eos=8)
    assert (trace.outputs.ids[0], trace.inputs.ids[-1], trace.targets[-1]) == (7, 8, 8)


@each_architecture
def test_norms_of_the_residual_stream_start_at_the_embedding(architecture):
    model = model_of(architecture=architecture)
    trace = trace_of(model)
    stack, sublayers = (
        ("encoder", 4) if architecture == "encoder" else ("decoder", 9 if architecture[0] == "e" else 6)
    )
    norms = trace.residual_norms(stack)
    assert norms.shape == (1 + sublayers, len(trace.inputs if stack == "encoder" else trace.outputs))
    side = "input" if stack == "encoder" else "output"
    placed = trace.arrays[f"{side}_embedding.embedded"] + trace.arrays[f"{side}_embedding.positions"]
    close(norms[0], np.sqrt((placed**2).sum(-1)), ANGLES)
    close(norms[-1], np.sqrt((trace.arrays[f"{stack}.output"] ** 2).sum(-1)))


@each_architecture
@each_setting
def test_a_saved_trace_comes_back_equal(architecture, changes, tmp_path):
    trace = trace_of(model_of(torch.float32, architecture=architecture, **changes), interventions=[])
    trace.save(tmp_path / "a.safetensors")
    again = Trace.load(tmp_path / "a.safetensors")
    assert trace.arrays.keys() == contents_of(trace.config)
    assert again == trace == Trace.from_bytes(block := trace.to_bytes())
    assert block == (tmp_path / "a.safetensors").read_bytes()
    assert np.array_equal(again.attention(trace.kinds[0], 1, 2), trace.attention(trace.kinds[0], 1, 2))
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_traces_differ_when_a_text_a_number_or_an_intervention_does(tmp_path):
    model = model_of()
    trace = trace_of(model)
    assert trace == trace_of(model)
    assert trace != look(model, subwords(), SOURCE, "the cat")
    changed = trace_of(model, interventions=[HeadOff(kind="cross", layer=1, head=2), MaskSource(token=1)])
    assert trace != changed
    changed.save(tmp_path / "changed.safetensors")
    assert Trace.load(tmp_path / "changed.safetensors").interventions == changed.interventions
    arrays = {name: array.copy() for name, array in trace.arrays.items()}
    arrays["encoder.output"][0, 0] += 1e-9
    assert trace != replace(trace, arrays=arrays)
    narrower = {**trace.arrays, "said.ids": trace.arrays["said.ids"].astype(np.int32)}
    assert trace != replace(trace, arrays=narrower)


def test_a_trace_of_a_long_text_costs_megabytes_and_grows_with_its_length():
    # The widths of the base model, with one of its six layers in each stack.
    settings = {"d_model": 512, "n_heads": 8, "d_k": 64, "d_v": 64, "encoder_layers": 1, "decoder_layers": 1}
    model = model_of(torch.float32, **settings)
    sizes = []
    for n in (255, 511):
        ids = [9] * n
        sizes.append(look(model, subwords(), ids, ids).nbytes)
    # 19 MB a layer and 8 MB besides: with six layers 122 MB. Weights and scores of all heads would be 302 MB.
    assert sizes[1] < 28 * 1024 * 1024
    assert 1.9 < sizes[1] / sizes[0] < 2.02


def test_a_model_in_bfloat16_can_be_looked_at():
    trace = trace_of(model_of(torch.bfloat16))
    assert trace.arrays["encoder.output"].dtype == np.float32
    # As it ran: weights of 8 bits do not sum to exactly 1.
    np.testing.assert_allclose(trace.attention("cross", 1, 1).sum(-1), 1, atol=2**-7)


def test_looking_leaves_the_model_as_it_was():
    model = model_of()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trace_of(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("similarity", ["scaled-dot", "additive"])
def test_a_trace_stays_as_it_is_when_the_model_learns_on(similarity):
    model = model_of(similarity=similarity)
    trace = trace_of(model)
    before = {name: array.copy() for name, array in trace.arrays.items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(np.array_equal(array, before[name]) for name, array in trace.arrays.items())


@each_architecture
def test_of_no_text_there_is_a_trace_too(architecture):
    model = model_of(architecture=architecture)
    trace = look(model, subwords(), "", None if architecture == "encoder" else "")
    assert len(trace.targets) == (0 if architecture == "decoder" else 1)
    assert len(trace.candidates(0)) > 1
    assert len(effect_of_each_head(model, trace)[trace.kinds[0]]) > 1
    assert trace.walk(trace.kinds[0], 0, 0, 0)


@pytest.mark.parametrize(
    ("ask", "place"),
    [
        (lambda t: t.attention("crosss", 0, 0), "crosss"),
        (lambda t: t.attention("cross", 3, 0), "no layer 3; cross layers are numbered 0 to 2"),
        (lambda t: t.scores("encoder", 0, 3), "head 3"),
        (lambda t: t.candidates(99), "row 99"),
        (lambda t: t.walk("decoder", 0, 0, 77), "query 77"),
        (lambda t: t.output("feed_forward", 0), "feed_forward"),
        (lambda t: t.stream("encoder", 9), "layer 9; encoder-feed-forward"),
        (lambda t: t.stream("decoder", 0, 3), "sub-layer 3; the decoder has decoder, cross"),
        (lambda t: t.stream("memory", -1), "memory"),
        (lambda t: effect_of_each_head(model_of(), t, -1), "row -1"),
        (lambda t: effect_of_each_head(model_of(), t, 9), "row 9"),
    ],
)
def test_what_there_is_not_is_refused(ask, place):
    with refused("unknown_place", place):
        ask(trace_of(model_of()))


def test_what_cannot_be_looked_at_is_refused():
    with refused("model_in_training", "model.eval()"):
        look(model_of().train(), subwords(), SOURCE, TARGET)
    with refused("unknown_label", "0 to 4"):
        look(model_of(architecture="encoder"), subwords(), SOURCE, TARGET)
    with refused("vocabulary_mismatch", str(subwords().vocab_size)):
        look(small_model(), subwords(), SOURCE, TARGET)
    with refused("unknown_token", "9999"):
        look(model_of(), subwords(), [9999], TARGET)
    with refused("no_search", "`prefix`"):
        look(model_of(), subwords(), SOURCE, TARGET, prefix=[9])
    with refused("too_long", "81", "64"):
        look(model_of(architecture="decoder", positions="learned"), subwords(), [9] * 40, [9] * 40)
    with refused("unknown_place", "encoder"):
        trace_of(model_of(architecture="decoder")).residual_norms("encoder")


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    path = tmp_path / "file.safetensors"
    with refused("unreadable_file", path.name):
        Trace.load(path)
    path.write_bytes(b"not a safetensors file at all")
    with refused("damaged_file", path.name):
        Trace.load(path)
    arrays = {"x": np.zeros(3)}
    safetensors.numpy.save_file(arrays, path)
    with refused("damaged_file", path.name, "no trace"):
        Trace.load(path)
    safetensors.numpy.save_file(arrays, path, metadata={"regard_trace": json.dumps({"format": 999})})
    with refused("file_version", path.name):
        Trace.load(path)
    safetensors.numpy.save_file(arrays, path, metadata={"regard_trace": json.dumps({"format": 1})})
    with refused("damaged_file", path.name, "later version"):
        Trace.load(path)
    safetensors.numpy.save_file(arrays, path, metadata={"regard_trace": "{"})
    with refused("damaged_file", path.name, "JSON"):
        Trace.load(path)
    trace = trace_of(model_of())
    arrays = {name: array for name, array in trace.arrays.items() if name != "encoder.output"}
    replace(trace, arrays=arrays).save(path)
    with refused("damaged_file", path.name, "encoder.output"):
        Trace.load(path)
    with refused("unwritable_file", "folder.safetensors"):
        trace.save(tmp_path / "no" / "such" / "folder.safetensors")
    (tmp_path / "taken.safetensors").mkdir()
    with refused("unwritable_file", "taken.safetensors"):
        trace.save(tmp_path / "taken.safetensors")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file.safetensors", "taken.safetensors"]


def test_numbers_are_those_of_a_float32_model_too():
    model = model_of(torch.float32)
    trace = trace_of(model)
    with torch.no_grad():
        log_probs = model(*packs(trace)).log_softmax(-1)
    assert_close(torch.tensor(trace.log_probs), log_probs[range(len(trace.targets)), trace.targets])


def test_the_names_of_shapes_are_true():
    with shape_suffixes_checked("regard.look") as checked:
        for architecture in ARCHITECTURES:
            for changes in DEPARTURES:
                trace = trace_of(model_of(architecture=architecture, **changes))
                trace.walk(trace.kinds[-1], 1, 2, 1)
    assert {"regard.look.trace.data.TraceData.attention", "regard.look.walk._Walker.attention"} <= checked


def test_a_saved_trace_is_read_and_walked_through_without_torch(tmp_path):
    trace_of(model_of(torch.float32)).save(tmp_path / "trace.safetensors")
    script = (
        "import sys; from regard.look.trace.trace import Trace\n"
        "trace = Trace.load(sys.argv[1]); trace.walk('cross', 2, 1, 1)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "trace.safetensors"], check=True)
