"""InfluenceMeasures of influence, each against another road to the same numbers."""

import numpy as np
import pytest
import torch

import regard
from regard.look.influence.attention import mean_attention, norm_weighted, rollout
from regard.look.influence.attribution import (
    agreement,
    deletion_curve,
    gradient_times_input,
    influence_by,
    integrated_gradients,
    measure_influence,
    value_zeroing,
)
from regard.look.influence.copies import Prediction
from regard.look.influence.methods import store_influence, stored_influence
from regard.look.interventions.interventions import HeadOff, MaskSource, NoPositions, SkipBlock
from regard.look.trace.recorder import log_probs_of, look, predicting_states
from regard.look.views.influence import influence_svg
from regard.look.views.view import choose
from regard.model.taps import recording
from regard.packing import pack
from tests.look.traced import ARCHITECTURES, SOURCE, TARGET, model_of, subwords, trace_of
from tests.parity.tolerances import TOLERANCES
from tests.refusals import refused

each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _few_copies_at_once(monkeypatch):
    monkeypatch.setattr(
        "regard.look.interventions.ablation.BATCH_TOKENS", 40
    )  # several batches, the last not full


def close(one, other):
    np.testing.assert_allclose(one, other, **TOLERANCES[torch.float64])


def log_prob(model, trace, row, replace=None):
    """Of one token that was wanted, by a run of its own."""
    sides = [pack([side.ids]) for side in (trace.inputs, trace.outputs) if side is not None]
    with torch.no_grad(), recording(model, replace):
        return float(model(*sides).log_softmax(-1)[row, trace.targets[row]])


def read_side(trace):
    return ("input", trace.inputs) if trace.inputs is not None else ("output", trace.outputs)


@each_architecture
def test_gradient_times_input_is_the_slope_of_making_an_embedding_longer(architecture):
    model = model_of(architecture=architecture, feed_forward="gelu")
    trace = trace_of(model)
    side, tokens = read_side(trace)
    row = len(trace.targets) - 1
    found = gradient_times_input(model, trace, row)
    assert found.shape == (len(tokens),)
    for j in range(len(tokens)):
        ends = []
        for more in (1e-5, -1e-5):

            def longer(address, value, more=more, j=j):
                if address == f"{side}_embedding.with_positions":
                    value = value.clone()
                    value[j] += more * torch.tensor(trace.arrays[f"{side}_embedding.embedded"][j])
                return value

            ends.append(log_prob(model, trace, row, longer))
        assert found[j] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-6)


@each_architecture
def test_integrated_gradients_add_up_to_what_the_embeddings_changed(architecture):
    model = model_of(architecture=architecture, feed_forward="gelu")
    trace = trace_of(model)
    side, _ = read_side(trace)

    def empty(address, value):
        if address == f"{side}_embedding.with_positions":
            return value - torch.tensor(trace.arrays[f"{side}_embedding.embedded"])
        return value

    changed = log_prob(model, trace, 0) - log_prob(model, trace, 0, empty)
    found = integrated_gradients(model, trace, 0)
    assert found.sum() == pytest.approx(changed, rel=0.01)
    assert found.convergence.change == pytest.approx(changed, rel=1e-6)
    assert found.convergence.delta == pytest.approx(found.sum() - changed, abs=1e-9)
    assert found.convergence.relative == pytest.approx(abs(found.sum() - changed) / abs(changed), abs=1e-9)
    assert abs(changed - gradient_times_input(model, trace, 0).sum()) > 0.05


def test_more_steps_of_integrated_gradients_leave_less_to_distribute():
    model = model_of(feed_forward="gelu")
    trace = trace_of(model)
    found = [integrated_gradients(model, trace, 1, steps=n).convergence for n in (3, 5, 17)]
    assert found[0].distributed > 3 * found[1].distributed
    assert found[1].distributed > 3 * found[2].distributed
    assert [each.steps for each in found] == [3, 5, 17]
    for steps in (1, 5000):
        with refused("bad_option", "steps"):
            integrated_gradients(model, trace, 1, steps=steps)


