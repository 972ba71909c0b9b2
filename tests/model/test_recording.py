"""Recordings together, their addresses, and what is refused because it would do nothing."""

import re
from contextlib import nullcontext

import pytest
import torch

import regard
from regard.errors import ShapeError
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import addresses, is_recording, note_copy, recording
from tests.architecture.sources import ROOT
from tests.model.small import (
    INPUT_LENGTHS,
    OUTPUT_LENGTHS,
    D,
    H,
    K,
    U,
    random_pack,
    small_model,
    stirred,
)
from tests.parity.tolerances import assert_close, differ
from tests.refusals import refused

FEED_FORWARD = "encoder.layers.1.feed_forward.output"
ARCHITECTURES = {
    "encoder-decoder": (INPUT_LENGTHS, OUTPUT_LENGTHS),
    "decoder": (OUTPUT_LENGTHS,),
    "encoder": (INPUT_LENGTHS,),
}


def run(model):
    """The same packs each time."""
    torch.manual_seed(7)
    return model(*(random_pack(lengths) for lengths in ARCHITECTURES[model.config.architecture]))


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


class TestTogether:
    def test_an_inner_recording_sees_what_an_outer_one_replaced(self):
        model = small_model()
        plain = run(model)
        with recording(model, {FEED_FORWARD: torch.zeros_like}) as outer, recording(model) as inner:
            changed = run(model)
        with recording(model, {FEED_FORWARD: torch.zeros_like}) as alone:
            expected = run(model)
        assert differ(changed, plain)
        assert torch.equal(changed, expected)
        assert (inner[FEED_FORWARD] == 0).all()
        assert outer.keys() == inner.keys() == alone.keys()
        assert all(torch.equal(inner[at], alone[at]) for at in alone)

    def test_the_outermost_replaces_first_and_does_not_see_later_replacements(self):
        model = small_model()
        with (
            recording(model, {FEED_FORWARD: lambda value: torch.full_like(value, 2.0)}) as outer,
            recording(model, {FEED_FORWARD: lambda value: value + 3.0}) as inner,
        ):
            run(model)
        assert (outer[FEED_FORWARD] == 2.0).all()
        assert (inner[FEED_FORWARD] == 5.0).all()
        assert torch.equal(outer["decoder.output"], inner["decoder.output"])

    def test_after_the_inner_one_the_outer_one_goes_on(self):
        model = small_model()
        with recording(model, {"*.feed_forward.output": torch.zeros_like}):
            with recording(model, keep="decoder.output"):
                first = run(model)
            assert is_recording(model)
            assert torch.equal(run(model), first)
        assert not is_recording()

    def test_two_models_are_recorded_side_by_side(self):
        one, other = small_model(), small_model(norm_position="pre")
        with recording(one) as of_one, recording(other, {FEED_FORWARD: torch.zeros_like}) as of_other:
            assert is_recording(one)
            assert is_recording(other)
            logits, changed = run(one), run(other)
        assert torch.equal(of_one["output_probabilities.logits"], logits)
        assert torch.equal(of_other["output_probabilities.logits"], changed)
        assert differ(changed, run(other))
        assert differ(of_one[FEED_FORWARD], torch.zeros_like(of_one[FEED_FORWARD]))

    def test_only_the_recorded_model_is_written_out(self):
        recorded, other = small_model(), small_model()
        with recording(recorded):
            assert is_recording(recorded.encoder)
            assert not is_recording(other)

    def test_a_recording_of_the_original_reaches_a_noted_copy_and_copies_of_that(self):
        model, copy, again = small_model(), small_model(), small_model()
        note_copy(copy, model)
        note_copy(again, copy)
        plain = run(again)
        with recording(model, {FEED_FORWARD: torch.zeros_like}) as seen:
            assert differ(run(again), plain)
        assert seen.keys() == set(addresses(model))
        with recording(copy) as seen:
            run(model)
        assert seen == {}
        del copy
        with recording(model) as seen:
            run(again)
        assert seen


