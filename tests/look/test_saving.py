"""Views as files: what is written follows from the name, and holds the numbers of the trace."""

import csv
import io
import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch

from regard.look.alignment.alignment import AligningHeads, align, default_heads
from regard.look.export.document import alignment
from regard.look.export.html import Frame, html
from regard.look.trace.recorder import look
from regard.look.trace.trace import Trace
from regard.look.views import MODULES
from regard.look.views.alignment import aligned
from regard.look.views.view import Records, Table, choose, numbers, picture
from tests.look.pictures import parse
from tests.look.test_html import held
from tests.look.traced import SOURCE, model_of, subwords, trace_of, with_influences
from tests.refusals import refused


@cache
def searched():
    model = model_of(torch.float32)
    return with_influences(model, look(model, subwords(), SOURCE))


def table(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("view", MODULES)
@pytest.mark.parametrize("suffix", ["svg", "csv", "npz"])
def test_every_view_is_written_in_every_form(tmp_path, view, suffix):
    path = tmp_path / f"view.{suffix}"
    searched().save(path, view)
    chosen = choose(searched(), view)
    if suffix == "svg":
        assert path.read_text(encoding="utf-8") == picture(searched(), chosen)
    elif suffix == "csv":
        assert path.read_bytes().decode() == numbers(searched(), chosen).csv()
    else:
        with np.load(path) as found:  # which refuses pickles
            expected = numbers(searched(), chosen).arrays()
            assert set(found) == set(expected)
            assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_matrix_in_a_table_is_the_attention_to_the_bit(tmp_path):
    trace = searched()
    trace.save(tmp_path / "m.csv", "matrix", kind="encoder", layer=0, head=[2, 1])
    first, *rows = table((tmp_path / "m.csv").read_text(encoding="utf-8"))
    assert first == ["head", "query", *trace.inputs.texts]
    assert [row[:2] for row in rows] == [[head, word] for head in "21" for word in trace.inputs.texts]
    found = np.array([row[2:] for row in rows], dtype=np.float32).reshape(2, len(trace.inputs), -1)
    assert np.array_equal(found, np.stack([trace.attention("encoder", 0, head) for head in (2, 1)]))


def test_all_heads_are_one_array(tmp_path):
    trace = searched()
    trace.save(tmp_path / "h.npz", kind="cross")
    with np.load(tmp_path / "h.npz") as found:
        assert found["values"].shape == (3, 3, len(trace.outputs), len(trace.inputs))
        assert np.array_equal(found["values"][2, 1], trace.attention("cross", 2, 1))
        assert found["key"].tolist() == trace.inputs.texts


def test_candidates_nodes_and_walks_are_tables():
    trace = searched()
    steps = table(numbers(trace, choose(trace, "steps")).csv())
    assert steps[0] == ["step", "after", "rank", "id", "candidate", "probability", "came"]
    came = [row for row in steps[1:] if row[6] == "True"]
    assert [int(row[3]) for row in came] == list(trace.targets)
    nodes = table(numbers(trace, choose(trace, "beam")).csv())
    assert [row[0] for row in nodes[1:]] == [str(node.id) for node in trace.beam.nodes]
    walk = table(numbers(trace, choose(trace, "walk", layer=0, head=1, query=1)).csv())
    q = [float(row[4]) for row in walk if row[0] == "q"]
    assert q == pytest.approx(trace.q("cross", 0, 1)[1].tolist(), rel=1e-6)


def test_labels_go_down_and_the_last_axis_across():
    values = np.arange(4.0).reshape(2, 1, 2) / 8
    found = Table(values, {"head": ["0", "1"], "query": ["a,b"], "key": ['"', "猫"]})
    assert found.csv() == 'head,query,"""",猫\n0,"a,b",0.0,0.125\n1,"a,b",0.25,0.375\n'
    assert Records(("a", "b"), []).csv() == "a,b\n"
    assert Records(("a", "b"), []).arrays().keys() == {"a", "b"}


def test_a_picture_in_pixels(tmp_path):
    searched().save(tmp_path / "steps.PNG", "positions")
    assert (tmp_path / "steps.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_page_has_the_search_and_the_heads_that_words_are_aligned_by(tmp_path):
    kept = AligningHeads(heads=((0, 1),), rows="predicting", accuracy=0.75, n_pairs=7)
    searched().save(tmp_path / "a.html", aligning=kept)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    kept = held(page)
    assert kept["beam"] == json.loads(json.dumps(searched().beam.to_json()))
    assert kept["alignment"] == alignment(searched(), ((0, 1),), "predicting")
    assert searched().show(300) == Frame(html(searched()), 300)


def test_everything_comes_back(tmp_path):
    searched().save(tmp_path / "all.safetensors")
    assert Trace.load(tmp_path / "all.safetensors") == searched()


@pytest.mark.parametrize(
    ("name", "choice", "code", "place"),
    [
        ("x.pdf", {}, "unknown_format", ".safetensors, .html, .svg"),
        ("x", {}, "unknown_format", "x"),
        ("x.svg", {"view": "heats"}, "unknown_view", "did you mean heads"),
        ("x.svg", {"view": "zzz"}, "unknown_view", "heads, matrix"),
        ("x.svg", {"kind": "crossed"}, "unknown_kind", "did you mean cross"),
        ("x.svg", {"layer": 3}, "unknown_place", "layer 3"),
        ("x.svg", {"head": [0, 3]}, "unknown_place", "head 3"),
        ("x.svg", {"head": []}, "no_head", ""),
        ("x.svg", {"view": "walk", "query": 99}, "unknown_place", "query 99"),
        ("no/x.svg", {}, "unwritable_file", "x.svg"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, choice, code, place):
    with refused(code, place):
        searched().save(tmp_path / name, **choice)
    assert list(tmp_path.iterdir()) == []


def test_a_given_output_has_no_search_to_show():
    trace = trace_of(model_of(torch.float32))
    with refused("nothing_to_show", "--beam"):
        numbers(trace, choose(trace, "beam"))


@pytest.mark.parametrize(
    ("architecture", "kind"), [("encoder-decoder", "cross"), ("decoder", "decoder"), ("encoder", "encoder")]
)
def test_the_usual_place_is_the_last_layer_and_all_its_heads(architecture, kind):
    trace = trace_of(model_of(torch.float32, architecture=architecture))
    chosen = choose(trace)
    last = 1 if architecture == "encoder" else 2
    assert (chosen.kind, chosen.layer, chosen.heads) == (kind, last, (0, 1, 2))
    assert not trace.queries(kind)[chosen.query].special


def test_words_are_aligned_by_the_heads_that_are_named_or_kept_or_usual():
    trace, kept = searched(), AligningHeads(heads=((0, 1),), rows="predicting", accuracy=0.75, n_pairs=7)
    assert choose(trace, "alignment").aligning == default_heads(trace.config)
    assert choose(trace, "alignment", layer=0, head=2, aligning=kept).aligning.heads == ((0, 2),)
    chosen = choose(trace, "alignment", aligning=kept)
    assert np.array_equal(aligned(trace, chosen).shares, align(trace, [(0, 1)], "predicting").shares)
    assert "75% of known links" in picture(trace, chosen)


def test_a_notebook_is_shown_a_picture_and_words():
    shown = searched()._repr_mimebundle_()
    assert parse(shown["image/svg+xml"]).get("class") == "regard"
    assert shown["text/plain"] == repr(searched())


def test_a_frame_is_a_page_of_its_own():
    shown = Frame('<p title="a">&lt;</p>', height=300)._repr_html_()
    frame = parse(shown)
    assert frame.get("srcdoc") == '<p title="a">&lt;</p>'
    assert frame.get("sandbox") == "allow-scripts allow-downloads"
    assert "height:300px" in frame.get("style")


def test_views_do_without_torch(tmp_path):
    searched().save(tmp_path / "trace.safetensors")
    script = (
        "import sys; from regard.look.trace.trace import Trace; from regard.look.views.view import *\n"
        "trace = Trace.load(sys.argv[1]); trace.save(sys.argv[2]); trace._repr_mimebundle_()\n"
        "for view in MODULES: printed(trace, choose(trace, view))\n"
        "assert 'torch' not in sys.modules"
    )
    paths = [tmp_path / "trace.safetensors", tmp_path / "trace.svg"]
    subprocess.run([sys.executable, "-c", script, *paths], check=True)