@each_architecture
def test_what_was_distributed_is_what_the_trapezoids_miss(architecture):
    model = model_of(architecture=architecture)
    trace = trace_of(model)
    side, _ = read_side(trace)

    def shorter(share):
        def change(address, value):
            return share * value if address == f"{side}_embedding.embedded" else value

        return log_prob(model, trace, 0, change)

    found = integrated_gradients(model, trace, 0, steps=3)
    shares = np.array([0.0, 0.25, 1.0])
    prediction = Prediction(model, trace, 0, prefix=False)
    slopes, log_probs = prediction.along(shares)
    close(log_probs, [shorter(share) for share in shares])
    trapezoids = np.diff(shares) * (slopes[:-1] + slopes[1:]).sum(1) / 2
    errors = trapezoids - np.diff(log_probs)
    close(found.convergence.distributed, np.abs(errors).sum())
    close(found.convergence.trapezoids, errors.sum())
    close(found.convergence.delta, 0.0)
    close(found.sum(), log_probs[-1] - log_probs[0])
    # Each interval's error goes to the tokens by the change of their gradients.
    plain = (np.diff(shares)[:, None] * (slopes[:-1] + slopes[1:]) / 2).sum(0)
    spreads = np.abs(np.diff(slopes, axis=0))
    close(found, plain - (errors[:, None] * spreads / spreads.sum(1, keepdims=True)).sum(0))
    assert found.convergence.rough == pytest.approx(
        found.convergence.distributed / abs(found.convergence.change)
    )


def test_by_default_little_is_left_to_distribute():
    model = model_of()
    trace = trace_of(model)
    for row in range(len(trace.targets)):
        found = integrated_gradients(model, trace, row).convergence
        fine = Prediction(model, trace, row, prefix=False).along(np.linspace(0, 1, 129) ** 2)[1]
        assert found.distributed <= 0.07 * np.abs(np.diff(fine)).sum()
        assert 17 <= found.steps < 256


def test_integrated_gradients_are_those_of_a_fine_even_path():
    model = model_of(feed_forward="gelu")
    trace = trace_of(model)
    name, shares = "input_embedding.embedded", (np.arange(200) + 0.5) / 200
    embedded = torch.tensor(trace.arrays[name])
    total = torch.zeros_like(embedded)
    for share in shares:
        scaled = (share * embedded).requires_grad_()
        with recording(model, lambda at, value, scaled=scaled: scaled if at == name else value):
            states = predicting_states(model, pack([trace.inputs.ids]), pack([trace.outputs.ids]))
        log_probs_of(model, states[1:2], trace.targets[1:2]).sum().backward()
        total += scaled.grad / len(shares)
    even = (total * embedded).sum(-1).numpy()
    found = integrated_gradients(model, trace, 1)
    np.testing.assert_allclose(found, even, atol=0.02 * np.abs(even).max())


def test_the_convergence_stays_with_stored_influence_and_not_with_parts_of_it():
    model = model_of()
    trace = trace_of(model)
    found = influence_by("integrated-gradients", model, trace, 1, prefix=True, steps=5)
    assert found[2:].convergence is (2 * found).convergence is None
    assert influence_by("gradient-x-input", model, trace, 1).convergence is None
    stored = store_influence(trace, 1, {"integrated-gradients": found})
    again = type(trace).from_bytes(stored.to_bytes())
    assert stored_influence(again).convergence == found.convergence
    assert str(found.convergence) in influence_svg(again, choose(again, "influence"))
    assert measure_influence(model, trace, 1, steps=5).convergence == found.convergence


@pytest.mark.parametrize(
    ("text", "to"),
    [("天气比我们预想的要好。", "en"), ("The weather was better than we had expected.", "zh")],
)
def test_by_default_they_add_up_on_the_bundled_model(text, to):
    loaded = regard.load("zh-en")
    trace = loaded.look(text, to=to, beam_size=1)
    for row in (1, len(trace.targets) - 2):
        found = loaded.influence(trace, row, prefix=row > 1)
        assert found.convergence.relative < 0.005
        assert found.sum() == pytest.approx(found.convergence.change, rel=0.005)
        assert 0 < found.convergence.rough < 0.5


