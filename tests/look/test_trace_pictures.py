"""Pictures of traces: every number in its place, every word whole, inside of the picture and harmless."""

import re
from functools import cache

import numpy as np
import pytest
import torch

from regard.look.alignment.alignment import Alignment
from regard.look.figures.colours import BOTH_WAYS, ONE_WAY
from regard.look.figures.heatmap import max_pooled, sampled
from regard.look.interventions.interventions import HeadOff, SkipBlock
from regard.look.trace.beam import BeamTree, Node, Reason
from regard.look.trace.recorder import look
from regard.look.trace.tokens import Word
from regard.look.views import MODULES
from regard.look.views.alignment import COVERAGE, alignment_svg
from regard.look.views.attention import FAINTEST, heads_svg, lines_svg
from regard.look.views.beam import beam_svg
from regard.look.views.influence import effects_svg
from regard.look.views.positions import encoding_of, positions_svg, sinusoids
from regard.look.views.steps import steps_svg
from regard.look.views.view import choose, picture, title_of
from regard.look.views.walk import SHOWN, walk_svg
from regard.model.positional_encoding import sinusoids as model_sinusoids
from tests.look.pictures import all_of, outside, overlapping, parse, texts
from tests.look.pixels import held
from tests.look.traced import ARCHITECTURES, SOURCE, model_of, subwords, trace_of, with_influences
from tests.refusals import refused

NASTY = "a <b>&amp; \x1b[31m\x00 龘 \u202e 12"


@cache
def trace(architecture="encoder-decoder", **changes):
    model = model_of(torch.float32, architecture=architecture, **changes)
    return with_influences(model, trace_of(model))


@cache
def searched():
    """A trace with the tree of its search."""
    model = model_of(torch.float32)
    return with_influences(model, look(model, subwords(), SOURCE))


