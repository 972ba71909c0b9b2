"""One step: what is learned from it, whatever the batch was cut into, and when nothing must be."""

import pytest
import torch
from torch.nn import functional as F

from regard.data.batches.examples import make_pairs_batch
from regard.model.transformer import Transformer
from regard.tasks.objectives import NextToken
from regard.training.distributed.world import World
from regard.training.learner import evaluate, train_step
from regard.training.optimizers.optimizer import Optimizer
from tests.training.copying import BOS, EOS, backwards, config

CPU = torch.device("cpu")


@pytest.fixture
def parts(tmp_path):
    settings = config("model.dropout=0.0", "training.clip_norm=1.0")
    torch.manual_seed(0)
    model = Transformer(settings.model)
    store = backwards(tmp_path / "store", 40, 3)
    batches = [make_pairs_batch(store, store_indices, bos=BOS, eos=EOS) for store_indices in halves(40)]
    return NextToken(model, 0.1).train(), Optimizer(model, settings.training), batches, settings.training


def step(objective, optimizer, batches, training):
    n_tokens = sum(batch.n_tokens[1] for batch in batches)
    return train_step(objective, optimizer, batches, n_tokens, 1e-3, training, World(CPU)).read()


def halves(n):
    return torch.arange(n).numpy()[: n // 2], torch.arange(n).numpy()[n // 2 :]


def weights(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_the_loss_of_a_batch_is_cross_entropy_on_the_logits(parts):
    objective, _, (batch, _), _ = parts
    expected = F.cross_entropy(
        objective.model(batch.inputs, batch.outputs), batch.targets_T, label_smoothing=0.1, reduction="sum"
    )
    smoothed, told = objective(batch)
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(told[0], expected)
    assert smoothed.requires_grad
    assert not told.requires_grad


def test_two_batches_in_one_step_count_as_one_large_batch(parts, tmp_path):
    objective, optimizer, batches, training = parts
    model = objective.model
    whole = make_pairs_batch(backwards(tmp_path / "again", 40, 3), torch.arange(40).numpy(), bos=BOS, eos=EOS)
    start = weights(model)
    apart, *_ = step(objective, optimizer, batches, training)
    after = weights(model)
    put(model, start)
    together, *_ = step(objective, Optimizer(model, training), [whole], training)
    assert apart.n_targets == together.n_targets
    assert apart.loss == pytest.approx(together.loss, rel=1e-5)
    for name, value in model.named_parameters():
        torch.testing.assert_close(value.detach(), after[name], atol=2e-6, rtol=1e-4)


def put(model, values):
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(values[name])


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_a_gradient_that_is_no_number_changes_nothing_and_is_told(parts, name):
    objective, _, batches, _ = parts
    training = config(f"training.optimizer={name}", "training.clip_norm=1.0").training
    optimizer = Optimizer(objective.model, training)
    step(objective, optimizer, batches, training)
    with torch.no_grad():
        objective.model.encoder.layers[0].feed_forward.widen.bias[0] = float("inf")
    before, moments = weights(objective.model), copied(optimizer.moments(objective.model))
    *_, norm = step(objective, optimizer, batches, training)
    assert not torch.isfinite(torch.tensor(norm))
    for weight, value in objective.model.named_parameters():
        assert torch.equal(value.detach(), before[weight])
        assert value.grad is None
    for key, value in optimizer.moments(objective.model).items():
        assert torch.equal(value, moments[key]), key


def copied(tensors):
    return {name: tensor.clone() for name, tensor in tensors.items()}


def test_evaluating_uses_no_dropout_and_leaves_the_mode_as_it_was(parts):
    _, _, batches, _ = parts
    objective = NextToken(Transformer(config("model.dropout=0.5").model), 0.1).train()
    first, second = evaluate(objective, batches, CPU), evaluate(objective, batches, CPU)
    assert first == second
    assert first.smoothed == pytest.approx(first.nll)
    assert objective.training
    assert objective.model.training
    assert 0 <= first.accuracy <= 1


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_an_optimizer_goes_on_from_its_saved_moments(parts, name):
    objective, _, batches, _ = parts
    model, training = objective.model, config(f"training.optimizer={name}").training
    optimizer = Optimizer(model, training)
    step(objective, optimizer, batches, training)
    saved, start = copied(optimizer.moments(model)), weights(model)
    step(objective, optimizer, batches, training)
    expected = weights(model)
    put(model, start)
    fresh = Optimizer(model, training)
    fresh.restore(model, saved)
    step(objective, fresh, batches, training)
    for weight, value in model.named_parameters():
        assert torch.equal(value.detach(), expected[weight])
