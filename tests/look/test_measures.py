"""The measures of influence by name, with what a translator had written before, against runs of their own."""

import numpy as np
import pytest
import torch

from regard.look.influence.attention import norm_weighted, rollout
from regard.look.influence.attribution import (
    agreement,
    deletion_curve,
    influence_by,
    leave_one_out,
    measure_influence,
)
from regard.look.influence.methods import METHODS, store_influence, stored_influence
from regard.look.interventions.interventions import HeadOff, MaskSource
from regard.look.trace.recorder import look
from regard.look.trace.trace import Trace
from tests.look.test_influence import close, log_prob
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of, with_influences
from tests.refusals import refused

each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _few_copies_at_once(monkeypatch):
    monkeypatch.setattr("regard.look.interventions.ablation.BATCH_TOKENS", 40)


def without(trace, token, which, value_of):
    """A change of one token of both sides, where it is looked at: inputs in two blocks, outputs in one."""
    n = len(trace.inputs)
    blocks = ("encoder.", "decoder.") if token < n else ("decoder.",)

    def change(address, value):
        masked = ".masked_multi_head_attention." in address
        if address.startswith(blocks) and address.endswith(which) and masked == (token >= n):
            return value_of(value.clone(), token if token < n else token - n)
        return value

    return change


def zeroed(value, place):
    value[place] = 0.0
    return value


def unseen(scores, place):
    scores[..., place] = -1e30
    return scores


def test_leaving_a_token_out_is_masking_it():
    model = model_of()
    trace = trace_of(model)
    found = leave_one_out(model, trace, 2)
    for token, lost in enumerate(found):
        masked = look(model, subwords(), SOURCE, TARGET, interventions=[MaskSource(token=token)])
        close(lost, trace.log_probs[2] - masked.log_probs[2])
    assert np.abs(found).max() > 1e-4


@pytest.mark.parametrize(
    ("method", "which", "value_of"), [("value-zeroing", ".v", zeroed), ("leave-one-out", ".scores", unseen)]
)
def test_what_was_written_before_is_taken_away_like_what_was_read(method, which, value_of):
    model = model_of()
    trace = trace_of(model)
    found = influence_by(method, model, trace, 2, prefix=True)
    close(found[: len(trace.inputs)], influence_by(method, model, trace, 2))
    assert len(found) == len(trace.inputs) + len(trace.outputs)
    assert (found[len(trace.inputs) + 3 :] == 0).all(), "what came later"
    for token in range(len(trace.inputs) + 3):
        changed = log_prob(model, trace, 2, without(trace, token, which, value_of))
        close(found[token], trace.log_probs[2] - changed)
    assert np.abs(found[len(trace.inputs) :]).max() > 1e-4


def test_gradients_along_what_was_written_are_slopes():
    model = model_of(feed_forward="gelu")
    trace = trace_of(model)
    found = influence_by("gradient-x-input", model, trace, 2, prefix=True)
    for place in range(3):
        ends = []
        for factor in (1 + 1e-5, 1 - 1e-5):

            def longer(address, value, factor=factor, place=place):
                if address == "output_embedding.embedded":
                    value = value.clone()
                    value[place] *= factor
                return value

            ends.append(log_prob(model, trace, 2, longer))
        slope = (ends[0] - ends[1]) / 2e-5
        assert found[len(trace.inputs) + place] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_integrated_gradients_of_both_sides_add_up_to_what_both_changed():
    model = model_of(feed_forward="gelu")
    trace = trace_of(model)

    def empty(address, value):
        return torch.zeros_like(value) if address.endswith("_embedding.embedded") else value

    changed = log_prob(model, trace, 2) - log_prob(model, trace, 2, empty)
    found = influence_by("integrated-gradients", model, trace, 2, prefix=True)
    assert found.sum() == pytest.approx(changed, abs=0.02)
    assert abs(found[: len(trace.inputs)].sum() - changed) > 0.05, "one side alone does not make it"


def test_attention_is_the_mean_over_blocks_and_heads_and_shares_out_one():
    model = model_of()
    trace = trace_of(model, interventions=[HeadOff(kind="cross", layer=1, head=h) for h in range(3)])
    layers, heads = range(model.config.decoder_layers), range(model.config.n_heads)
    cross = np.mean([trace.attention("cross", i, h)[2] for i in layers if i != 1 for h in heads], axis=0)
    own = np.mean([trace.attention("decoder", i, h)[2] for i in layers for h in heads], axis=0)
    found = influence_by("attention", model, trace, 2, prefix=True)
    close(found, np.concatenate([cross, own]) / 2)
    close(influence_by("attention", model, trace, 2), cross)
    close(found.sum(), 1.0)