def told(parsed, name):
    """What each element of a name tells whoever points at it."""
    return [each[0].text for each in all_of(parsed, name) if len(each)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("view", MODULES)
def test_every_view_of_every_architecture_is_a_picture_that_holds_its_words(architecture, view):
    seen = searched() if architecture == "encoder-decoder" else trace(architecture)
    if view in ("alignment", "beam") and architecture != "encoder-decoder":
        with refused("nothing_to_show"):
            picture(seen, choose(seen, view))
        return
    drawn = picture(seen, choose(seen, view))
    assert outside(drawn) == []
    assert overlapping(drawn) == []


@pytest.mark.parametrize("view", [view for view in MODULES if view != "beam"])
def test_texts_cannot_break_a_picture(view):
    model = model_of(torch.float32)
    seen = with_influences(model, look(model, subwords(), NASTY, NASTY))
    drawn = picture(seen, choose(seen, view))
    assert outside(drawn) == []
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", drawn)
    assert {"b", "amp"}.isdisjoint(each.tag.rpartition("}")[2] for each in parse(drawn).iter())


def test_lines_are_the_weights_of_the_chosen_heads():
    seen = trace()
    drawn = lines_svg(seen, choose(seen, layer=1, head=[0, 2]))
    found = told(drawn, "path")
    expected = []
    for head in (0, 2):
        weights = seen.attention("cross", 1, head)
        expected += [
            f"{query} → {key}: {weights[i, j]:.4f} (head {head})"
            for i, query in enumerate(seen.outputs.texts)
            for j, key in enumerate(seen.inputs.texts)
            if weights[i, j] >= FAINTEST
        ]
    assert sorted(found) == sorted(expected)
    paths = [path for path in all_of(drawn, "path") if len(path)]
    by_weight = sorted(paths, key=lambda path: float(path[0].text.split(": ")[1].split()[0]))
    for measure in ("stroke-width", "stroke-opacity"):
        values = [float(path.get(measure)) for path in by_weight]
        assert values == sorted(values)
        assert values[0] < values[-1]


def test_heads_are_told_apart_by_more_than_their_colour():
    drawn = lines_svg(trace(), choose(trace(), layer=1, head=[0, 1]))
    strokes = {
        (path[0].text.split("(")[1], path.get("class"), path.get("stroke-dasharray"))
        for path in all_of(drawn, "path")
        if len(path)
    }
    assert strokes == {("head 0)", "blue-line", None), ("head 1)", "orange-line", "7 4")}


def test_a_line_runs_between_its_two_words():
    seen = trace()
    drawn = lines_svg(seen, choose(seen, layer=1, head=0))
    middle = {text.text: float(text.get("y")) - 4 for text in all_of(drawn, "text")}
    for path in all_of(drawn, "path"):
        if len(path):
            query, key = path[0].text.split(":")[0].split(" → ")
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d"))]
            assert (numbers[1], numbers[-1]) == pytest.approx((middle[query], middle[key]), abs=0.1)
    across = {text.text: float(text.get("x")) for text in all_of(drawn, "text")}
    assert max(across[word] for word in seen.outputs.texts) < min(across[word] for word in seen.inputs.texts)


def test_more_heads_than_strokes_are_drawn_as_their_mean():
    seen = trace(n_heads=7, d_model=42)
    drawn = lines_svg(seen, choose(seen, kind="encoder", layer=0))
    assert "mean of 7 heads" in texts(drawn)
    mean = np.mean([seen.attention("encoder", 0, head) for head in range(7)], axis=0)
    assert len(told(drawn, "path")) == (mean >= FAINTEST).sum()


def test_thumbnails_have_a_pixel_for_every_weight():
    seen = trace()
    drawn = heads_svg(seen, choose(seen, kind="decoder"))
    images = all_of(drawn, "image")
    layers, heads = seen.config.decoder_layers, seen.config.n_heads
    assert len(images) == 2 * layers * heads
    for image in images:
        layer, head = map(int, re.findall(r"\d+", image[0].text))
        shades = ONE_WAY.light if image.get("class").startswith("day") else ONE_WAY.dark
        found = ["#" + bytes(pixel).hex() for pixel in held(image).reshape(-1, 3).tolist()]
        weights = seen.attention("decoder", layer, head)
        assert found == [shades[level] for level in ONE_WAY.levels_of(weights, 1.0).ravel()]


def test_weights_have_one_scale_and_the_last_layer_is_on_top():
    seen = trace()
    drawn = picture(seen, choose(seen, "matrix", layer=1, head=2))
    weights = seen.attention("cross", 1, 2)
    assert weights.max() < 0.9  # a scale of its own would have another end
    levels = [
        int(rect.get("class")[1:]) for rect in all_of(drawn, "rect") if re.match(r"s\d", rect.get("class"))
    ]
    assert levels[-weights.size :] == ONE_WAY.levels_of(weights, 1.0).ravel().tolist()
    tops = {image[0].text: float(image.get("y")) for image in all_of(heads_svg(seen, choose(seen)), "image")}
    assert tops["layer 2, head 0"] < tops["layer 1, head 0"] < tops["layer 0, head 0"]


def test_a_head_that_is_off_is_marked():
    model = model_of()
    off = trace_of(model, interventions=[HeadOff(kind="cross", layer=1, head=2)])
    drawn = heads_svg(off, choose(off))
    assert {each[0].text for each in all_of(drawn, "image") if "off" in each[0].text} == {
        "layer 1, head 2: off"
    }
    assert texts(drawn).count("✕") == 1
    assert "✕" not in texts(heads_svg(trace(), choose(trace())))
    assert "head 2 ✕ off" in texts(picture(off, choose(off, "matrix", layer=1)))
    skipped = trace_of(model, interventions=[SkipBlock(block="cross", layer=0)])
    assert texts(heads_svg(skipped, choose(skipped))).count("✕") == skipped.config.n_heads


def test_pooling_keeps_the_largest_and_leaves_small_ones_alone():
    values = np.arange(7 * 5.0).reshape(7, 5)
    assert max_pooled(values) is values
    assert max_pooled(values, 3, 2).tolist() == [[6.0, 9.0], [16.0, 19.0], [31.0, 34.0]]
    assert sampled(values, 3, 2).tolist() == [[0.0, 2.0], [10.0, 12.0], [20.0, 22.0]]
    assert max_pooled(np.random.default_rng(1).random((331, 163))).shape == (160, 160)


def words(*texts):
    return tuple(Word(text, i, i) for i, text in enumerate(texts))


def test_an_alignment_has_links_and_coverage():
    shares = np.array([[0.7, 0.2, 0.0], [0.1, 0.0, 0.9]])
    drawn = alignment_svg(Alignment(words("猫", "在", "上"), words("cat", "up"), shares), "x", "by hand")
    rects = {rect[0].text: rect for rect in all_of(drawn, "rect") if len(rect)}
    assert {f"cat ← 猫: {0.7:.4f}", "up ← 上: 0.9000"} <= set(rects)
    centres = {(float(dot.get("cx")), float(dot.get("cy"))) for dot in all_of(drawn, "circle")}
    linked = [rects["cat ← 猫: 0.7000"], rects["up ← 上: 0.9000"]]
    assert centres == {
        tuple(
            float(cell.get(at)) + float(cell.get(side)) / 2 for at, side in (("x", "width"), ("y", "height"))
        )
        for cell in linked
    }
    bars = {name: rect for name, rect in rects.items() if "←" not in name}
    assert set(bars) == {"猫: 0.80", "在: 0.20 (no link)", "上: 0.90"}
    assert float(bars["猫: 0.80"].get("height")) == pytest.approx(0.8 * COVERAGE / 2)
    assert texts(drawn).count("?") == 1


def tree():
    reason = {
        fate: Reason(f"why {fate} <&>", "为何") for fate in ("expanded", "finished", "pruned", "winner")
    }
    facts = [  # parent, step, rank, text, fate
        (None, 0, 0, "the", "expanded"), (None, 0, 1, "a", "expanded"), (None, 0, 2, "猫", "pruned"),
        (1, 1, 0, "cat", "expanded"), (0, 1, 1, "</s>", "finished"), (0, 1, 2, "x" * 90, "pruned"),
        (3, 2, 0, "</s>", "winner"),
    ]  # fmt: skip
    return BeamTree(
        2,
        tuple(
            Node(i, parent, step, rank, i, text, -0.5, -0.5 * step - rank, -1.0 / (i + 1), fate, reason[fate])
            for i, (parent, step, rank, text, fate) in enumerate(facts)
        ),
    )


def test_a_tree_goes_to_the_right_by_steps_and_down_by_ranks():
    drawn = beam_svg(tree(), "x")
    assert outside(drawn) == []
    assert overlapping(drawn) == []
    boxes = [rect for rect in all_of(drawn, "rect") if len(rect)]
    places = [(float(box.get("x")), float(box.get("y"))) for box in boxes]
    lefts, tops = (sorted(set(each)) for each in zip(*places, strict=True))
    facts = [(node.step, node.rank) for node in tree().nodes]
    assert [(lefts.index(x), tops.index(y)) for x, y in places] == facts


def test_the_winner_is_bold_and_what_was_given_up_says_why():
    drawn = beam_svg(tree(), "x")
    bold = [text.text for text in all_of(drawn, "text") if text.get("font-weight") == "700"]
    assert bold == ["a", "cat", "</s>"]
    strong = [path for path in all_of(drawn, "path") if path.get("stroke-width") == "3"]
    assert len(strong) == 2
    boxes = [rect for rect in all_of(drawn, "rect") if len(rect)]
    dashed = [box[0].text for box in boxes if box.get("stroke-dasharray")]
    assert [words.rpartition(": ")[2] for words in dashed] == ["why pruned <&>"] * 2
    assert all("pruned: why" in words for words in dashed)


def test_a_search_without_a_node_is_refused():
    with refused("nothing_to_show"):
        beam_svg(BeamTree(2, ()), "x")


def test_effects_are_written_and_have_a_colour_for_each_sign():
    effects = {"cross": np.array([[-1.5, 0.0, 0.25]]), "encoder": np.zeros((2, 3))}
    drawn = effects_svg(effects, "x")
    rects = {rect[0].text: rect.get("class") for rect in all_of(drawn, "rect") if len(rect)}
    assert len(rects) == 9
    assert rects["cross-attention, layer 0, head 0 off: -1.5000"] == f"d{BOTH_WAYS.level(-1.5, 2)}"
    assert rects["cross-attention, layer 0, head 1 off: +0.0000"] == "d32"
    assert BOTH_WAYS.level(-1.5, 2) < 32 < BOTH_WAYS.level(0.25, 2)
    assert {"−1.50", "+0.25"} <= set(texts(drawn))
    assert outside(drawn) == []


def test_positions_are_those_of_the_model():
    ours, theirs = sinusoids(11, 6), model_sinusoids(torch.arange(11), 6).numpy()
    assert np.allclose(ours, theirs, atol=1e-6)
    assert np.allclose(encoding_of(trace()).values, sinusoids(64, trace().config.d_model))
    learned = trace(positions="learned")
    assert np.array_equal(encoding_of(learned).values, learned.arrays["input_embedding.positions"])
    rotary = trace(positions="rotary")
    assert encoding_of(rotary).values.shape == (64, rotary.config.key_width)
    with refused("nothing_to_show", "model.positions = none"):
        encoding_of(trace(positions="none"))


def test_the_product_of_sinusoids_depends_on_their_distance_alone():
    means = encoding_of(trace()).by_distance
    even = np.arange(0, trace().config.d_model, 2) / trace().config.d_model
    assert means[5] == pytest.approx(np.cos(5 * 10000.0**-even).sum())
    assert len(means) == 64


def test_positions_have_a_pixel_each():
    day, _ = all_of(positions_svg(trace(), choose(trace(), "positions")), "image")
    found = held(day)
    assert found.shape[:2] == encoding_of(trace()).values.shape
    assert "#" + bytes(found[0, 1].tolist()).hex() == BOTH_WAYS.light[-1]  # cos 0 = 1


def test_steps_frame_what_came():
    seen = trace()
    drawn = steps_svg(seen, choose(seen, "steps"))
    framed = [rect[0].text for rect in all_of(drawn, "rect") if len(rect) and rect.get("class") == "ink-line"]
    came = [*seen.outputs.texts[1:], "</s>"]
    shares = np.exp(seen.log_probs)
    assert framed == [f"{text}: {share:.4f}" for text, share in zip(came, shares, strict=True)]


def test_a_language_model_also_says_what_might_come_next():
    seen = trace("decoder")
    drawn = steps_svg(seen, choose(seen, "steps"))
    assert texts(drawn).count(seen.outputs.texts[-1]) >= 1
    framed = [rect for rect in all_of(drawn, "rect") if len(rect) and rect.get("class") == "ink-line"]
    assert len(framed) == len(seen.outputs) - 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_walk_has_every_number_that_it_can_show(language):
    steps = trace().walk("decoder", 1, 0, 2)
    drawn = walk_svg(steps, "x", language)
    assert outside(drawn) == []
    found = told(drawn, "rect")
    expected = []
    for step in steps:
        values = np.atleast_1d(step.values)
        rows = values[:SHOWN, :SHOWN] if values.ndim == 2 else values[None, :SHOWN]
        expected += [f"{float(value):.6g}" for value in rows.ravel()]
    assert found == expected
    sentences = " ".join(texts(drawn))
    assert steps[1].english.split()[0] in sentences or language == "zh"
    assert ("−∞" in texts(drawn)) == any(np.isinf(step.values).any() for step in steps)


def test_a_title_says_what_was_read_and_what_came_of_it():
    assert title_of(trace()) == "猫坐在垫子上。 → the cat sat"
    assert title_of(trace("decoder")) == trace("decoder").outputs.text
    assert title_of(trace("encoder")).startswith("猫坐在垫子上。 → ")