class TestAddresses:
    @pytest.mark.parametrize("norm_position", ["pre", "post"])
    @pytest.mark.parametrize(
        "choices",
        [
            {"feed_forward": "swiglu", "positions": "alibi", "norm": "rms"},
            {"feed_forward": "gelu", "positions": "rotary", "embedding_norm": True},
            {"architecture": "decoder", "positions": "t5-relative", "similarity": "additive"},
            {"architecture": "encoder", "positions": "learned", "label_head": "gelu-norm"},
            {"architecture": "encoder", "positions": "none", "label_head": "tanh", "feed_forward": "geglu"},
            {"architecture": "encoder", "label_head": "none"},
        ],
    )
    def test_those_that_are_listed_are_those_that_run(self, choices, norm_position):
        model = small_model(norm_position=norm_position, **choices)
        plain = run(model)
        with recording(model) as seen:
            recorded = run(model)
        assert set(seen) == set(addresses(model))
        assert_close(recorded, plain)

    def test_each_has_an_effect_in_a_whole_run_and_in_cached_steps(self):
        model = small_model(positions="t5-relative", feed_forward="swiglu")
        ids = torch.tensor([1, 2, 3])

        def steps():
            torch.manual_seed(7)
            cache = model.start(model.encode(random_pack(INPUT_LENGTHS)), capacity=3)
            _, cache = model.step(ids, cache)
            return model.step(ids + 1, cache)[0]

        def twice(value):
            return value * 2 + 0.5 * torch.randn_like(value)

        for compute in (lambda: run(model), steps):
            plain = compute()
            for address in addresses(model):
                with recording(model, {address: twice}, keep=()):
                    assert differ(compute(), plain), address

    def test_the_shares_of_the_heads_add_up_to_the_output(self):
        block = stirred(MultiHeadAttention(D, H, d_k=K, d_v=U, bias=True)).double()
        x = torch.randn(2, 5, D, dtype=torch.float64)
        with recording(block) as seen:
            output = block(x)
        assert seen["head_outputs"].shape == (2, 5, H, D)
        assert_close(seen["head_outputs"].sum(-2) + block.w_o.bias, output)

        def without_head_1(value):
            value[..., 1, :] = 0  # in place
            return value

        with recording(block, {"head_outputs": without_head_1}) as changed:
            ablated = block(x)
        assert_close(output - ablated, seen["head_outputs"][..., 1, :])
        assert (changed["head_outputs"][..., 1, :] == 0).all()

    def test_the_shares_are_those_of_a_map_that_is_more_than_its_weights(self):
        class Doubled(type(MultiHeadAttention(D, H, d_k=K, d_v=U).w_o)):
            def forward(self, x):
                return 2 * super().forward(x)

        block = stirred(MultiHeadAttention(D, H, d_k=K, d_v=U, bias=True)).double()
        block.w_o.__class__ = Doubled
        with recording(block) as seen:
            output = block(torch.randn(2, 5, D, dtype=torch.float64))
        assert_close(seen["head_outputs"].sum(-2) + 2 * block.w_o.bias, output)

    @pytest.mark.parametrize("norm", ["layer", "rms"])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
    def test_a_norm_with_its_scale_is_the_norm(self, norm, dtype):
        block = stirred(regard.AddAndNorm(small_model(norm=norm).config).norm).to(dtype)
        x = (3 * torch.randn(7, D) + 1).to(dtype)
        with recording(block) as seen:
            written_out = block(x)
        assert seen["scale"].shape == (7, 1)
        torch.testing.assert_close(written_out, block(x))
        with recording(block, {"scale": lambda scale: 2 * scale}, keep=()):
            bias = getattr(block, "bias", torch.zeros(D, dtype=dtype))
            torch.testing.assert_close(block(x), 2 * (written_out - bias) + bias, rtol=0.05, atol=0.05)

    def test_sums_gates_and_units_are_what_the_names_say(self):
        model = small_model(feed_forward="swiglu", norm_position="post")
        with recording(model) as seen:
            run(model)
        layer, path = model.encoder.layers[1], "encoder.layers.1"
        read = seen[f"{path}.add_and_norm.0.output"]
        assert_close(seen[f"{path}.feed_forward.gate"], layer.feed_forward.gate(read))
        assert_close(seen[f"{path}.feed_forward.widened"], layer.feed_forward.widen(read))
        units = (
            torch.nn.functional.silu(seen[f"{path}.feed_forward.gate"]) * seen[f"{path}.feed_forward.widened"]
        )
        assert_close(seen[f"{path}.feed_forward.hidden"], units)
        added = read + seen[f"{path}.feed_forward.output"]
        assert_close(seen[f"{path}.add_and_norm.1.sum"], added)
        assert_close(seen[f"{path}.add_and_norm.1.output"], layer.add_and_norm[1].norm(added))
        classifier = small_model(architecture="encoder", label_head="gelu-norm")
        with recording(classifier) as seen:
            logits = run(classifier)
        head = classifier.label_head
        assert_close(seen["label_head.hidden"], torch.nn.functional.gelu(seen["label_head.mapped"]))
        assert_close(seen["label_head.output"], head.norm(seen["label_head.hidden"]))
        assert_close(logits, classifier.output_probabilities(seen["label_head.output"]))

    def test_the_documented_names_are_those_of_the_code(self):
        page = (
            (ROOT / "docs" / "look.md").read_text(encoding="utf-8").partition("## Activations by address")[2]
        )
        rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
        documented = {
            cls: set(re.findall(r"`(\w+)`", names))
            for classes, names in rows
            for cls in re.findall(r"`(\w+)`", classes)
        }
        choices = [
            {"norm_position": "pre", "feed_forward": "swiglu", "positions": "alibi", "norm": "rms"},
            {"norm_position": "post", "positions": "learned"},
            {"architecture": "encoder", "label_head": "tanh"},
        ]
        named: dict[str, set[str]] = {}
        for module in (module for each in choices for module in small_model(**each).modules()):
            if names := getattr(module, "taps", ()):
                (cls,) = [each.__name__ for each in type(module).__mro__ if each.__name__ in documented]
                named.setdefault(cls, set()).update(names)
        assert named == documented

    def test_patterns_keep_and_replace(self):
        model = small_model()
        with recording(model, keep=["*.weights", "decoder.output"]) as seen:
            run(model)
        assert set(seen) == {at for at in addresses(model) if at.endswith(".weights")} | {"decoder.output"}
        calls = []
        with recording(model, {"encoder.*.q": lambda q: calls.append(q) or q}, keep=()) as seen:
            run(model)
        assert len(calls) == 2
        assert seen == {}


