"""Looking at its edges: parts that a model lacks, labels, first and last places, and what is not finite."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.engine.generator import Generator
from regard.look.alignment.aligner import WordAligner
from regard.look.alignment.alignment import AligningHeads
from regard.look.export import document
from regard.look.export.document import describe
from regard.look.figures.colours import BOTH_WAYS, STYLE
from regard.look.figures.svg import folded, text_width
from regard.look.influence.attribution import measure_influence
from regard.look.interventions.apply import continued
from regard.look.interventions.interventions import HeadOff, NoScale
from regard.look.trace.comparison import neighbours
from regard.look.trace.file import packed, write_file
from regard.look.trace.probes import Probe, read_probes
from regard.look.trace.recorder import look
from regard.look.views.attention import lines_svg
from regard.look.views.view import choose
from regard.model.taps import recording
from regard.packing import pack
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.refusals import refused


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_description_counts_the_layers_that_are_there(architecture):
    model = model_of(architecture=architecture)
    sizes, names = describe(trace_of(model))["sizes"], dict(model.named_modules())
    for stack in ("encoder", "decoder"):
        assert sizes[f"{stack}_layers"] == sum(f"{stack}.layers.{i}" in names for i in range(9))
    assert (sizes["d_model"], sizes["vocab_size"]) == (model.config.d_model, model.config.vocab_size)
    assert (sizes["n_heads"], sizes["d_ff"]) == (model.config.n_heads, model.config.d_ff)


def test_a_probe_of_a_classifier_has_the_log_probability_of_the_right_label():
    trace = trace_of(model_of(architecture="encoder", n_labels=3))
    candidates = trace.candidates(0)
    assert len(candidates) == 3
    for each in candidates:
        (found,) = Probe.of_trace(trace, right=each.id).log_probs
        assert np.exp(found) == pytest.approx(each.probability, rel=1e-5)
    assert Probe.of_trace(trace, right=candidates[-1].id + 999).log_probs == pytest.approx(
        np.log(min(each.probability for each in candidates)), rel=1e-5
    )
    assert Probe.of_trace(trace).likeliest == (candidates[0].text,)


def test_neighbours_as_plain_values_are_those_that_were_found():
    embedding = np.random.default_rng(3).normal(size=(11, 5))
    found = neighbours(embedding, [4, 2], lambda ids: [f"t{i}" for i in ids], 3)
    told = document.neighbours(found)
    assert [(each["id"], each["piece"]) for each in told["tokens"]] == [(4, "t4"), (2, "t2")]
    assert told["explained"] == pytest.approx(found.explained, rel=1e-6)
    for token in told["tokens"]:
        for each, near in zip(token["nearest"], found.nearest[token["id"]], strict=True):
            assert (each["id"], each["piece"]) == (near.id, near.piece)
            assert each["cosine"] == pytest.approx(near.cosine, rel=1e-6)
        for each in (token, *token["nearest"]):
            assert (each["x"], each["y"]) == pytest.approx(found.places[each["id"]], rel=1e-6)


def test_influence_as_plain_values_is_what_was_measured():
    model = model_of()
    measured = measure_influence(model, trace_of(model), 1)
    told = document.influences(measured)
    assert told["masked"] == list(measured.masked)
    np.testing.assert_allclose(told["agreement"], measured.agreement, rtol=1e-6, atol=1e-9)
    assert told["methods"].keys() == measured.values.keys()
    for name, each in told["methods"].items():
        np.testing.assert_allclose(each["values"], measured.values[name], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(each["curve"], measured.curves[name], rtol=1e-6)


def test_a_text_continues_as_the_changed_model_predicts():
    model, prompt = model_of(architecture="decoder"), subwords().encode(["the cat sat"])[0]
    prompt = [int(each) for each in prompt]
    written = continued(Generator(model, subwords()), prompt, 5)
    assert 1 <= len(written) <= 5
    for n, token in enumerate(written):
        assert token == int(model(pack([[subwords().bos_id, *prompt, *written[:n]]]))[-1].argmax())
    off = [HeadOff(kind="decoder", layer=layer, head=head) for layer in range(3) for head in range(3)]
    written = continued(Generator(model, subwords()), prompt, 5, off)
    with recording(model, lambda address, value: value * 0 if address.endswith("heads") else value):
        for n, token in enumerate(written):
            assert token == int(model(pack([[subwords().bos_id, *prompt, *written[:n]]]))[-1].argmax())


def test_a_hypothesis_that_ended_is_read_without_its_end():
    model = model_of()
    ids = [[int(each) for each in row] for row in subwords().encode([SOURCE, TARGET])]
    one, other = (look(model, subwords(), ids[0], tail) for tail in (ids[1], [*ids[1], subwords().eos_id]))
    assert one == other
    assert one != "a trace"


def test_no_trace_is_aligned_without_words():
    aligner = WordAligner(model_of(torch.float32), subwords(), AligningHeads(heads=((0, 0),)))
    ids = [int(each) for each in subwords().encode(["the cat"])[0]]
    found = aligner([(ids, []), ([], ids), (ids, ids)])
    assert found[:2] == [(), ()]
    assert found[2]


def test_a_line_does_not_begin_with_a_closing_mark():
    lines = list(folded("猫坐在垫子上。鸟", text_width("猫坐在垫子上", 12), 12))
    assert lines == ["猫坐在垫子", "上。鸟"]
    assert list(folded("猫坐在垫子上鸟", text_width("猫坐在垫子上", 12), 12)) == ["猫坐在垫子上", "鸟"]


def test_what_cannot_be_done_is_refused(tmp_path):
    model = model_of(positions="alibi")
    with refused("intervention_mismatch", "alibi"):
        trace_of(model, interventions=[NoScale()])
    trace = trace_of(model_of())
    with refused("no_head"):
        lines_svg(trace, replace(choose(trace), heads=()))
    write_file(tmp_path / "p", packed({"probes": [{"inputs": None}]}, {}, contents="probes"))
    with refused("damaged_file", str(tmp_path / "p")):
        read_probes(tmp_path / "p")


def test_shades_of_both_signs_are_every_second_one_and_meet_at_zero():
    for theme, shades in (("light", BOTH_WAYS.light), ("dark", BOTH_WAYS.dark)):
        above, below = (STYLE["shades"][theme][side] for side in ("above", "below"))
        middle = len(shades) // 2
        assert shades[middle] == above[0] == below[0]
        assert (shades[0], shades[-1]) == (below[-1], above[-1])
        assert [shades[middle + i] for i in range(middle + 1)] == [above[2 * i] for i in range(middle + 1)]
        assert [shades[middle - i] for i in range(middle + 1)] == [below[2 * i] for i in range(middle + 1)]
