"""The losses of the encoder alone: labels, weighted; and hidden tokens, as many as are counted."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard.config import ModelConfig, TrainingConfig
from regard.data.batches.examples import make_labelled_batch, make_plain_batch, make_tagged_batch
from regard.model.classifier import Classifier
from regard.tasks.objectives import BLANK, HIDDEN, HiddenTokens, OneLabel, SeveralLabels
from tests.data.stores import write

CLS, VOCABULARY = 3, 23
PLAIN = TrainingConfig(label_smoothing=0.1)


def classifier(n_labels, **sizes):
    torch.manual_seed(0)
    return Classifier(
        ModelConfig(
            architecture="encoder",
            vocab_size=VOCABULARY,
            n_labels=n_labels,
            d_model=12,
            n_heads=3,
            d_ff=16,
            encoder_layers=1,
            dropout=0.0,
            **sizes,
        )
    )


@pytest.fixture
def batch(tmp_path):
    store = write(
        tmp_path / "store", [([5, 6], [2]), ([7], [0]), ([8, 9, 10], [2])], sides=("inputs", "label")
    )
    return make_labelled_batch(store, np.arange(3), cls=CLS)


def test_the_loss_of_labels_is_weighted_cross_entropy(batch):
    model, weights = classifier(5), torch.tensor([0.5, 1.0, 2.0, 1.0, 1.0])
    smoothed, told = OneLabel(model, PLAIN, weights).train()(batch)
    each = F.cross_entropy(model(batch.inputs), batch.labels_B, label_smoothing=0.1, reduction="none")
    torch.testing.assert_close(smoothed, (each * weights[batch.labels_B]).sum())
    torch.testing.assert_close(told[1], F.cross_entropy(model(batch.inputs), batch.labels_B, reduction="sum"))
    assert not told.requires_grad


def test_labels_that_are_equally_likely_are_not_hits(batch):
    model = classifier(5)
    torch.nn.init.zeros_(model.output_probabilities.weight)
    torch.nn.init.zeros_(model.output_probabilities.bias)
    assert OneLabel(model, PLAIN, torch.ones(5)).eval()(batch)[1][2] == 0
    with torch.no_grad():
        model.output_probabilities.bias[2] = 1e-6
    assert OneLabel(model, PLAIN, torch.ones(5)).eval()(batch)[1][2] == 2


def test_an_idle_batch_counts_for_nothing(batch):
    idle = batch.idle()
    assert idle.n_targets == 0
    assert OneLabel(classifier(5), PLAIN, torch.ones(5))(idle)[1].tolist() == [0.0, 0.0, 0.0]


def test_tokens_are_hidden_in_training_only_others_each_time_and_never_the_first(batch):
    model, seen = classifier(5), []
    model.embed_inputs = lambda inputs: seen.append(inputs.ids_N) or Classifier.embed_inputs(model, inputs)
    objective = OneLabel(model, TrainingConfig(hidden_tokens=0.5), torch.ones(5))
    for _ in range(40):
        objective.train()(batch)
    trained, firsts = torch.stack(seen), batch.inputs.boundaries.starts_B
    hidden = trained == BLANK
    assert 0.3 < hidden[:, batch.inputs.ids_N != CLS].float().mean() < 0.7
    assert len(hidden.unique(dim=0)) > 10
    assert not hidden[:, firsts].any()
    assert torch.equal(trained[~hidden], batch.inputs.ids_N.expand_as(trained)[~hidden])
    objective.eval()(batch)
    assert torch.equal(seen[-1], batch.inputs.ids_N)


def divergence(one, other):
    """From one distribution to another, outcome by outcome."""
    return sum(p * (p / q).log() for p, q in zip(one, other, strict=True))


def answering_twice(objective, smoothing):
    """An objective whose model gives one answer and then another, which must agree; and the two answers."""
    model, answers = classifier(5), torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1))
    given = iter(answers)
    model.forward = lambda _: next(given)
    training = TrainingConfig(label_smoothing=smoothing, agreement=0.7)
    return objective(model, training, torch.ones(5)).train(), answers


def test_answers_that_must_agree_are_both_learned_from_and_drawn_together(batch):
    objective, answers = answering_twice(OneLabel, 0.1)
    smoothed, told = objective(batch)
    each = [F.cross_entropy(a, batch.labels_B, label_smoothing=0.1, reduction="sum") for a in answers]
    one, other = answers.softmax(dim=-1)
    apart = sum(divergence(p, q) + divergence(q, p) for p, q in zip(one, other, strict=True)) / 2
    torch.testing.assert_close(smoothed, sum(each) / 2 + 0.7 * apart)
    torch.testing.assert_close(told[1], F.cross_entropy(answers[0], batch.labels_B, reduction="sum"))


def test_decisions_that_must_agree_are_drawn_together_one_by_one(tagged):
    objective, answers = answering_twice(SeveralLabels, 0.0)
    smoothed, _ = objective(tagged)
    losses = [F.binary_cross_entropy_with_logits(a, tagged.labels_BY, reduction="sum") for a in answers]
    one, other = (torch.stack([a.sigmoid(), 1 - a.sigmoid()]).flatten(1).T for a in answers)
    apart = sum(divergence(p, q) + divergence(q, p) for p, q in zip(one, other, strict=True)) / 2
    torch.testing.assert_close(smoothed, sum(losses) / 2 + 0.7 * apart)


@pytest.fixture
def texts(tmp_path):
    rows = [[list(range(4, 4 + n))] for n in (11, 13, 17)]
    store = write(tmp_path / "store", rows, sides=("inputs",), vocab_size=VOCABULARY)
    return make_plain_batch(store, np.arange(3), cls=CLS, share=HIDDEN)


def test_as_many_tokens_are_hidden_as_count_and_never_the_first(texts):
    objective = HiddenTokens(classifier(VOCABULARY)).train()
    assert texts.n_targets == round(HIDDEN * 41)
    for seed in range(20):
        places = objective._chosen(texts, torch.Generator().manual_seed(seed))
        assert len(set(places.tolist())) == texts.n_targets
        assert not (texts.inputs.ids_N[places] == CLS).any()


def test_hidden_tokens_become_a_blank_another_or_stay():
    objective = HiddenTokens(classifier(VOCABULARY))
    ids = torch.full((10_000,), 9)
    hidden = objective._hidden(ids, torch.Generator().manual_seed(1))
    blank, kept = (hidden == 0).float().mean(), (hidden == 9).float().mean()
    assert blank == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1 + 0.1 / (VOCABULARY - 3), abs=0.02)
    assert int(hidden[hidden > 0].min()) >= 3


def test_a_validation_hides_the_same_tokens_each_time_and_training_others(texts):
    objective = HiddenTokens(classifier(VOCABULARY))
    first, second = (objective.eval()(texts)[1] for _ in range(2))
    assert torch.equal(first, second)
    first, second = (objective.train()(texts)[1] for _ in range(2))
    assert not torch.equal(first, second)


def test_guessing_an_idle_batch_counts_for_nothing(texts):
    assert HiddenTokens(classifier(VOCABULARY))(texts.idle())[1].tolist() == [0.0, 0.0, 0.0]


@pytest.fixture
def tagged(tmp_path):
    rows = [([5, 6], [2, 0]), ([7], [1]), ([8, 9, 10], [0, 1, 2])]
    store = write(tmp_path / "store", rows, sides=("inputs", "label"))
    return make_tagged_batch(store, np.arange(3), cls=CLS, n_labels=5)


def test_several_labels_of_a_text_are_as_many_decisions(tagged):
    assert tagged.labels_BY.tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert tagged.n_targets == 15
    model, weights = classifier(5), torch.tensor([0.5, 1.0, 2.0, 3.0, 1.0])
    smoothed, told = SeveralLabels(model, PLAIN, weights).train()(tagged)
    probs, right = torch.sigmoid(model(tagged.inputs)), tagged.labels_BY
    wanted = right * 0.9 + 0.05
    each = -(wanted * weights * probs.log() + (1 - wanted) * (1 - probs).log())
    torch.testing.assert_close(smoothed, each.sum())
    torch.testing.assert_close(told[1], F.binary_cross_entropy(probs, right, reduction="sum"))
    assert told[2] == ((probs > 0.5) == (right > 0)).sum()
    assert SeveralLabels(model, PLAIN, weights)(tagged.idle())[1].tolist() == [0.0, 0.0, 0.0]


def test_the_filler_is_never_guessed_and_no_token_is_hidden_that_does_not_count(tmp_path):
    rows = [[list(range(4, 4 + n))] for n in (11, 13, 17)]
    store = write(tmp_path / "filled", rows, sides=("inputs",), vocab_size=VOCABULARY)
    batch = make_plain_batch(store, np.arange(3), cls=CLS, share=HIDDEN, fill_to=(128,))
    assert (batch.n_targets, batch.n_places) == (round(HIDDEN * 41), round(HIDDEN * 128))
    real = batch.open_N.nonzero().ravel()
    assert len(real) == 41
    assert int(real.max()) == 43
    assert not (batch.inputs.ids_N[real] == CLS).any()
    places = HiddenTokens._chosen(batch, torch.Generator().manual_seed(1))
    assert len(places) == batch.n_places
    assert set(places[: batch.n_targets].tolist()) <= set(real.tolist())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_guessing_compiled_gives_the_loss_of_guessing_plainly(tmp_path):
    torch.compiler.reset()
    rows = [[list(range(4, 4 + n))] for n in (11, 13, 17)]
    store = write(tmp_path / "filled", rows, sides=("inputs",), vocab_size=VOCABULARY)
    batch = make_plain_batch(store, np.arange(3), cls=CLS, share=HIDDEN, fill_to=(256,))
    model = classifier(VOCABULARY, d_k=16, d_v=16).requires_grad_(False)  # FlexAttention has none on CPUs
    plain, compiled = HiddenTokens(model), HiddenTokens(model, compiled=True)
    compiled._fixed = torch.compile(compiled._of_tensors, backend="aot_eager", fullgraph=True)
    found = []
    for objective in (plain, compiled):
        torch.manual_seed(7)
        found.append(objective.train()(batch)[1])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
