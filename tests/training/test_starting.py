"""What a model takes over from the one that it starts from."""

import pytest
import torch

from regard.bundle import save_bundle
from regard.model.build import build
from regard.training.starting import Start
from tests.serve.single_stack_models import save_single_stack_models

BEGUN = ("bad", "good")


@pytest.fixture
def start(tmp_path):
    return Start.of(save_single_stack_models(tmp_path, BEGUN) / "labeller")


@pytest.mark.parametrize(("labels", "kept"), [(BEGUN, True), (("ham", "spam"), False), (BEGUN[::-1], False)])
def test_an_output_layer_is_taken_over_only_for_the_same_labels_in_the_same_order(start, labels, kept):
    model = build(start.bundle.config)
    start.give(model, labels)
    own, taken = start.bundle.model.state_dict(), model.state_dict()
    same = {name for name in own if torch.equal(own[name], taken[name])}
    # What is drawn as noughts and ones is the same without being taken over.
    assert ("output_probabilities.weight" in same) == kept
    assert {name for name in own if not name.startswith("output_probabilities.")} <= same


def test_subwords_that_are_guessed_have_no_names_and_are_taken_over(tmp_path, start):
    save_bundle(tmp_path / "guesser", start.bundle.model, subwords=start.subwords)
    guesser = Start.of(tmp_path / "guesser")
    model = build(guesser.bundle.config)
    guesser.give(model)
    taken = model.state_dict()["output_probabilities.weight"]
    assert torch.equal(taken, start.bundle.model.state_dict()["output_probabilities.weight"])


def test_what_was_told_apart_has_names_and_what_was_guessed_has_none(tmp_path, start):
    save_bundle(tmp_path / "guesser", start.bundle.model, subwords=start.subwords)
    assert (start.named_labels, Start.of(tmp_path / "guesser").named_labels) == (BEGUN, ())
