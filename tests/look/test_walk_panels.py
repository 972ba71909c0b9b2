"""Every panel of a walk can be multiplied out from the numbers that it shows: Python, picture, terminal."""

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import torch
from rich.console import Console

from regard.config import registries
from regard.look.trace.recorder import look
from regard.look.views.view import choose, printed
from regard.look.views.walk import walk_svg
from tests.look.formulas import Formulas, Shown, check_walk, in_sequence, tiny_model, tiny_texts
from tests.look.traced import subwords

EACH = [
    {},
    *({"positions": name} for name in registries.positions.names),
    *({"norm": name} for name in registries.norms.names),
    *({"feed_forward": name} for name in registries.feed_forwards.names),
    *({"similarity": name} for name in registries.similarities.names),
    {"attention_bias": True, "similarity": "cosine", "positions": "rotary"},
    {"embedding_norm": True, "scale_embeddings": False, "norm": "rms"},
    {"embedding_norm": True, "positions": "none", "shared_embeddings": "none"},
]
"""Every choice of every registry in turn, and what else a configuration can change."""
MODELS = [
    *({"architecture": "encoder-decoder", "norm_position": "pre", **each} for each in EACH),
    {"architecture": "encoder-decoder", "norm_position": "pre", "output_bias": True},
    *({"architecture": "encoder-decoder", "norm_position": "post", **each} for each in EACH),
    *({"architecture": "decoder", "norm_position": "pre", **each} for each in EACH),
    *({"architecture": "encoder", "norm_position": "pre", **each} for each in EACH),
    {"architecture": "decoder", "norm_position": "post"},
    *({"architecture": "encoder", "norm_position": place, "label_head": head}
      for place in ("pre", "post") for head in ("none", "tanh", "gelu-norm")),
]  # fmt: skip


def tiny_trace(settings, dtype=torch.float64):
    model = tiny_model(dtype=dtype, **settings)
    source, target = tiny_texts(settings["architecture"])
    return model, look(model, subwords(), source, target)


def places(trace):
    """The first layer and the last one, another head and another token in each."""
    for kind in trace.kinds:
        layers = trace.config.encoder_layers if kind == "encoder" else trace.config.decoder_layers
        yield kind, 0, 0, 1
        yield kind, layers - 1, 1, 0 if trace.config.architecture == "encoder" else 2


def in_python(trace, place):
    return [Shown.exactly(step.name, step.values) for step in trace.walk(*place)]


def in_picture(trace, place):
    """The numbers in the cells of the picture, row by row."""
    steps = trace.walk(*place)
    panels = []
    for each in ElementTree.fromstring(walk_svg(steps, "title")).iter():
        kind = each.get("class", "")
        if kind == "grid-line":
            panels.append({})
        elif kind.startswith("on-d"):
            panels[-1].setdefault(each.get("y"), []).append(each.text)
    return [written(step, list(rows.values())) for step, rows in zip(steps, panels, strict=True)]


def on_terminal(trace, place):
    """The numbers that a terminal prints: at most four of a vector, and four rows."""
    steps, (kind, layer, head, query) = trace.walk(*place), place
    console = Console(file=io.StringIO(), width=400)
    console.print(printed(trace, choose(trace, "walk", kind=kind, layer=layer, head=head, query=query)))
    head_line, *lines = console.file.getvalue().splitlines()[3:]
    columns = [head_line.index(name) for name in ("formula", "numbers")]
    panels = []
    for line in lines:
        # Wide characters take two columns, but stand only in the last one.
        name, numbers = line[: columns[0]].strip(), line[columns[1] :].strip()
        if name:
            panels.append((name, line[columns[0] : columns[1]].strip(), []))
        pieces = [piece for piece in numbers.split("  ") if piece.strip() and not piece.startswith("…")]
        panels[-1][2].append([piece.split()[-1] for piece in pieces])
    assert [(name, formula) for name, formula, _ in panels] == [(step.name, step.formula) for step in steps]
    return [written(step, rows) for step, (_, _, rows) in zip(steps, panels, strict=True)]


def written(step, rows):
    """The rows of a matrix, the numbers of a vector, or one number."""
    shown = Shown.written(step.name, rows)
    return shown if step.values.ndim == 2 else shown.shaped(-1 if step.values.ndim else ())


@pytest.mark.parametrize("door", [in_python, in_picture, on_terminal])
@pytest.mark.parametrize(
    "architecture", [pytest.param("encoder-decoder", marks=pytest.mark.slow), "decoder", "encoder"]
)
def test_every_panel_can_be_multiplied_out(architecture, door):
    for settings in (each for each in MODELS if each["architecture"] == architecture):
        model, trace = tiny_trace(settings)
        for place in places(trace):
            shown, formulas = door(trace, place), [step.formula for step in trace.walk(*place)]
            check_walk(model, trace, place, in_sequence(shown, formulas))


def test_a_panel_beside_the_wrong_vector_is_found():
    model, trace = tiny_trace({"architecture": "decoder", "norm_position": "pre"})
    place = ("decoder", 1, 0, 2)
    panels = in_sequence(in_python(trace, place), [step.formula for step in trace.walk(*place)])
    q = next(panel for panel in panels if panel.result.name == "q")
    assert q.formula == "q = norm(x) W_Q"
    with pytest.raises(AssertionError, match="q = x W_Q gives"):
        Formulas(model, trace, *place).check(replace(q, formula="q = x W_Q"))


def test_both_scripts_name_the_same_vectors():
    for settings in MODELS:
        trace = tiny_trace(settings)[1]
        for place in places(trace):
            for step in trace.walk(*place):
                plain = re.sub(r"\\mathrm\{(\w+)\}", r"\1", step.latex)
                for symbol in ("norm(x)", "norm(x_j)", "memory_j", "W_g", "GELU", "SiLU", "+ b"):
                    there = plain.replace("W^", "W_").replace("b^", "b_")
                    if symbol != "+ b" or step.name in "qkv":
                        assert (symbol in step.formula) == (symbol in there), (step.formula, step.latex)
