"""Looking inside: what a recording shows is what was computed, and nobody pays who does not look."""

import threading

import pytest
import torch

from regard.errors import ShapeError
from regard.model import multi_head_attention
from regard.model.linear import Linear
from regard.model.masks import SameSequence
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import is_recording, recording, tap
from regard.packing import Boundaries
from tests.model.small import (
    INPUT_LENGTHS,
    OUTPUT_LENGTHS,
    D,
    F,
    H,
    K,
    U,
    V,
    random_pack,
    small_model,
    stirred,
)
from tests.parity.tolerances import assert_close, differ

B, S, T = 3, max(INPUT_LENGTHS), max(OUTPUT_LENGTHS)
N_IN, N_OUT = sum(INPUT_LENGTHS), sum(OUTPUT_LENGTHS)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def run(model):
    """The same pair of packs each time."""
    torch.manual_seed(7)
    return model(random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS))


def test_every_activation_of_a_transformer_has_an_address_and_its_shape():
    model = small_model()
    with recording(model) as seen:
        run(model)
    expected = {
        "input_embedding.embedded": (N_IN, D),
        "input_embedding.with_positions": (N_IN, D),
        "input_positions.added": (N_IN, D),
        "output_positions.added": (N_OUT, D),
        "output_embedding.embedded": (N_OUT, D),
        "output_embedding.with_positions": (N_OUT, D),
        "encoder.output": (N_IN, D),
        "decoder.output": (N_OUT, D),
        "output_probabilities.logits": (N_OUT, V),
    }

    def attention(path: str, n_queries: int, n_keys: int, longest_query: int, longest_key: int) -> None:
        scores = (B, H, longest_query, longest_key)
        shapes = {
            "q": (n_queries, H, K), "k": (n_keys, H, K), "v": (n_keys, H, U), "scores": scores,
            "weights": scores, "heads": (n_queries, H, U), "head_outputs": (n_queries, H, D),
            "output": (n_queries, D),
        }  # fmt: skip
        expected.update({f"{path}.{name}": shape for name, shape in shapes.items()})

    for stack, n_layers, n in (("encoder", 2, N_IN), ("decoder", 3, N_OUT)):
        for path in (f"{stack}.layers.{i}" for i in range(n_layers)):
            feed_forward = {"widened": (n, F), "hidden": (n, F), "output": (n, D)}
            expected |= {f"{path}.feed_forward.{name}": shape for name, shape in feed_forward.items()}
            if stack == "encoder":
                attention(f"{path}.multi_head_attention", n, n, S, S)
            else:
                attention(f"{path}.masked_multi_head_attention", n, n, T, T)
                attention(f"{path}.multi_head_attention", n, N_IN, T, S)
            for i in range(2 if stack == "encoder" else 3):
                add_and_norm = {"sum": (n, D), "norm.scale": (n, 1), "output": (n, D)}
                expected |= {f"{path}.add_and_norm.{i}.{name}": x for name, x in add_and_norm.items()}
    assert {address: tuple(value.shape) for address, value in seen.items()} == expected


@pytest.mark.parametrize("similarity", ["scaled-dot", "cosine", "additive", "bilinear"])
@pytest.mark.parametrize("packed", [True, False])
def test_recorded_weights_times_values_are_the_heads_and_through_w_o_the_output(similarity, packed):
    module = stirred(MultiHeadAttention(D, H, d_k=K, d_v=U, bias=True, similarity=similarity)).double()
    own, of_memory = Boundaries.of_lengths((5, 2, 13)), Boundaries.of_lengths((3, 11, 7))
    x, memory = (torch.randn(b.n_tokens, D, dtype=torch.float64) for b in (own, of_memory))
    if packed:
        with recording(module) as seen:
            output = module(x, memory, SameSequence(own, of_memory, causal=False))
        (v,) = of_memory.padded.pad(seen["v"])
        heads = own.padded.unpad([(seen["weights"] @ v.transpose(1, 2)).transpose(1, 2)])
    else:
        (x,), (memory,) = own.padded.pad(x), of_memory.padded.pad(memory)
        with recording(module) as seen:
            output = module(x, memory, of_memory.exists_BL[:, None, None, :])
        heads = (seen["weights"] @ seen["v"].transpose(1, 2)).transpose(1, 2)
    assert_close(seen["heads"], heads)
    assert_close(seen["output"], heads.flatten(-2) @ module.w_o.weight.t() + module.w_o.bias)
    assert torch.equal(seen["output"], output)
    assert_close(seen["weights"].sum(dim=-1), torch.ones(*seen["weights"].shape[:-1]))
    missing = ~of_memory.exists_BL[:, None, None, :].expand_as(seen["weights"])
    assert (seen["weights"][missing] == 0).all()


def test_recorded_logits_are_the_result():
    model = small_model()
    with recording(model) as seen:
        logits = run(model)
    assert torch.equal(seen["output_probabilities.logits"], logits)


def test_what_is_recorded_carries_no_graph():
    model = small_model()
    with torch.enable_grad(), recording(model) as seen:
        logits = run(model)
    assert logits.requires_grad
    assert not any(value.requires_grad for value in seen.values())


@pytest.mark.parametrize(
    "address",
    [
        "input_embedding.with_positions", "encoder.layers.0.multi_head_attention.q",
        "encoder.layers.1.feed_forward.hidden", "decoder.layers.2.multi_head_attention.scores",
        "decoder.layers.0.masked_multi_head_attention.weights", "decoder.layers.1.multi_head_attention.heads",
        "decoder.layers.1.add_and_norm.1.output", "output_probabilities.logits",
    ],
)  # fmt: skip
def test_a_replacement_changes_the_result_and_is_what_the_recording_shows(address):
    model = small_model()
    plain = run(model)
    asked = []

    def replace(at: str, value: torch.Tensor) -> torch.Tensor:
        asked.append(at)
        return torch.zeros_like(value) if at == address else value

    with recording(model, replace) as seen:
        changed = run(model)
    assert differ(changed, plain)
    assert (seen[address] == 0).all()
    assert asked == list(seen)
    assert torch.equal(run(model), plain)