class TestGradients:
    ADDRESS = "encoder.layers.0.multi_head_attention.head_outputs"

    def test_attribution_patching_is_a_patch_to_first_order(self):
        """The gradient at an activation times a small change of it predicts the change of a loss."""
        model = small_model()

        def loss():
            return run(model).log_softmax(-1)[:, 3].sum()

        with torch.enable_grad(), recording(model, keep=self.ADDRESS, detach=False) as seen:
            before = loss()
            (gradient,) = torch.autograd.grad(before, seen[self.ADDRESS])
        torch.manual_seed(1)
        direction = torch.randn_like(gradient)
        errors = []
        for size in (1e-2, 1e-3):
            with recording(model, {self.ADDRESS: lambda value, size=size: value + size * direction}, keep=()):
                real = loss() - before.detach()
            predicted = size * (gradient * direction).sum()
            errors.append(abs(float(predicted - real)))
            assert abs(float(real)) > 10 * errors[-1]
        assert errors[1] < errors[0] / 50  # what is left is of second order

    @pytest.mark.parametrize("detach", [True, False])
    def test_a_graph_is_kept_on_request_only(self, detach):
        model = small_model()
        with torch.enable_grad(), recording(model, detach=detach) as seen:
            run(model)
        assert {value.requires_grad for at, value in seen.items() if not at.endswith(".added")} == {
            not detach
        }


class TestRefusals:
    @pytest.mark.parametrize("argument", ["replace", "keep"])
    def test_an_address_that_the_model_does_not_have(self, argument):
        wrong = "encoder.layers.1.feedforward.output"
        options = {"replace": {wrong: torch.zeros_like}, "keep": [wrong]}
        with (
            refused("unknown_address", wrong, f"did you mean {FEED_FORWARD}"),
            recording(small_model(), **{argument: options[argument]}),
        ):
            raise AssertionError("the recording began")

    def test_a_pattern_or_a_condition_that_nothing_passes(self):
        model = small_model()
        with (
            refused("unknown_address", "layers.7", "did you mean"),
            recording(model, keep=["encoder.layers.7.*"]),
        ):
            pass
        with refused("unknown_address", "keep"), recording(model, keep=lambda at: at.endswith(".logit")):
            pass
        with refused("unknown_address", "regard.addresses"), recording(model, keep="zzz"):
            pass

    @pytest.mark.parametrize("inference", [False, True])
    def test_a_function_that_never_replaces_anything(self, inference):
        model = small_model()
        with torch.inference_mode() if inference else nullcontext():
            with refused("nothing_replaced", "replace"), recording(model, lambda _, value: value):
                run(model)
            with recording(model, lambda at, value: value.mul_(0) if at == FEED_FORWARD else value):
                run(model)
            with recording(model, lambda _, value: value):
                pass  # nothing ran

    def test_a_part_that_did_not_run(self):
        model = small_model()
        memory = model.encode(random_pack(INPUT_LENGTHS))
        with (
            refused("nothing_replaced", FEED_FORWARD),
            recording(model, {FEED_FORWARD: torch.zeros_like, "decoder.output": torch.zeros_like}),
        ):
            model.decode(random_pack(OUTPUT_LENGTHS), memory)

    def test_an_error_inside_is_the_error_that_is_raised(self):
        with pytest.raises(ZeroDivisionError), recording(small_model(), lambda _, value: value) as seen:
            seen["x"] = 1 / 0

    def test_a_compiled_module(self):
        with (
            refused("compiled_model", "model"),
            recording(torch.compile(small_model(), backend="eager")),
        ):
            pass

    def test_a_module_that_is_compiled_elsewhere(self):
        model = small_model()
        compiled = torch.compile(model, backend="eager")
        with refused("compiled_model", "recording"), recording(model):
            torch.compile(model.decoder, backend="eager")  # in use by nobody
            compiled(random_pack(INPUT_LENGTHS).filled(128), random_pack(OUTPUT_LENGTHS).filled(128))
        part = small_model()
        part.encoder.compile(backend="eager")
        with refused("compiled_model", "encoder"), recording(part):
            run(part)

    def test_the_message(self):
        with pytest.raises(ShapeError) as error, recording(small_model(), keep="encoder.outputs"):
            pass
        assert str(error.value) == (
            "keep: expected addresses of the model, got encoder.outputs; did you mean encoder.output?"
        )
