"""What is left of a trace in a few kilobytes, and comes back."""

import numpy as np
import pytest
import torch

from regard.look.trace.probes import Probe, probe_file, probes, read_probes, write_probes
from regard.look.trace.trace import Trace
from tests.look.traced import model_of, trace_of
from tests.refusals import refused


@pytest.fixture
def trace():
    return trace_of(model_of(torch.float32))


def test_a_probe_has_the_attention_of_its_trace_to_half_a_percent(trace):
    probe = Probe.of_trace(trace)
    for kind in trace.kinds:
        for layer, head in np.ndindex(probe.weights[kind].shape[:2]):
            shown = probe.attention(kind, layer, head)
            np.testing.assert_allclose(shown, trace.attention(kind, layer, head), atol=0.5 / 255 + 1e-6)
            assert (shown[~trace.may_attend(kind)] == 0).all()
    assert probe.likeliest == tuple(trace.candidates(row)[0].text for row in range(len(trace.outputs)))
    np.testing.assert_array_equal(probe.log_probs, trace.log_probs)


def test_probes_come_back_in_the_order_of_their_steps(trace, tmp_path):
    probe = Probe.of_trace(trace)
    (tmp_path / "probes").mkdir()
    for step in (10, 0, 9_999, 200):
        write_probes(probe_file(tmp_path, step), [probe] * (1 + (step == 10)))
    found = probes(tmp_path)
    assert [(each.step, len(each.probes)) for each in found] == [(0, 1), (10, 2), (200, 1), (9_999, 1)]
    again = found[1].probes[1]
    assert (again.inputs, again.outputs, again.likeliest) == (probe.inputs, probe.outputs, probe.likeliest)
    np.testing.assert_array_equal(again.log_probs, probe.log_probs)
    assert again.weights.keys() == probe.weights.keys()
    assert all(np.array_equal(again.weights[kind], probe.weights[kind]) for kind in probe.weights)
    assert probe_file(tmp_path, 0).stat().st_size < trace.nbytes / 2


def test_a_run_without_probes_has_none(tmp_path):
    assert probes(tmp_path) == []


def test_what_is_not_there_is_refused(trace, tmp_path):
    probe = Probe.of_trace(trace)
    with refused("unknown_place", "layer 7", "layers 0 to 2"):
        probe.attention("cross", 7, 0)
    with refused("unknown_place", "crosss"):
        probe.attention("crosss", 0, 0)
    trace.save(tmp_path / "trace.safetensors")
    with refused("damaged_file", "no probes"):
        read_probes(tmp_path / "trace.safetensors")
    write_probes(tmp_path / "probes.safetensors", [probe])
    with refused("damaged_file", "no trace"):
        Trace.load(tmp_path / "probes.safetensors")
