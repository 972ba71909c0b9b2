import pytest
import torch
from torch.nn import functional as F

from regard.data.batches import make_pairs_batch
from regard.model.transformer import Transformer
from regard.train.optimizer import make_optimizer, moments, restore_moments
from regard.train.step import DivergedError, batch_loss, evaluate, train_step
from tests.train.copying import BOS, EOS, backwards, config


@pytest.fixture
def parts(tmp_path):
    settings = config("model.dropout=0.0", "training.clip_norm=1.0")
    torch.manual_seed(0)
    model = Transformer(settings.model)
    store = backwards(tmp_path / "store", 40, 3)
    batches = [make_pairs_batch(store, store_indices, bos=BOS, eos=EOS) for store_indices in halves(40)]
    return model, make_optimizer(model, settings.training), batches, settings.training


def halves(n):
    return torch.arange(n).numpy()[: n // 2], torch.arange(n).numpy()[n // 2 :]


def weights(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_the_loss_of_a_batch_is_cross_entropy_on_the_logits(parts):
    model, _, (batch, _), _ = parts
    expected = F.cross_entropy(
        model(batch.inputs, batch.outputs), batch.targets_T, label_smoothing=0.1, reduction="sum"
    )
    torch.testing.assert_close(batch_loss(model, batch, 0.1).smoothed, expected)


def test_two_batches_in_one_step_count_as_one_large_batch(parts, tmp_path):
    model, optimizer, batches, training = parts
    whole = make_pairs_batch(backwards(tmp_path / "again", 40, 3), torch.arange(40).numpy(), bos=BOS, eos=EOS)
    start = weights(model)
    apart = train_step(model, optimizer, batches, 1e-3, training)
    after = weights(model)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(start[name])
    together = train_step(model, make_optimizer(model, training), [whole], 1e-3, training)
    assert apart.n_tokens == together.n_tokens
    assert apart.loss == pytest.approx(together.loss, rel=1e-5)
    for name, value in model.named_parameters():
        torch.testing.assert_close(value.detach(), after[name], atol=2e-6, rtol=1e-4)


def test_a_gradient_that_is_no_number_stops_the_run_and_leaves_the_weights(parts):
    model, optimizer, batches, training = parts
    with torch.no_grad():
        model.encoder.layers[0].feed_forward.widen.bias[0] = float("inf")
    before = weights(model)
    with pytest.raises(DivergedError, match="learning_rate"):
        train_step(model, optimizer, batches, 1e-3, training)
    for name, value in model.named_parameters():
        assert torch.equal(value.detach(), before[name])
        assert value.grad is None


def test_evaluating_uses_no_dropout_and_leaves_the_mode_as_it_was(parts):
    _, _, batches, _ = parts
    model = Transformer(config("model.dropout=0.5").model).train()
    first, second = evaluate(model, batches), evaluate(model, batches)
    assert first == second
    assert model.training
    assert 0 <= first.accuracy <= 1


def test_an_optimizer_goes_on_from_its_saved_moments(parts):
    model, optimizer, batches, training = parts
    train_step(model, optimizer, batches, 1e-3, training)
    saved, start = {k: v.clone() for k, v in moments(model, optimizer).items()}, weights(model)
    train_step(model, optimizer, batches, 1e-3, training)
    expected = weights(model)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(start[name])
    fresh = make_optimizer(model, training)
    restore_moments(model, fresh, saved)
    train_step(model, fresh, batches, 1e-3, training)
    for name, value in model.named_parameters():
        assert torch.equal(value.detach(), expected[name])
