"""Choices registered from outside work wherever the built-in ones do, or fall back with a warning."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from regard import registries
from regard.bundle import load_bundle, save_bundle
from regard.config import TrainingConfig
from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.errors import BundleError, ConfigError
from regard.exchange.ctranslate2.convert import inexpressible
from regard.loss import label_smoothed_cross_entropy
from regard.model.fast.kernels import has_fixed_shapes
from regard.model.fast.slots import empty_slots, step_in_slots
from regard.model.positional_encoding import Positions, rotate
from regard.model.similarity import DotProduct
from regard.model.taps import recording
from regard.packing import Boundaries, pack
from regard.training.optimizers.optimizer import Optimizer
from tests.look.traced import model_of, trace_of
from tests.model.small import (
    INPUT_LENGTHS,
    OUTPUT_LENGTHS,
    V,
    random_ids,
    random_pack,
    small_config,
    small_model,
)
from tests.parity.tolerances import assert_close
from tests.refusals import refused

BIASED = ["alibi", "t5-relative", "own"]


class Own(Positions):
    """All three hooks: vectors, rotation, and a learned bias that knows more than the distance."""

    turn = staticmethod(rotate)

    def __init__(self, config, *, causal):
        super().__init__(config, causal=causal)
        self.vectors = nn.Parameter(torch.randn(config.max_length, config.d_model))
        self.weight = nn.Parameter(torch.randn(config.n_heads))

    def forward(self, boundaries: Boundaries):
        return self.vectors[boundaries.positions_N]

    def score_bias(self, queries_L, keys_M):
        return self.weight[:, None, None] * torch.sin(queries_L[:, None] + 2.0 * keys_M)


class Manhattan(DotProduct):
    """A similarity that is no dot product."""

    is_dot_product = False

    def scores(self, q_BHLK, k_BHMK):
        return -(q_BHLK[:, :, :, None] - k_BHMK[:, :, None]).abs().sum(-1)


@pytest.fixture(autouse=True)
def _own_choices(monkeypatch):
    monkeypatch.setitem(registries.positions._chosen, "own", Own)
    monkeypatch.setitem(registries.similarities._chosen, "manhattan", Manhattan)


@pytest.mark.parametrize("positions", BIASED)
def test_a_bias_is_the_same_packed_recorded_and_step_by_step(positions):
    model = small_model(positions=positions)
    inputs, rows = random_ids(INPUT_LENGTHS), random_ids((6, 6, 6))
    with torch.no_grad():
        memory = model.encode(pack(inputs))
        whole = model(pack(inputs), pack(rows)).log_softmax(-1).view(3, 6, -1)
        with recording(model):
            assert_close(model(pack(inputs), pack(rows)).log_softmax(-1).view(3, 6, -1), whole)
        cache = model.start(memory, capacity=6)
        for i in range(6):
            log_probs, cache = model.step(torch.tensor([row[i] for row in rows]), cache)
            assert_close(log_probs, whole[:, i])


@pytest.mark.parametrize("positions", BIASED)
@pytest.mark.parametrize("similarity", ["scaled-dot", "manhattan"])
def test_a_bias_is_the_same_in_slots(positions, similarity):
    model = small_model(positions=positions, similarity=similarity)
    rows = torch.randint(V, (4, 5))
    with torch.no_grad():
        memory = model.encode(random_pack((7, 7)))
        cache = model.start(memory, capacity=5, beams=2)
        slots = empty_slots(model, 2, 2, 8, 7, memory.states_SD)
        for stored, given in zip(slots.memory, cache.memory, strict=True):
            stored.k_BHMK.copy_(given.k_BHMK)
            stored.v_BHMU.copy_(given.v_BHMU)
        own = torch.tensor([[0, 1], [0, 1]])
        for i in range(5):
            log_probs, cache = model.step(rows[:, i], cache)
            assert_close(step_in_slots(model, rows[:, i], own, slots), log_probs)
            slots.place_1.add_(1)


@pytest.mark.parametrize("positions", BIASED)
def test_gradients_of_a_bias_are_those_of_attention_written_out(positions):
    model = small_model(positions=positions)
    inputs, outputs = random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS)
    targets = torch.randint(V, (outputs.boundaries.n_tokens,))
    weights = [weight for weight in model.parameters() if weight.requires_grad]

    def gradients():
        states = model.decode(outputs, model.encode(inputs))
        loss = label_smoothed_cross_entropy(states, model.output_probabilities.weight, targets, 0.1)
        return torch.autograd.grad(loss.smoothed, weights)

    fast = gradients()
    with recording(model):
        written_out = gradients()
    for one, other in zip(fast, written_out, strict=True):
        assert_close(one, other)
    named = dict(zip([name for name, _ in model.named_parameters()], fast, strict=True))
    assert all(grad.abs().sum() > 0 for name, grad in named.items() if "positions" in name)


def test_distances_beyond_the_trained_length_share_t5_s_last_bucket():
    positions = registries.positions["t5-relative"](small_config(), causal=True)
    far = positions.score_bias(torch.tensor([5000]), torch.tensor([0, 1000, 4000]))
    assert torch.equal(far[:, 0, 0], positions.weight[31])
    assert torch.equal(far[:, 0, 0], far[:, 0, 2])


@pytest.mark.parametrize("positions", BIASED)
def test_a_model_folder_stores_the_name_and_gives_the_model_back(tmp_path, positions, monkeypatch):
    model = small_model(positions=positions, dtype=torch.float32)
    folder = save_bundle(tmp_path / "model", model)
    assert f'positions = "{positions}"' in (folder / "config.toml").read_text()
    loaded = load_bundle(folder).model.eval()
    inputs, outputs = random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS)
    with torch.no_grad():
        assert torch.equal(loaded(inputs, outputs), model(inputs, outputs))
    if positions == "own":
        monkeypatch.delitem(registries.positions._chosen, "own")
        with refused("unknown_choice", "own", "import the module", str(folder), error=BundleError):
            load_bundle(folder)


@pytest.mark.parametrize("positions", BIASED)
def test_the_engine_decodes_as_the_model_does(positions):
    model = small_model(positions=positions, dtype=torch.float32, max_length=40)
    engine = TorchEngine([model], bos=1, eos=0)
    ((best, *_),) = engine.decode([Request(ids=(5, 6, 7))], Search(beam_size=1, extra_length=5))
    with torch.no_grad():
        logits = model(pack([[5, 6, 7, 0]]), pack([[1, *best.ids]]))
    likeliest = logits.argmax(-1).tolist()
    assert best.ids
    assert likeliest[: len(best.ids)] == list(best.ids)


@pytest.mark.parametrize("settings", [{"positions": "own"}, {"similarity": "manhattan"}])
def test_what_a_trace_shows_is_what_ran(settings):
    model = model_of(dtype=torch.float64, **settings)
    trace = trace_of(model)
    with torch.no_grad(), recording(model) as seen:
        model(*(pack([side.ids]) for side in (trace.inputs, trace.outputs)))
    blocks = {
        "encoder": "encoder.layers.0.multi_head_attention",
        "decoder": "decoder.layers.1.masked_multi_head_attention",
        "cross": "decoder.layers.1.multi_head_attention",
    }
    for kind, block in blocks.items():
        layer = int(block.split(".")[2])
        for head in range(3):
            expected = seen[f"{block}.weights"][0, head]
            np.testing.assert_allclose(trace.attention(kind, layer, head), expected, atol=1e-9)
            steps = {step.name: step.values for step in trace.walk(kind, layer, head, 1)}
            np.testing.assert_allclose(steps["weights"], expected[1], atol=1e-9)
    json.dumps([step.formula for step in trace.walk("encoder", 0, 0, 0)])


def test_choices_without_fixed_shapes_fall_back_and_say_so(monkeypatch):
    assert has_fixed_shapes(small_config(positions="own"), "compiled steps")
    with pytest.warns(UserWarning, match="manhattan.*compiled steps"):
        assert not has_fixed_shapes(small_config(similarity="manhattan"), "compiled steps")
    monkeypatch.setattr(Own, "fixed_shapes", False)
    with pytest.warns(UserWarning, match="own.*captured steps"):
        assert not has_fixed_shapes(small_config(positions="own"), "captured steps")


@pytest.mark.parametrize(
    "settings", [{"positions": "own"}, {"positions": "alibi"}, {"similarity": "manhattan"}]
)
def test_ctranslate2_expresses_only_what_it_lists(settings):
    ((name, value),) = settings.items()
    (problem,) = inexpressible(small_config(d_k=10, d_v=10, **settings))
    assert f"model.{name}" in problem
    assert value in problem


def test_an_optimizer_that_cannot_skip_on_the_device_skips_on_the_host(monkeypatch):
    def sgd(model, _config):
        return [torch.optim.SGD(model.parameters(), lr=0.0)]

    with refused("unknown_choice", "sgd", error=ConfigError):
        TrainingConfig(optimizer="sgd")
    monkeypatch.setitem(registries.optimizers._chosen, "sgd", sgd)
    module = nn.Linear(2, 2)
    optimizer = Optimizer(module, TrainingConfig(optimizer="sgd"))
    module(torch.ones(2)).sum().backward()
    before = module.weight.detach().clone()
    optimizer.step(0.1, torch.tensor(1.0))
    assert torch.equal(module.weight, before)
    optimizer.step(0.1, torch.tensor(0.0))
    assert not torch.equal(module.weight, before)
