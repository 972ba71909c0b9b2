"""Copies that leave out what the prediction does not depend on, against one whole run for each copy."""

import numpy as np
import pytest
import torch

from regard.cancellation import cancellable
from regard.look.influence.attribution import deletion_curve, leave_one_out, measure_influence, value_zeroing
from regard.look.influence.copies import Prediction
from regard.look.interventions.interventions import HeadOff, MaskSource, Pin
from regard.look.trace.blocks import place_of
from regard.model.taps import recording
from regard.packing import pack
from tests.look.test_influence import close, log_prob
from tests.look.traced import ARCHITECTURES, DEPARTURES, model_of, trace_of

each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _two_cores_and_few_copies_at_once(monkeypatch):
    monkeypatch.setattr("regard.look.interventions.ablation.BATCH_TOKENS", 40)
    for module in ("look.influence.copies", "engine.engines.torch_engine"):  # batches run side by side
        monkeypatch.setattr(f"regard.{module}.cores", lambda _: 2)


def row_of(architecture):
    return 0 if architecture == "encoder" else 2


def taken_alone(model, trace, row, taken, name, value_of):
    """The log-probability in one run of the whole text, with some tokens taken from each block."""
    n_inputs = 0 if trace.inputs is None else len(trace.inputs)
    of_side = {"encoder": taken[:n_inputs], "cross": taken[:n_inputs], "decoder": taken[n_inputs:]}

    def change(address, value):
        place = place_of(address)
        if place is None or place.name != name or place.block not in of_side:
            return value
        return value_of(value.clone(), np.flatnonzero(of_side[place.block]))

    return log_prob(model, trace, row, change if taken.any() else None)


def zeroed(value, places):
    value[places] = 0.0
    return value


def unseen(scores, places):
    scores[..., places] = -1e30
    return scores


def expected_losses(model, trace, row, name, value_of):
    sides = [side for side in (trace.inputs, trace.outputs) if side is not None]
    taken = np.eye(sum(map(len, sides)), dtype=bool)
    n_seen = len(taken) if trace.outputs is None else len(taken) - len(trace.outputs) + row + 1
    lost = [
        trace.log_probs[row] - taken_alone(model, trace, row, one, name, value_of) for one in taken[:n_seen]
    ]
    return np.array(lost + [0.0] * (len(taken) - n_seen))


@each_architecture
@pytest.mark.parametrize("departures", DEPARTURES, ids=range(len(DEPARTURES)))
def test_what_is_left_out_changes_no_result(architecture, departures):
    model = model_of(architecture=architecture, **departures)
    trace, row = trace_of(model), row_of(architecture)
    close(value_zeroing(model, trace, row, prefix=True), expected_losses(model, trace, row, "v", zeroed))
    lost = expected_losses(model, trace, row, "scores", unseen)
    close(leave_one_out(model, trace, row, prefix=True), lost)
    assert np.abs(lost).max() > 1e-6
    # Most of a side masked, with the token that predicts among them.
    random = np.random.default_rng(5)
    seen = Prediction(model, trace, row, prefix=True).seen
    taken = (random.random((7, len(seen))) < 0.6) & seen
    n_inputs = 0 if trace.inputs is None else len(trace.inputs)
    for first, end in ((0, n_inputs), (n_inputs, n_inputs + row + 1)):
        if first < min(end, len(seen)):
            taken[:, first] = False
            taken[0, end - 1] = taken[1, end - 1] = True
    found = Prediction(model, trace, row, prefix=True).masked(taken)
    close(found, [taken_alone(model, trace, row, one, "scores", unseen) for one in taken])


@each_architecture
def test_in_float32_the_results_are_the_same_to_one_in_a_hundred_thousand(architecture):
    model = model_of(torch.float32, architecture=architecture)
    trace, row = trace_of(model), row_of(architecture)
    near = {"rtol": 1e-5, "atol": 1e-5}
    found = leave_one_out(model, trace, row, prefix=True)
    np.testing.assert_allclose(found, expected_losses(model, trace, row, "scores", unseen), **near)
    found = value_zeroing(model, trace, row, prefix=True)
    np.testing.assert_allclose(found, expected_losses(model, trace, row, "v", zeroed), **near)


