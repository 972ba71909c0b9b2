"""Looking at its edges: parts that a model lacks, labels, first and last places, and what is not finite."""

import base64
import io
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

from regard.engine.generator import Generator
from regard.errors import RequestError
from regard.look.alignment import aligner
from regard.look.alignment.aligner import WordAligner, cross_attention
from regard.look.alignment.alignment import AligningHeads
from regard.look.export import document
from regard.look.export.document import describe
from regard.look.export.html import embedded, sentences
from regard.look.figures.colours import BOTH_WAYS, ONE_WAY, STYLE
from regard.look.figures.svg import folded, text_width
from regard.look.figures.terminal import Thumbnails
from regard.look.influence import MOST_STEPS
from regard.look.influence.attention import head_summaries
from regard.look.influence.attribution import integrated_gradients, measure_influence
from regard.look.influence.methods import Convergence
from regard.look.interventions import activations
from regard.look.interventions.ablation import continued
from regard.look.interventions.activations import Ablate, Patch
from regard.look.interventions.interventions import HeadOff, NoScale, from_json, to_json
from regard.look.trace.blocks import INFLUENCE, layers_of
from regard.look.trace.comparison import compare, neighbours
from regard.look.trace.file import packed, write_file
from regard.look.trace.probes import Probe, read_probes
from regard.look.trace.recorder import look
from regard.look.views.attention import lines_svg
from regard.look.views.beam import beam_svg, tree_of
from regard.look.views.view import choose, printed
from regard.look.walk import _similarity, walk
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


def test_a_comparison_speaks_of_the_places_of_each_trace():
    model = model_of()
    one, other = (
        look(model, subwords(), *texts) for texts in ((SOURCE, TARGET), ("猫", "the birds ran after"))
    )
    found = compare(one, other)
    for matching, sides in (
        (found.inputs, (one.inputs, other.inputs)),
        (found.outputs, (one.outputs, other.outputs)),
    ):
        alone = (matching.only_in_one, matching.only_in_other)
        for number, side in enumerate(sides):
            places = [*(pair[number] for pair in matching.both), *alone[number]]
            assert sorted(places) == list(range(len(side)))
        assert all(sides[0].ids[i] == sides[1].ids[j] for i, j in matching.both)


def test_attention_of_a_pair_is_cut_to_its_own_tokens():
    model, bos, eos = model_of(torch.float32), subwords().bos_id, subwords().eos_id
    pairs = [((5, eos), (bos, 6, 7)), ((5, 6, 7, 8, eos), (bos, 9)), ((4, eos), (bos,))]
    for i, weights in cross_attention(model, pairs, [2, 0]):
        assert weights.shape == (2, model.config.n_heads, len(pairs[i][1]), len(pairs[i][0]))
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        ((_, alone),) = cross_attention(model, [pairs[i]], [2, 0])
        np.testing.assert_allclose(weights, alone, rtol=1e-4, atol=1e-6)


def test_heads_on_a_terminal_fill_the_lines_and_no_more():
    weights = np.random.default_rng(1).dirichlet(np.ones(9), size=(2, 11, 9))
    for width in (30, 44, 61, 80, 131):
        file = io.StringIO()
        Console(file=file, width=width).print(Thumbnails(weights))
        heads = [line for line in file.getvalue().splitlines() if "head" in line]
        assert max(map(len, file.getvalue().splitlines())) <= width
        assert [name for line in heads for name in re.findall(r"head \d+", line)] == [
            f"head {i}" for i in range(11)
        ]
        starts = [match.start() for match in re.finditer("head", heads[0])]
        slot = starts[1] - starts[0] if len(starts) > 1 else width - starts[0]
        assert len(starts) == 11 or starts[-1] + 2 * slot > width


def test_a_word_that_just_fits_stays_on_the_line():
    assert list(folded("two dogs", text_width("two dogs", 12), 12)) == ["two dogs"]
    assert list(folded("two dogs", text_width("two dogs", 12) - 0.01, 12)) == ["two", "dogs"]


def test_a_colour_ends_where_the_scale_does():
    assert [ONE_WAY.level(value, 2.0) for value in (-1.0, 0.0, 2.0, 9.0)] == [0, 0, *[ONE_WAY.levels - 1] * 2]
    assert [BOTH_WAYS.level(value, 2.0) for value in (-9.0, 0.0, 9.0)] == [
        0,
        BOTH_WAYS.levels // 2,
        BOTH_WAYS.levels - 1,
    ]