@each_architecture
def test_where_embeddings_are_normalised_they_are_taken_away_before_the_norm(architecture):
    model = model_of(architecture=architecture, feed_forward="gelu", embedding_norm=True)
    trace = trace_of(model)
    side, tokens = read_side(trace)

    def shorter(by, places):
        def change(address, value):
            if address == f"{side}_embedding.embedded":
                value = value.clone()
                value[places] *= 1 - by
            return value

        return log_prob(model, trace, 0, change)

    whole = integrated_gradients(model, trace, 0)
    assert whole.sum() == pytest.approx(log_prob(model, trace, 0) - shorter(1.0, slice(None)), rel=0.01)
    slopes = gradient_times_input(model, trace, 0)
    for j in range(len(tokens)):
        assert slopes[j] == pytest.approx((shorter(-1e-5, j) - shorter(1e-5, j)) / 2e-5, rel=1e-4, abs=1e-6)


def test_inputs_that_nothing_comes_from_have_no_influence():
    model = model_of()
    cut = [SkipBlock(block="cross", layer=layer) for layer in range(model.config.decoder_layers)]
    trace = trace_of(model, interventions=cut)
    assert (integrated_gradients(model, trace, 1) == 0).all()
    assert (value_zeroing(model, trace, 1) == 0).all()


@each_architecture
def test_value_zeroing_is_what_is_lost_token_by_token(architecture):
    model = model_of(architecture=architecture)
    trace = trace_of(model)
    _, tokens = read_side(trace)
    row = len(trace.targets) - 1
    found = value_zeroing(model, trace, row)
    for j in range(len(tokens)):

        def without(address, value, j=j):
            if address.endswith("attention.v") and (trace.inputs is None or ".masked" not in address):
                value = value.clone()
                value[j] = 0
            return value

        close(found[j], log_prob(model, trace, row) - log_prob(model, trace, row, without))
    assert np.abs(found).max() > 1e-4


def test_a_deletion_curve_masks_the_most_influential_first():
    model = model_of()
    trace = trace_of(model)
    influence = np.random.default_rng(2).normal(size=len(trace.inputs))
    curve = deletion_curve(model, trace, 2, influence)
    order = np.argsort(-influence).tolist()
    assert len(curve) == len(trace.inputs)
    for n in range(len(curve)):
        masks = [MaskSource(token=token) for token in order[:n]]
        close(curve[n], look(model, subwords(), SOURCE, TARGET, interventions=masks).log_probs[2])


def test_of_the_decoder_alone_only_what_came_before_is_deleted():
    model = model_of(architecture="decoder")
    trace = trace_of(model)
    curve = deletion_curve(model, trace, 3, np.arange(len(trace.outputs)))
    assert len(curve) == 4
    close(curve[0], trace.log_probs[3])
    assert (np.diff(curve) != 0).all()


def joint(trace):
    """The same flow, as one matrix over the tokens of both sides for every block."""
    sides = [len(side) if side is not None else 0 for side in (trace.inputs, trace.outputs)]
    n_in, n = sides[0], sum(sides)
    whole = np.eye(n)
    config = trace.config
    blocks = [("encoder", i) for i in range(config.encoder_layers) if trace.inputs is not None]
    if trace.outputs is not None:
        for i in range(config.decoder_layers):
            blocks += [("decoder", i)] + ([("cross", i)] if trace.inputs is not None else [])
    for kind, layer in blocks:
        mean = sum(trace.attention(kind, layer, head) for head in range(config.n_heads)) / config.n_heads
        block = np.eye(n)
        rows = slice(0, n_in) if kind == "encoder" else slice(n_in, n)
        columns = slice(n_in, n) if kind == "decoder" else slice(0, n_in)
        block[rows] /= 2
        block[rows, columns] += mean / 2
        whole = block @ whole
    return whole, n_in


