"""What small models are taught, and that they learn it."""

from random import Random

import pytest
import torch

from regard.config import ModelConfig
from regard.experiments.small_models import (
    BOS,
    EOS,
    copying,
    exact,
    make_batch,
    numerals,
    plan,
    reversing,
    score,
    sorting,
    train,
)
from regard.model.transformer import Transformer
from regard.packing import pack


def small(vocab_size):
    torch.manual_seed(3)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    return Transformer(ModelConfig(vocab_size=vocab_size, dropout=0.0, **sizes))


@pytest.mark.parametrize(
    ("task", "output"),
    [(copying, list), (reversing, lambda x: x[::-1]), (sorting, sorted)],
)
def test_symbols_have_their_lengths_and_outputs(task, output):
    pairs = task((3, 7), symbols=5).draw(Random(1), 200)
    assert {len(source) for source, _ in pairs} == set(range(3, 8))
    assert {symbol for source, _ in pairs for symbol in source} == set(range(2, 7))
    assert all(target == output(source) for source, target in pairs)


def test_numerals_are_read_by_character():
    task = numerals(largest=99_999)
    pairs = task.draw(Random(1), 50)
    assert pairs != task.draw(Random(2), 50)
    assert max(id_ for pair in pairs for side in pair for id_ in side) < task.vocab_size
    held_out = {tuple(source) for source, _ in task.held_out(300)}
    assert not held_out & {tuple(source) for source, _ in task.draw(Random(3), 300)}


def test_a_batch_begins_and_ends_as_it_should():
    batch = make_batch([([5, 6], [6, 5]), ([7], [7])])
    assert batch.inputs.ids_N.tolist() == [5, 6, EOS, 7, EOS]
    assert batch.outputs.ids_N.tolist() == [BOS, 6, 5, BOS, 7]
    assert batch.targets_T.tolist() == [6, 5, EOS, 7, EOS]
    assert batch.n_targets == 5


TASK = copying((2, 3), symbols=3)


@pytest.fixture(scope="module")
def taught():
    model, steps = small(TASK.vocab_size), []
    losses = train(model, TASK, plan(60, 1e-2), seed=1, batch=16, after=steps.append)
    assert steps == list(range(1, 61))
    return model, losses


def test_a_model_learns_and_a_seed_repeats_it(taught):
    model, losses = taught
    before = score(small(TASK.vocab_size), TASK.held_out(50))
    assert score(model, TASK.held_out(50)).loss < 0.7 * before.loss
    assert train(small(TASK.vocab_size), TASK, plan(60, 1e-2), seed=1, batch=16) == losses


@pytest.mark.parametrize("training", [True, False])
def test_a_score_leaves_the_model_as_it_was(training):
    model = small(TASK.vocab_size).train(training)
    score(model, TASK.held_out(3))
    assert {module.training for module in model.modules()} == {training}


@torch.no_grad()
def test_an_output_is_right_if_all_of_it_is(taught):
    model, _ = taught
    pairs, right = TASK.held_out(40), 0
    for source, target in pairs:
        written = [BOS]
        while written[-1] != EOS and len(written) < len(target) + 3:  # the whole prefix anew, no cache
            written.append(int(model(pack([[*source, EOS]]), pack([written]))[-1].argmax()))
        right += written == [BOS, *target, EOS]
    assert 0 < right < len(pairs)
    assert exact(model, pairs) == right / len(pairs)