def test_a_replacement_that_changes_nothing_changes_nothing():
    model = small_model()
    with recording(model):
        plain = run(model)
    with recording(model, lambda _, value: value.clone()):
        assert torch.equal(run(model), plain)


def test_ablating_one_head_takes_away_its_part_of_the_output():
    module = stirred(MultiHeadAttention(D, H, d_k=K, d_v=U)).double()
    x = torch.randn(2, 5, D, dtype=torch.float64)

    def without_head_1(at: str, value: torch.Tensor) -> torch.Tensor:
        if at == "heads":
            value = value.clone()
            value[..., 1, :] = 0
        return value

    with recording(module) as seen:
        whole = module(x)
    with recording(module, without_head_1):
        ablated = module(x)
    of_head_1 = seen["heads"][..., 1, :] @ module.w_o.weight[:, U : 2 * U].t()
    assert_close(whole - ablated, of_head_1)


def test_outside_a_recording_nothing_is_kept_and_the_softmax_is_not_written_out(monkeypatch):
    model = small_model()
    with recording(model) as seen:
        run(model)
    before = {address: id(value) for address, value in seen.items()}
    monkeypatch.setattr(multi_head_attention, "masked_softmax", None)
    run(model)
    assert not is_recording()
    assert {address: id(value) for address, value in seen.items()} == before
    value = torch.ones(3)
    assert tap(model, "anything", value) is value


def test_what_is_not_to_be_kept_is_passed_on_and_can_still_be_replaced():
    model = small_model()
    whole = run(model)

    def negated(address: str, value: torch.Tensor) -> torch.Tensor:
        return -value if address == "output_probabilities.logits" else value

    with recording(model, negated, keep=lambda address: address.endswith(".q")) as seen:
        result = run(model)
    assert set(seen) == {address for address in seen if address.endswith(".q")} != set()
    assert_close(result, -whole)


def test_behind_a_pre_norm_lies_what_the_sub_layer_reads():
    model = small_model(norm_position="pre")
    with recording(model) as seen:
        run(model)
    normed = seen["encoder.layers.1.add_and_norm.0.normed"]
    attention = model.encoder.layers[1].multi_head_attention
    assert_close(seen["encoder.layers.1.multi_head_attention.v"].flatten(1), attention.w_v(normed))


def test_a_recording_ends_when_what_it_watches_fails():
    model = small_model()
    with pytest.raises(RuntimeError, match="midway"), recording(model):
        raise RuntimeError("midway")
    assert not is_recording()


def test_a_model_that_was_not_asked_for_is_not_recorded():
    watched, other = small_model(), small_model()
    with recording(watched) as seen:
        run(other)
    assert seen == {}


def test_a_part_of_a_model_can_be_watched_by_itself():
    model = small_model()
    with recording(model.decoder.layers[1]) as seen:
        run(model)
    assert "multi_head_attention.weights" in seen
    assert not any(address.startswith("decoder") for address in seen)


def test_a_recording_in_one_thread_does_not_see_another_thread_s_run():
    model = small_model()
    ran = []

    def elsewhere() -> None:
        with torch.no_grad():
            ran.append((is_recording(), run(model)))

    with recording(model) as seen:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert seen == {}
        here = run(model)
    (was_recording, there), *_ = ran
    assert not was_recording
    assert_close(there, here)
    assert seen


def test_cached_steps_show_the_same_addresses_as_a_whole_run():
    model = small_model()
    memory = model.encode(random_pack(INPUT_LENGTHS))
    with recording(model) as whole:
        model.decode(random_pack((1, 1, 1)), memory)
    with recording(model) as stepwise:
        model.step(torch.tensor([1, 2, 3]), model.start(memory, capacity=2))
    assert set(whole) | {"output_probabilities.logits"} == set(stepwise)


@pytest.mark.parametrize(("wrong", "got"), [(lambda v: v[:1], r"\(1, 3, 11\)"), (lambda _: None, "NoneType")])
def test_a_replacement_of_another_shape_is_refused_by_its_address(wrong, got):
    model = small_model()
    address = "encoder.layers.0.multi_head_attention.heads"
    with (
        pytest.raises(ShapeError, match=rf"replacement of {address}: expected \(22, 3, 11\), got {got}"),
        recording(model, lambda at, value: wrong(value) if at == address else value),
    ):
        run(model)


class TestMapsThatAreMoreThanTheirWeights:
    def expected(self, model):
        return run(model), model.encoder.layers[0].multi_head_attention

    def test_hooks_of_torch_are_called(self):
        model = small_model(feed_forward="swiglu")
        plain, block = self.expected(model)
        seen = []
        for module in (block.w_q, block.w_v, model.encoder.layers[1].feed_forward.gate):
            module.register_forward_hook(lambda *_: seen.append(1))
        assert_close(run(model), plain)
        assert len(seen) == 3

    def test_a_subclass_goes_its_own_way(self):
        class Doubled(Linear):
            def forward(self, x):
                return 2 * super().forward(x)

        model = small_model()
        plain, block = self.expected(model)
        block.w_v.__class__ = Doubled
        doubled = run(model)
        assert differ(doubled, plain)
        block.w_v.__class__ = Linear
        block.w_v.weight.mul_(2)
        assert_close(doubled, run(model))