@each_architecture
def test_rollout_is_the_product_of_all_the_blocks(architecture):
    trace = trace_of(model_of(architecture=architecture))
    whole, n_in = joint(trace)
    shares = rollout(trace)
    rows = whole if trace.outputs is None else whole[n_in:]
    if shares.of_inputs is not None:
        close(shares.of_inputs, rows[:, :n_in])
    if shares.of_outputs is not None:
        close(shares.of_outputs, rows[:, n_in:])
    close(sum(part.sum(-1) for part in shares if part is not None), np.ones(len(rows)))


@pytest.mark.parametrize("changes", [[], [HeadOff(kind="cross", layer=1, head=1)]])
def test_norm_weighted_attention_is_the_length_of_what_is_carried(changes):
    model = model_of()
    trace = trace_of(model, interventions=changes)
    found = norm_weighted(model, trace)("cross", 1)
    w_o = model.decoder.layers[1].multi_head_attention.w_o.weight.detach().numpy()
    heads = [0, 2] if changes else [0, 1, 2]
    lengths = np.zeros_like(found)
    for i, j in np.ndindex(found.shape):
        carried = sum(
            trace.attention("cross", 1, h)[i, j] * w_o[:, 11 * h : 11 * (h + 1)] @ trace.v("cross", 1, h)[j]
            for h in heads
        )
        lengths[i, j] = np.sqrt((carried**2).sum())
    close(found, lengths / lengths.sum(-1, keepdims=True))
    close(
        sum(part.sum(-1) for part in rollout(trace, norm_weighted(model, trace))), np.ones(len(trace.outputs))
    )


@each_architecture
@pytest.mark.parametrize("weighted", [False, True])
def test_a_block_that_adds_nothing_passes_everything_on(architecture, weighted):
    model = model_of(architecture=architecture)
    kind = trace_of(model).kinds[-1]
    all_heads = [HeadOff(kind=kind, layer=1, head=head) for head in range(model.config.n_heads)]
    off, skipped = (trace_of(model, interventions=x) for x in (all_heads, [SkipBlock(block=kind, layer=1)]))
    shares, others = (rollout(t, norm_weighted(model, t) if weighted else None) for t in (off, skipped))
    for one, other in zip(shares, others, strict=True):
        assert (one is None and other is None) or np.array_equal(one, other)
    total = sum(part.sum(-1) for part in shares if part is not None)
    close(total, np.ones_like(total))


def test_a_head_that_is_off_has_no_part_in_the_rollout():
    trace = trace_of(model_of(), interventions=[HeadOff(kind="cross", layer=2, head=0)])
    mean = (trace.attention("cross", 2, 1) + trace.attention("cross", 2, 2)) / 2
    close(mean_attention(trace)("cross", 2), mean)


def test_tokens_that_a_measure_holds_for_equal_share_a_rank():
    assert agreement(np.array([0.0, 0.0, 1.0]), np.array([2.0, 1.0, 3.0])) == pytest.approx(0.75**0.5)
    assert agreement(np.zeros(3), np.arange(3)) == 0
    assert agreement(np.ones(1), np.ones(1)) == 0


def test_measures_agree_with_themselves_and_not_with_their_opposites():
    values = np.array([0.3, -2.0, 5.0, 0.1])
    assert agreement(values, values**3) == pytest.approx(1)
    assert agreement(values, -values) == pytest.approx(-1)
    assert agreement(values, np.array([5.0, 0.3, -2.0, 0.1])) == pytest.approx(
        -0.4
    )  # 1 - 6 (1 + 4 + 9) / (4 · 15)


def test_a_trace_made_with_interventions_is_asked_as_it_was_made():
    model = model_of()
    trace = trace_of(model, interventions=[NoPositions()])
    close(deletion_curve(model, trace, 1, np.zeros(len(trace.inputs)))[0], trace.log_probs[1])


def test_what_cannot_be_asked_is_refused():
    model = model_of()
    trace = trace_of(model)
    with refused("unknown_place", "row 99"):
        value_zeroing(model, trace, 99)
    with refused("unknown_place", "row -1"):
        gradient_times_input(model, trace, -1)
    with refused("trace_mismatch", "(3,)"):
        deletion_curve(model, trace, 0, np.zeros(3))
    with refused("trace_mismatch"):
        integrated_gradients(model_of(d_ff=7), trace, 0)
