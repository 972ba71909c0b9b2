"""One file, complete in itself, in which texts are only ever texts."""

import json
import re
import subprocess
import sys
import zlib
from base64 import b64decode, b64encode
from hashlib import sha256

import numpy as np
import pytest
import torch

import regard
from regard import page
from regard.engine.engines.protocol import Search
from regard.look.export.document import alignment, describe, steps
from regard.look.export.html import LIMIT, html, sums_in
from regard.look.trace.recorder import look
from tests.look.traced import ARCHITECTURES, SOURCE, model_of, subwords, trace_of

HOSTILE = "</script><script>alert(1)</script><!-- & \"'"


def held(text):
    """What a file holds for its page."""
    (found,) = re.findall(r'<script type="application/json" id="held">(.*?)</script>', text, re.DOTALL)
    content, numbers = (zlib.decompress(b64decode(part)) for part in json.loads(found).values())
    kept = json.loads(content)
    width = {"f32": 4, "f16": 2, "top": 2}[kept["precision"]]
    numbers = np.frombuffer(numbers, np.uint8).reshape(width, -1).T.tobytes()
    place = 0
    for array in kept["arrays"].values():
        size = width * int(np.prod(array["shape"]))
        array["data"], place = numbers[place : place + size], place + size
    assert place == len(numbers)
    return kept


def policy(text):
    (found,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    return dict(part.split(" ", 1) for part in found.split("; "))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_file_holds_what_the_document_tells(architecture):
    trace = trace_of(model_of(architecture=architecture))
    kept = held(html(trace))
    assert kept["about"] == describe(trace)
    assert kept["steps"] == steps(trace)
    assert (kept["alignment"] is None) == (architecture != "encoder-decoder")
    assert kept["beam"] is None
    recorded = {name for name in trace.arrays if not name.startswith("said.")}
    assert kept["arrays"].keys() | kept["sums"].keys() == recorded
    name = min(kept["arrays"])
    read = np.frombuffer(kept["arrays"][name]["data"], np.float32)
    np.testing.assert_allclose(read.reshape(kept["arrays"][name]["shape"]), trace.arrays[name], rtol=1e-6)


def test_all_modules_are_inside_and_nothing_is_outside():
    text = html(trace_of(model_of()))
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    assert script == page.joined("saved.js")
    inside = set(re.findall(r"^// ([\w/]+\.\w+)$", script, re.MULTILINE))
    assert {"saved.js", "state/source_file.js", "words/zh.json"} <= inside
    assert "state/server.js" not in inside  # what takes a server
    assert not re.search(r"(src|href)=|^import ", text, re.MULTILINE)


def test_its_policy_runs_what_is_inside_and_reaches_nothing():
    text = html(trace_of(model_of()))
    allowed = policy(text)
    assert allowed["default-src"] == "'none'"
    assert allowed.keys() & {"connect-src", "font-src"} == set()
    assert "data:" not in allowed["script-src"]
    for kind, attributes in (("script", 'type="module"'), ("style", "")):
        opening = f"<{kind} {attributes}>" if attributes else f"<{kind}>"
        inside = text.partition(opening)[2].partition(f"</{kind}>")[0]
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in allowed[f"{kind}-src"]
    assert "unsafe" not in " ".join(allowed.values())


def test_a_text_that_looks_like_a_script_stays_a_text():
    trace = look(model_of(), subwords(), HOSTILE, HOSTILE)
    text = html(trace)
    assert "alert(1)</script>" not in text
    assert text.count("<script") == 2
    assert held(text)["about"]["inputs"]["text"] == trace.inputs.text
    assert "script" in trace.inputs.text.lower()


def test_the_trace_s_tree_and_a_given_alignment_are_kept():
    trace = look(model_of(), subwords(), SOURCE, search=Search(beam_size=2, extra_length=0))
    kept = held(html(trace, aligned=alignment(trace, [(0, 1)])))
    assert kept["beam"] == trace.beam.to_json()
    assert kept["alignment"]["heads"] == [[0, 1]]


def test_a_saved_trace_becomes_a_file_without_torch(tmp_path):
    trace_of(model_of()).save(tmp_path / "cat.safetensors")
    code = (
        "import sys; from regard.look.trace.trace import Trace; from regard.look.export.html import html\n"
        "html(Trace.load(sys.argv[1]))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "cat.safetensors"], check=True)


def test_a_long_text_stays_within_four_megabytes():
    shape = {"d_model": 512, "n_heads": 8, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2}
    model = model_of(torch.float32, d_k=None, d_v=None, **shape)
    ids = np.random.default_rng(1).integers(5, subwords().vocab_size, 511).tolist()
    trace = look(model, subwords(), ids, ids)
    text = html(trace)
    assert len(text.encode()) <= 1.03 * LIMIT
    assert len(text.encode()) > LIMIT / 3, "and keeps as much as fits"
    assert held(text)["precision"] == "top"


def test_the_residual_stream_of_pre_norm_is_summed_and_that_of_post_norm_is_stored():
    pre, post = (trace_of(model_of(torch.float32, norm_position=each)) for each in ("pre", "post"))
    sums = sums_in(pre.arrays)
    blocks = {name for name in pre.arrays if re.search(r"add_and_norm\.\d\.output$", name)}
    assert sums.keys() == blocks
    for name, (one, other) in sums.items():
        np.testing.assert_allclose(
            pre.arrays[one] + pre.arrays[other], pre.arrays[name], rtol=1e-4, atol=1e-4
        )
    assert sums_in(post.arrays) == {}


@pytest.mark.slow
def test_a_page_of_thirty_tokens_takes_four_megabytes_at_most():
    """With the bundled model, whose layers are many; short texts stay exact."""
    model = regard.load()
    first = "Although it had rained all day, the children kept playing in the park until it got dark,"
    trace = model.look(f"{first} and they came home wet.")
    assert 25 <= max(len(side.tokens) for side in (trace.inputs, trace.outputs)) <= 35
    text = html(trace, aligned=alignment(trace))
    assert len(text.encode()) <= 4_000_000
    assert held(text)["precision"] in ("f16", "f32")
    assert held(html(model.look("猫坐在垫子上。")))["precision"] == "f32"
