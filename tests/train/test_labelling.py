"""The losses of the encoder alone: labels, weighted; and hidden tokens, as many as are counted."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard.config import ModelConfig
from regard.data.examples import make_labelled_batch, make_plain_batch, make_tagged_batch
from regard.model.classifier import Classifier
from regard.train.guessing import HIDDEN, GuessingObjective
from regard.train.labelling import LabelObjective, TagObjective
from tests.data.stores import write

CLS, VOCABULARY = 3, 23


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
    smoothed, told = LabelObjective(model, 0.1, weights).train()(batch)
    each = F.cross_entropy(model(batch.inputs), batch.labels_B, label_smoothing=0.1, reduction="none")
    torch.testing.assert_close(smoothed, (each * weights[batch.labels_B]).sum())
    torch.testing.assert_close(told[1], F.cross_entropy(model(batch.inputs), batch.labels_B, reduction="sum"))
    assert not told.requires_grad


def test_an_idle_batch_counts_for_nothing(batch):
    idle = batch.idle()
    assert idle.n_targets == 0
    assert LabelObjective(classifier(5), 0.1, torch.ones(5))(idle)[1].tolist() == [0.0, 0.0, 0.0]


@pytest.fixture
def texts(tmp_path):
    rows = [[list(range(4, 4 + n))] for n in (11, 13, 17)]
    store = write(tmp_path / "store", rows, sides=("inputs",), vocab_size=VOCABULARY)
    return make_plain_batch(store, np.arange(3), cls=CLS, share=HIDDEN)


def test_as_many_tokens_are_hidden_as_count_and_never_the_first(texts):
    objective = GuessingObjective(classifier(VOCABULARY)).train()
    assert texts.n_targets == round(HIDDEN * 41)
    for seed in range(20):
        places = objective._chosen(texts, torch.Generator().manual_seed(seed))
        assert len(set(places.tolist())) == texts.n_targets
        assert not (texts.inputs.ids_N[places] == CLS).any()


def test_hidden_tokens_become_a_blank_another_or_stay():
    objective = GuessingObjective(classifier(VOCABULARY))
    ids = torch.full((10_000,), 9)
    hidden = objective._hidden(ids, torch.Generator().manual_seed(1))
    blank, kept = (hidden == 0).float().mean(), (hidden == 9).float().mean()
    assert blank == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1 + 0.1 / (VOCABULARY - 3), abs=0.02)
    assert int(hidden[hidden > 0].min()) >= 3


def test_a_validation_hides_the_same_tokens_each_time_and_training_others(texts):
    objective = GuessingObjective(classifier(VOCABULARY))
    first, second = (objective.eval()(texts)[1] for _ in range(2))
    assert torch.equal(first, second)
    first, second = (objective.train()(texts)[1] for _ in range(2))
    assert not torch.equal(first, second)


def test_guessing_an_idle_batch_counts_for_nothing(texts):
    assert GuessingObjective(classifier(VOCABULARY))(texts.idle())[1].tolist() == [0.0, 0.0, 0.0]


@pytest.fixture
def tagged(tmp_path):
    rows = [([5, 6], [2, 0]), ([7], [1]), ([8, 9, 10], [0, 1, 2])]
    store = write(tmp_path / "store", rows, sides=("inputs", "label"))
    return make_tagged_batch(store, np.arange(3), cls=CLS, n_labels=5)


def test_several_labels_of_a_text_are_as_many_decisions(tagged):
    assert tagged.labels_BC.tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert tagged.n_targets == 15
    model, weights = classifier(5), torch.tensor([0.5, 1.0, 2.0, 3.0, 1.0])
    smoothed, told = TagObjective(model, 0.1, weights).train()(tagged)
    probs, right = torch.sigmoid(model(tagged.inputs)), tagged.labels_BC
    wanted = right * 0.9 + 0.05
    each = -(wanted * weights * probs.log() + (1 - wanted) * (1 - probs).log())
    torch.testing.assert_close(smoothed, each.sum())
    torch.testing.assert_close(told[1], F.binary_cross_entropy(probs, right, reduction="sum"))
    assert told[2] == ((probs > 0.5) == (right > 0)).sum()
    assert TagObjective(model, 0.1, weights)(tagged.idle())[1].tolist() == [0.0, 0.0, 0.0]


def test_the_filler_is_never_guessed_and_no_token_is_hidden_that_does_not_count(tmp_path):
    rows = [[list(range(4, 4 + n))] for n in (11, 13, 17)]
    store = write(tmp_path / "filled", rows, sides=("inputs",), vocab_size=VOCABULARY)
    batch = make_plain_batch(store, np.arange(3), cls=CLS, share=HIDDEN, fill_to=(128,))
    assert (batch.n_targets, batch.n_places) == (round(HIDDEN * 41), round(HIDDEN * 128))
    real = batch.open_N.nonzero().ravel()
    assert len(real) == 41
    assert int(real.max()) == 43
    assert not (batch.inputs.ids_N[real] == CLS).any()
    places = GuessingObjective._chosen(batch, torch.Generator().manual_seed(1))
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
    plain, compiled = GuessingObjective(model), GuessingObjective(model, compiled=True)
    compiled._fixed = torch.compile(compiled._of_tensors, backend="aot_eager", fullgraph=True)
    found = []
    for objective in (plain, compiled):
        torch.manual_seed(7)
        found.append(objective.train()(batch)[1])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