@pytest.mark.parametrize(
    "change",
    [
        MaskSource(token=1),
        HeadOff(kind="encoder", layer=0, head=1),
        Pin(kind="cross", layer=1, head=0, query=2, key=0),
    ],
)
def test_with_interventions_every_token_keeps_its_place(change):
    model = model_of()
    trace = trace_of(model, interventions=[change])
    influence = np.arange(len(trace.inputs), dtype=float)
    curve = deletion_curve(model, trace, 2, influence)
    for n, log_probability in enumerate(curve[:-1]):
        masks = [MaskSource(token=len(influence) - 1 - i) for i in range(n)]
        close(log_probability, trace_of(model, interventions=[change, *masks]).log_probs[2])


def test_the_token_that_predicts_loses_the_attention_to_itself():
    for architecture, place in (("encoder", 0), ("decoder", 2)):
        model = model_of(architecture=architecture)
        trace, row = trace_of(model), row_of(architecture)
        found = leave_one_out(model, trace, row)
        taken = np.arange(len(found)) == place
        close(found[place], trace.log_probs[row] - taken_alone(model, trace, row, taken, "scores", unseen))
        assert abs(found[place]) > 1e-6


def test_the_only_token_cannot_be_masked():
    model = model_of()
    trace = trace_of(model)
    found = leave_one_out(model, trace, 0, prefix=True)
    close(found[len(trace.inputs)], 0.0)


def test_equal_copies_and_equal_points_run_once(monkeypatch):
    model = model_of()
    trace = trace_of(model)
    prediction = Prediction(model, trace, 2, prefix=True)
    taken = np.eye(len(prediction.seen), dtype=bool)[[0, 1, 1, 0]]
    first, slopes = prediction.masked(taken), prediction.along(np.array([0.25, 1.0]))
    assert first[0] == first[3] != first[1]
    monkeypatch.setattr("regard.look.influence.copies.run_on_cores", None)
    assert np.array_equal(prediction.masked(taken[::-1]), first[::-1])
    again = prediction.along(np.array([1.0, 0.25]))
    assert np.array_equal(again[0], slopes[0][::-1])
    assert np.array_equal(again[1], slopes[1][::-1])


def test_what_nobody_waits_for_ends_between_two_batches(monkeypatch):
    model = model_of()
    trace, checks, runs = trace_of(model), [], []
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda read: runs.append(read) or encode(read))

    def check():
        checks.append(True)
        if len(checks) > 3:
            raise TimeoutError

    with cancellable(check), pytest.raises(TimeoutError):
        measure_influence(model, trace, 1)
    assert len(runs) == 3


def test_less_is_computed_than_whole_copies(monkeypatch):
    model = model_of()
    trace, n_tokens = trace_of(model), []
    encode = model.encode
    monkeypatch.setattr(
        model, "encode", lambda read: n_tokens.append(read.boundaries.n_tokens) or encode(read)
    )
    prediction = Prediction(model, trace, 1, prefix=True)
    n = len(trace.inputs)
    taken = np.zeros((n, len(prediction.seen)), dtype=bool)
    for i in range(n):
        taken[i, :i] = True
    prediction.masked(taken)
    assert sum(n_tokens) == n * (n + 1) // 2
    outputs = []
    decode = model.decode
    monkeypatch.setattr(model, "decode", lambda read, *rest: outputs.append(read) or decode(read, *rest))
    prediction.along(np.ones(1))
    assert outputs[0].boundaries.lengths == (2,)


def test_measures_may_be_computed_while_others_record():
    model = model_of()
    trace = trace_of(model)
    with recording(model, keep=["decoder.output"]) as seen, torch.inference_mode():
        inside = measure_influence(model, trace, 1)
        model(pack([trace.inputs.ids]), pack([trace.outputs.ids]))
    assert "decoder.output" in seen
    outside = measure_influence(model, trace, 1)
    for method, values in outside.values.items():
        close(inside.values[method], values)