def test_norms_and_rollout_are_those_of_the_whole_trace():
    model = model_of()
    trace = trace_of(model)
    mixing = norm_weighted(model, trace)
    layers = range(model.config.decoder_layers)
    close(influence_by("norms", model, trace, 1), np.mean([mixing("cross", i)[1] for i in layers], axis=0))
    shares = rollout(trace)
    close(influence_by("rollout", model, trace, 1, prefix=True), np.concatenate([each[1] for each in shares]))


def test_with_what_was_written_before_one_token_of_each_side_stays():
    model = model_of()
    trace = trace_of(model)
    n = len(trace.inputs)
    influence = np.random.default_rng(2).normal(size=n + len(trace.outputs))
    curve = deletion_curve(model, trace, 2, influence, prefix=True)
    assert len(curve) == n + 3 - 2 + 1
    first, second = [i for i in np.argsort(-influence).tolist() if i < n + 3][:2]
    one, other = (without(trace, token, ".scores", unseen) for token in (first, second))
    close(curve[0], trace.log_probs[2])
    close(curve[1], log_prob(model, trace, 2, one))
    close(curve[2], log_prob(model, trace, 2, lambda address, value: other(address, one(address, value))))


def test_of_a_long_text_several_tokens_are_masked_at_a_time(monkeypatch):
    monkeypatch.setattr("regard.look.influence.attribution.POINTS", 4)
    model = model_of()
    trace = trace_of(model)
    found = measure_influence(model, trace, 2)
    assert found.masked[0] == 0
    assert found.masked[-1] == len(trace.inputs) + 3 - 2
    assert len(found.masked) == 5
    whole = deletion_curve(model, trace, 2, found.values["rollout"], prefix=True)
    close(found.curves["rollout"], whole[list(found.masked)])


@each_architecture
def test_all_measures_side_by_side(architecture):
    model = model_of(architecture=architecture)
    trace = trace_of(model)
    row = 0 if architecture == "encoder" else 2
    found = measure_influence(model, trace, row)
    assert tuple(found.values) == tuple(found.curves) == METHODS
    lengths = [len(side) for side in (trace.inputs, trace.outputs) if side is not None]
    for each in METHODS:
        assert found.values[each].shape == (sum(lengths),)
        close(found.curves[each][0], trace.log_probs[row])
    close(np.diag(found.agreement), np.ones(len(METHODS)))
    close(found.agreement, found.agreement.T)
    if architecture == "decoder":
        one, other = (found.values[METHODS[i]][:3] for i in (0, 5))
        close(found.agreement[0, 5], agreement(one, other))  # of what was there alone


@each_architecture
def test_what_was_measured_travels_with_the_trace(architecture, tmp_path):
    model = model_of(architecture=architecture)
    trace = trace_of(model)
    row = len(trace.targets) - 1
    kept = with_influences(model, store_influence(trace, 0, {"attention": np.zeros(99)}))  # which it replaces
    kept.save(tmp_path / "t.safetensors")
    found = stored_influence(Trace.load(tmp_path / "t.safetensors"))
    assert found.methods == ("rollout", "leave-one-out")
    read, written = (side.texts if side is not None else [] for side in (trace.inputs, trace.outputs))
    assert list(found.tokens) == [*read, *written[: row + 1]]
    values = leave_one_out(model, trace, row, prefix=True)[: len(found.tokens)]
    close(found.values[1], values)
    close(np.abs(found.shares).max(axis=1), [1, 1])
    if architecture == "decoder":
        assert found.on == trace.outputs.texts[row + 1]
    with refused("nothing_to_show", "with_influences"):
        stored_influence(trace)


def test_a_measure_that_there_is_not_is_refused():
    model = model_of()
    trace = trace_of(model)
    with refused("unknown_method", "'guess'", "attention, norms"):
        influence_by("guess", model, trace, 0)
    for method in METHODS:
        with refused("unknown_place", "row 99"):
            influence_by(method, model, trace, 99)
