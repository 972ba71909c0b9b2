"""What the page works out from a saved file is what the trace says."""

import numpy as np
import pytest
import torch

from regard.look.export.document import describe, steps, walk
from regard.look.export.html import embedded
from regard.look.interventions.interventions import HeadOff, MaskSource, NoScale, Pin, SkipBlock, Uniform
from tests.look.test_recorded import halved, swapped
from tests.look.traced import ARCHITECTURES, DEPARTURES, model_of, trace_of

CHANGES = [
    HeadOff(kind="cross", layer=1, head=0),
    MaskSource(token=1),
    NoScale(),
    Pin(kind="cross", layer=1, head=0, query=2, key=3),
    SkipBlock(block="decoder-feed-forward", layer=1),
    Uniform(kind="encoder", layer=0, head=1),
]


def held(trace, budget=10**9):
    return {"about": describe(trace), "steps": steps(trace), **embedded(trace, budget)}


def assert_same_walk(found, expected):
    assert [step["name"] for step in found] == [step["name"] for step in expected]
    for ours, theirs in zip(found, expected, strict=True):
        for field in ("formula", "latex", "english", "chinese", "rows", "shape"):
            assert ours[field] == theirs[field], ours["name"]
        ours, theirs = (np.array(each["values"], float) for each in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def places(trace):
    for kind in trace.kinds:
        layers = trace.config.encoder_layers if kind == "encoder" else trace.config.decoder_layers
        for layer in range(layers):
            yield kind, layer, 1, len(trace.queries(kind)) - 2
        yield kind, layers - 1, 0, 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("changes", DEPARTURES, ids=lambda s: "-".join(map(str, s.values())) or "paper")
def test_walks_are_those_of_the_trace(node, architecture, changes):
    trace = trace_of(model_of(dtype=torch.float32, architecture=architecture, **changes))
    asked = [*places(trace)]
    for place, found in zip(
        asked, node("answers", held(trace), [["walk", *at] for at in asked]), strict=True
    ):
        assert_same_walk(found, walk(trace, *place))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("changes", DEPARTURES, ids=lambda s: "-".join(map(str, s.values())) or "paper")
def test_what_a_reader_works_out_is_what_the_line_tells(node, architecture, changes):
    trace = trace_of(model_of(dtype=torch.float32, architecture=architecture, **changes))
    found = node("exercises", held(trace), [*places(trace)])
    assert {"weights", "head", "residual"} <= {name for name, _, _ in found}
    assert [each for each in found if each[2] != 0] == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_walks_tell_of_interventions(node, change):
    trace = trace_of(model_of(dtype=torch.float32), interventions=[change])
    asked = [("cross", 1, 0, 2), ("cross", 1, 1, 2), ("encoder", 0, 1, 3), ("decoder", 1, 0, 1)]
    expected = [walk(trace, *place) for place in asked]
    for found, real in zip(
        node("answers", held(trace), [["walk", *at] for at in asked]), expected, strict=True
    ):
        assert_same_walk(found, real)
    told = any(step["name"] == "intervention" for steps in expected for step in steps)
    assert told == (not isinstance(change, MaskSource))


@pytest.mark.parametrize("settings", DEPARTURES[:2])
def test_a_swapped_in_similarity_is_shown_as_it_ran(node, settings):
    trace = trace_of(swapped(dtype=torch.float32, **settings))
    asked = [("cross", 0, 1, 2), ("encoder", 1, 0, 3), ("encoder", 0, 0, 3)]
    for found, place in zip(
        node("answers", held(trace), [["walk", *at] for at in asked]), asked, strict=True
    ):
        assert_same_walk(found, walk(trace, *place))
    (found,) = node("answers", held(trace), [["matrix", "cross", 0, 1, "weights"]])
    real = trace.attention("cross", 0, 1)
    np.testing.assert_allclose(np.reshape(found["data"], found["shape"]), real, atol=1e-5)


@pytest.mark.parametrize("name", ["scores", "weights", "heads"])
def test_walks_show_what_a_module_made_of_its_numbers(node, name):
    trace = trace_of(halved(name, dtype=torch.float32))
    (found,) = node("answers", held(trace), [["walk", "cross", 1, 2, 1]])
    assert_same_walk(found, walk(trace, "cross", 1, 2, 1))


@pytest.mark.parametrize(("width", "precision", "close"), [(4, "f32", 1e-6), (2, "f16", 5e-3)])
def test_matrices_are_those_of_the_trace(node, width, precision, close):
    trace = trace_of(model_of(dtype=torch.float32))
    numbers = sum(array.size for name, array in trace.arrays.items() if not name.startswith("said."))
    kept = held(trace, budget=width * numbers)
    assert kept["precision"] == precision
    one, scores, layer = node(
        "answers",
        kept,
        [["matrix", "cross", 2, 1, "weights"], ["matrix", "cross", 2, 1, "scores"], ["heads", "decoder", 0]],
    )
    for found, real in [(one, trace.attention("cross", 2, 1)), (scores, trace.scores("cross", 2, 1))]:
        np.testing.assert_allclose(np.reshape(found["data"], found["shape"]), real, atol=close * 5)
    heads = np.stack([trace.attention("decoder", 0, head) for head in range(trace.config.n_heads)])
    np.testing.assert_allclose(np.reshape(layer["data"], layer["shape"]), heads, atol=close)


def test_of_a_long_text_the_largest_weights_remain(node):
    trace = trace_of(model_of(dtype=torch.float32))
    kept = held(trace, 2000)
    assert kept["precision"] == "top"
    (found, no_walk) = node(
        "answers", kept, [["matrix", "cross", 2, 1, "weights"], ["walk", "cross", 2, 1, 0]]
    )
    weights = trace.attention("cross", 2, 1)
    largest = np.sort(weights, axis=1)[:, -kept["kept"]]
    expected = np.where(weights >= largest[:, None], weights, 0)
    np.testing.assert_allclose(np.reshape(found["data"], found["shape"]), expected, atol=1e-4)
    assert kept["kept"] < weights.shape[1]
    assert no_walk is None
