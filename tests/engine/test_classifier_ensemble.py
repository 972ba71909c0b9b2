"""Several classifiers asked together: each reads for itself, and their probabilities are averaged."""

import numpy as np
import pytest
import torch

import regard
from regard.config import ModelConfig, TaskConfig
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.refusals import refused
from tests.serve.single_stack_models import SHAPE, save_single_stack_models

TEXTS = ["the cat sat", "a dog sat on the mat", "the mat"]


def saved(folder, seed, labels, texts, *, size=300, **more):
    """A classifier of its own vocabulary that knows nothing yet, but is sure of it."""
    torch.manual_seed(seed)
    subwords = Subwords(learn_subwords(texts * 20, size))
    shape = {**SHAPE, **more.pop("shape", {})}
    config = ModelConfig(
        architecture="encoder", vocab_size=subwords.vocab_size, n_labels=len(labels), **shape
    )
    model = regard.Classifier(config)
    with torch.no_grad():
        model.output_probabilities.weight.mul_(8)
    regard.save_bundle(folder, model, subwords=subwords.model, labels=labels, **more)
    return folder


@pytest.fixture
def members(tmp_path):
    one = saved(tmp_path / "one", 1, ["bad", "good", "so-so"], TEXTS)
    # Another vocabulary, another order of the labels.
    other = saved(tmp_path / "other", 2, ["good", "so-so", "bad"], ["dogs and cats", *TEXTS], size=310)
    return [one, other]


def test_answers_are_the_mean_of_each_ones_by_the_names_of_labels(members):
    each = [regard.load(folder).classify(TEXTS) for folder in members]
    together = regard.load(members).classify(TEXTS)
    for text, found, *alone in zip(TEXTS, together, *each, strict=True):
        assert found.text == text
        for label, probability in found.probabilities.items():
            assert probability == pytest.approx(np.mean([one.probabilities[label] for one in alone]))
        assert list(found.probabilities) == sorted(found.probabilities, key=lambda x: -found.probabilities[x])
        assert (found.label, found.labels) == (next(iter(found.probabilities)), (found.label,))
    assert any(one.label != two.label for one, two in zip(*each, strict=True)), "they must not agree anyway"


def test_one_twice_is_as_sure_as_once(members):
    assert regard.load([members[0]] * 2).classify(TEXTS) == regard.load(members[0]).classify(TEXTS)


def test_several_labels_each_have_a_mean_of_their_own(tmp_path):
    tags = TaskConfig(name="classify", label_separator="|")
    folders = [saved(tmp_path / str(i), i, ["art", "sport"], TEXTS, task=tags) for i in range(2)]
    each = [regard.load(folder).classify(TEXTS[0]) for folder in folders]
    mean = {label: np.mean([one.probabilities[label] for one in each]) for label in ("art", "sport")}
    found = regard.load(folders).classify(TEXTS[0], threshold=0.4)
    assert found.probabilities == pytest.approx(mean)
    assert set(found.labels) == {label for label, probability in mean.items() if probability >= 0.4}


def test_a_text_is_cut_as_the_shortest_sighted_cuts_it(tmp_path):
    far = saved(tmp_path / "far", 1, ["0", "1"], TEXTS, shape={"max_length": 64})
    near = saved(tmp_path / "near", 2, ["0", "1"], TEXTS, shape={"max_length": 16})
    long = "the cat sat " * 10
    cuts = [regard.load(folder).classify(long, too_long="cut").cut for folder in (far, near)]
    assert cuts[0] == 0 < cuts[1]
    assert regard.load([far, near]).classify(long, too_long="cut").cut == cuts[1]
    with refused("too_long", "text 1"):
        regard.load([far, near]).classify(long)


def test_strange_characters_are_those_of_any(members):
    unseen = [set(regard.load(folder).classify("the 猫 cats").unseen) for folder in members]
    assert set(regard.load(members).classify("the 猫 cats").unseen) == unseen[0] | unseen[1]


def test_those_who_tell_other_things_apart_are_not_asked_together(members, tmp_path):
    odd = saved(tmp_path / "odd", 3, ["ham", "spam", "eggs"], TEXTS)
    with refused("ensemble_mismatch", "odd", str(members[0])):
        regard.load([*members, odd]).classify("the cat")
    tags = TaskConfig(name="classify", label_separator="|")
    several = saved(tmp_path / "several", 3, ["bad", "good", "so-so"], TEXTS, task=tags)
    with refused("ensemble_mismatch", "several"):
        regard.load([members[0], several]).classify("the cat")


def test_models_of_other_tasks_are_refused(members, tmp_path):
    writer = save_single_stack_models(tmp_path, ["0", "1"]) / "writer"
    with refused("ensemble_mismatch", "writer: its task is generate", "one is classify"):
        regard.load([members[0], writer])
    with refused("wrong_task", "generate"):
        regard.load([writer, writer]).classify("the cat")
    with refused("ensemble", "2 models"):
        regard.load([writer, writer]).generate("the cat")
    with refused("ensemble", "2 models"):
        regard.load(members).look("the cat")