def test_what_is_kept_of_a_long_text_just_fits_its_budget():
    trace = trace_of(model_of(torch.float32))
    for budget in (1, 3000, 9000):
        found = embedded(trace, budget)
        assert found["precision"] == "top"
        used = sum(len(base64.b64decode(each["data"])) for each in found["arrays"].values())
        sizes = [layers_of(trace.config, kind) * len(trace.queries(kind)) for kind in trace.kinds]
        rows = sum(sizes) * trace.config.n_heads
        assert found["kept"] == max(1, budget // 4 // rows)
        assert used <= max(budget, 4 * rows)


def test_half_precision_is_clipped_and_not_infinite():
    trace = trace_of(model_of(torch.float32))
    name, array = next(
        (name, array) for name, array in trace.arrays.items() if name.endswith("encoder.output")
    )
    far = replace(trace, arrays={**trace.arrays, name: np.where(array > 0, 1e6, -1e6).astype(np.float32)})
    size = sum(each.size for key, each in far.arrays.items() if not key.startswith(("said.", "influence")))
    found = embedded(far, 2 * size)
    assert found["precision"] == "f16"
    values = np.frombuffer(base64.b64decode(found["arrays"][name]["data"]), "<f2").reshape(array.shape)
    np.testing.assert_array_equal(values, np.where(array > 0, 65504, -65504))


@pytest.mark.parametrize("architecture", ["decoder", "encoder"])
def test_a_beam_needs_a_model_that_translates(architecture):
    with refused("nothing_to_show", "encoder-decoder"):
        tree_of(trace_of(model_of(architecture=architecture)))
    with refused("nothing_to_show", "without a target"):
        tree_of(trace_of(model_of()))


def test_a_layer_shows_its_three_most_likely_tokens_and_the_last_one_all():
    trace = trace_of(model_of())
    for row, step in enumerate(document.steps(trace)):
        for layer, told in zip(trace.lens(row), step["lens"], strict=True):
            assert [each["id"] for each in told["candidates"]] == [each.id for each in layer][:3]
        assert len(step["candidates"]) == len(trace.candidates(row))


def test_the_two_matrices_of_an_additive_similarity_are_told_apart():
    steps = trace_of(model_of(similarity="additive")).walk("cross", 0, 0, 1)
    formulas = {step.name: step.formula for step in steps}
    assert " = A (" in formulas["q"]
    assert " = B (" in formulas["k"]


def test_a_saved_page_has_the_texts_of_every_walk():
    trace = trace_of(model_of(torch.float32))
    told = sentences(trace)
    for kind in trace.kinds:
        assert len(told["walks"][kind]) == layers_of(trace.config, kind)
        for layer, places in enumerate(told["walks"][kind]):
            names = [step.name for step in trace.walk(kind, layer, 1, 0)]
            assert [told["steps"][place]["name"] for place in places] == names


def test_a_convergence_that_has_no_share_is_told_as_null():
    assert Convergence(steps=4, change=-2.0, delta=0.5).to_json()["relative"] == 0.25
    assert Convergence(steps=4, change=0.0, delta=0.5).to_json()["relative"] is None
    assert Convergence(steps=4, change=0.0, delta=0.0).to_json()["relative"] == 0


def test_influences_that_are_all_zero_have_no_bars_and_no_nan():
    trace = trace_of(model_of(torch.float32, architecture="encoder", n_labels=3))
    zeros = np.zeros(len(trace.inputs.tokens))
    still = replace(trace, arrays={**trace.arrays, INFLUENCE: zeros})
    console = Console(file=io.StringIO(), width=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        console.print(printed(still, choose(still, "steps")))
    text = console.file.getvalue()
    assert "nan" not in text
    assert "█" not in text


def test_the_hash_of_a_trace_depends_on_every_number():
    trace = trace_of(model_of())
    found = {describe(trace)["hash"]}
    for name in ("encoder.output", "said.ids"):
        other = trace.arrays[name].copy()
        other.flat[-1] += 1
        found.add(describe(replace(trace, arrays={**trace.arrays, name: other}))["hash"])
    assert len(found) == 3


def test_a_similarity_of_ones_own_is_named():
    text = _similarity(SimpleNamespace(similarity="closeness"), recorded=False, biased=True)
    assert text.formula == "closeness(q, k) + bias"
    assert "“closeness”" in text.english
    assert "“closeness”" in text.chinese


def test_a_trace_that_does_not_fit_a_patch_is_refused_at_its_place():
    def unknown(name):
        raise RequestError(f"there is no trace {name}", code="unknown_trace")

    patch = {"op": "patch", "at": "encoder.layers.0.feed_forward.output", "trace": "abc"}
    with refused("unknown_trace", "interventions[0] (patch)", "abc"):
        from_json([patch], unknown)


def test_texts_with_room_for_their_marks_are_aligned_and_longer_ones_are_not():
    most = aligner.LONGEST_TEXT - 1
    texts = [((7,) * n, (8,) * m) for n, m in ((most, 1), (1, most), (most + 1, 1), (1, most + 1))]
    read = aligner._read(subwords(), texts)
    assert [(len(each.inputs), len(each.outputs)) for each in read] == [(most + 1, 2), (2, most + 1)]


def test_the_winning_branches_are_drawn_over_the_others():
    trace = look(model_of(), subwords(), SOURCE)
    lines = re.findall(r'<path[^>]*class="(blue|soft)-line"', beam_svg(trace.beam, "x"))
    assert {"blue", "soft"} <= {*lines}
    assert lines == sorted(lines, reverse=True)


@pytest.mark.parametrize("place", [("encoder", 9, 0), ("encoder", 0, 3), ("cross", 0, -4)])
def test_a_walk_through_a_head_that_is_not_there_is_refused(place):
    with refused("unknown_place"):
        walk(trace_of(model_of()), *place, 0)


def test_the_largest_number_of_steps_is_allowed_and_one_more_is_not():
    model = model_of()
    trace = trace_of(model)
    assert np.isfinite(integrated_gradients(model, trace, 0, steps=MOST_STEPS)[0]).all()
    for steps in (1, MOST_STEPS + 1):
        with refused("bad_option", f"steps = {steps} must be from 2 to 4,096"):
            integrated_gradients(model, trace, 0, steps=steps)


def test_more_values_than_a_request_may_have_are_refused(monkeypatch):
    monkeypatch.setattr(activations, "MOST_NUMBERS", 6)
    at = "encoder.layers.0.feed_forward.output"
    (kept,) = from_json([{"op": "add", "at": at, "values": [[1, 2, 3, 4, 5, 6]]}])
    assert kept.values == ((1, 2, 3, 4, 5, 6),)
    with refused("bad_intervention", "interventions[0].values", "at most 6 numbers"):
        from_json([{"op": "add", "at": at, "values": [[1, 2, 3, 4, 5, 6, 7]]}])


def test_a_patch_from_a_trace_needs_its_head_and_is_written_without_defaults():
    trace = trace_of(model_of())
    heads = "encoder.layers.0.multi_head_attention.q"
    with refused("intervention_mismatch", "there is no head 3; they are numbered 0 to 2"):
        Patch(at=heads, head=3).of_trace(trace)
    patch = Patch(at=heads, head=2).of_trace(trace)
    np.testing.assert_allclose(patch.values, trace.arrays[heads][:, 2])
    (written,) = to_json([patch])
    assert {*written} == {"op", "at", "head", "values"}
    assert to_json([Ablate(at=heads, by="zero")]) == [{"op": "ablate", "at": heads, "by": "zero"}]


def test_accents_take_no_room():
    assert {text_width(f"a{accent}", 10) for accent in "\u0300\u0301\u036e\u036f"} == {text_width("a", 10)}
    assert text_width("a\u0370", 10) > text_width("a", 10)


def test_the_entropy_of_a_head_is_the_mean_over_its_queries():
    trace = trace_of(model_of())
    summaries = head_summaries(trace, "cross")
    for layer, head in np.ndindex(2, 3):
        weights = trace.attention("cross", layer, head)
        assert weights.shape[0] != weights.shape[1]
        each = [-sum(w * np.log2(w) for w in row if w > 0) for row in weights.tolist()]
        assert summaries[layer][head].entropy == pytest.approx(sum(each) / len(each), rel=1e-6)
