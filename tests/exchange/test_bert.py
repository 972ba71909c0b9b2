"""A BERT that was taken in says what `transformers` says, of the same tokens; and goes out again."""

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification, BertTokenizer

import regard
from regard.bundle import load_bundle, save_bundle
from regard.config import TaskConfig
from regard.errors import ConfigError
from regard.exchange.huggingface import import_model, write_huggingface
from regard.packing import pack
from tests.exchange.folders import small_folder
from tests.exchange.foreign import ENGLISH, bert, sentences
from tests.refusals import refused

TEXTS = [*sentences(ENGLISH, 5, seed=5), "Unheard-of Wörds, 猫!", "a " * 60]


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    theirs = bert(folder / "theirs", "BertForSequenceClassification")
    import_model(folder / "theirs", folder / "ours")
    return theirs, folder / "ours", BertTokenizer.from_pretrained(folder / "theirs")


def drawn(model, count=5, longest=40):
    random = np.random.default_rng(1)
    return [
        random.integers(0, model.config.vocab_size, random.integers(1, longest)).tolist()
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    "changes",
    [{}, {"hidden_act": "gelu_new", "num_hidden_layers": 1, "layer_norm_eps": 1e-3}, {"hidden_act": "relu"}],
)
def test_the_logits_of_a_classifier_are_those_of_transformers(tmp_path, changes):
    theirs = bert(tmp_path / "theirs", "BertForSequenceClassification", old=True, **changes)
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    texts = drawn(theirs)
    with torch.no_grad():
        expected = [theirs(torch.tensor([ids])).logits[0] for ids in texts]
        torch.testing.assert_close(ours(pack(texts)), torch.stack(expected), atol=1e-4, rtol=0)


def aged(model, folder):
    """The weights as the first checkpoints have them: other names, and parts that only pretraining needs."""
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight
        for name, weight in model.state_dict().items()
    }
    width = model.config.hidden_size
    old |= {
        "bert.pooler.dense.weight": torch.ones(width, width), "bert.pooler.dense.bias": torch.ones(width),
        "cls.seq_relationship.weight": torch.ones(2, width), "cls.seq_relationship.bias": torch.ones(2),
        "bert.embeddings.position_ids": torch.arange(41)[None],
    }  # fmt: skip
    (folder / "model.safetensors").unlink()
    torch.save(old, folder / "pytorch_model.bin")


@pytest.mark.parametrize("old", [False, True])
def test_the_guesses_of_hidden_words_are_those_of_transformers(tmp_path, old):
    theirs = bert(tmp_path / "theirs", "BertForMaskedLM")
    if old:
        aged(theirs, tmp_path / "theirs")
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    (ids,) = drawn(theirs, count=1)
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0]
        found = ours.output_probabilities(ours.label_head(ours.encode(pack([ids]))))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("old", [False, True])
def test_the_labels_of_a_masked_model_are_the_words_of_its_vocabulary(tmp_path, old):
    bert(tmp_path / "theirs", "BertForMaskedLM", old=old)
    folder = import_model(tmp_path / "theirs", tmp_path / "ours")
    tokenizer = BertTokenizer.from_pretrained(tmp_path / "theirs")
    model = regard.load(folder, device="cpu")
    assert list(model.labels) == tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert model.classify("the cat [MASK] on the mat").label in tokenizer.get_vocab()


def test_ids_without_a_word_are_labelled_by_number(tmp_path):
    theirs = bert(tmp_path / "theirs", "BertForMaskedLM")
    n = theirs.config.vocab_size
    theirs.resize_token_embeddings(n + 2)
    theirs.save_pretrained(tmp_path / "theirs")
    model = regard.load(import_model(tmp_path / "theirs", tmp_path / "ours"), device="cpu")
    assert model.labels[-3:][1:] == (f"<{n}>", f"<{n + 1}>")


def test_a_bare_model_hands_up_the_same_states_and_knows_no_label(tmp_path):
    theirs = bert(tmp_path / "theirs", "BertModel")
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    (ids,) = drawn(theirs, count=1)
    with torch.no_grad():
        expected = theirs(torch.tensor([ids]))
        states = ours.encode(pack([ids]))
        torch.testing.assert_close(states, expected.last_hidden_state[0], atol=1e-4, rtol=0)
        torch.testing.assert_close(ours.label_head(states[:1]), expected.pooler_output, atol=1e-4, rtol=0)
        assert ours(pack([ids])).tolist() == [[0.0, 0.0]]


def test_texts_are_labelled_as_transformers_does(taken):
    theirs, ours, tokenizer = taken
    model = regard.load(ours, device="cpu")
    for text, found in zip(TEXTS, model.classify(TEXTS, too_long="cut"), strict=True):
        read = tokenizer(text, return_tensors="pt", truncation=True, max_length=41)
        with torch.no_grad():
            probabilities = theirs(**read).logits.softmax(-1)[0]
        expected = dict(zip(("bad", "fine", "good"), probabilities.tolist(), strict=True))
        assert found.probabilities == pytest.approx(expected, abs=1e-4)
    assert model.look(TEXTS[0]).inputs[-1].piece == "[SEP]"


@pytest.mark.parametrize("old", [False, True])
def test_tokens_are_those_of_the_tokenizer(tmp_path, old):
    bert(tmp_path / "theirs", "BertForSequenceClassification", old=old)
    subwords = regard.load(import_model(tmp_path / "theirs", tmp_path / "ours")).subwords
    tokenizer = BertTokenizer.from_pretrained(tmp_path / "theirs")
    for text, ids in zip(TEXTS, subwords.encode(TEXTS), strict=True):
        assert [subwords.cls_id, *ids.tolist(), *subwords.closing] == tokenizer(text)["input_ids"]
    assert subwords.decode(subwords.encode_one("the dogs")) == "the dogs"
    assert "".join(subwords.pieces(subwords.encode_one("the dogs"))) == "▁the▁dogs"


def test_several_labels_come_in_as_sigmoids_and_go_out_again(tmp_path):
    kind = {"problem_type": "multi_label_classification", "id2label": {0: "bad", 1: "fine|so-so", 2: "good"}}
    theirs = bert(tmp_path / "theirs", "BertForSequenceClassification", **kind)
    ours = import_model(tmp_path / "theirs", tmp_path / "ours")
    texts = drawn(theirs)
    with torch.no_grad():
        expected = torch.stack([theirs(torch.tensor([ids])).logits[0] for ids in texts])
        torch.testing.assert_close(load_bundle(ours).model(pack(texts)), expected, atol=1e-4, rtol=0)
    tokenizer = BertTokenizer.from_pretrained(tmp_path / "theirs")
    model = regard.load(ours, device="cpu")
    assert model.task.label_separator == "||"  # a label holds the usual one
    for text, found in zip(TEXTS[:3], model.classify(TEXTS[:3], threshold=0.4), strict=True):
        with torch.no_grad():
            probabilities = theirs(**tokenizer(text, return_tensors="pt")).logits.sigmoid()[0]
        named = dict(zip(("bad", "fine|so-so", "good"), probabilities.tolist(), strict=True))
        assert found.probabilities == pytest.approx(named, abs=1e-4)
        assert {*found.labels} == {label for label, probable in named.items() if probable >= 0.4}
    assert write_huggingface(ours, tmp_path / "back").difference < 1e-4
    back = BertForSequenceClassification.from_pretrained(tmp_path / "back")
    assert back.config.problem_type == "multi_label_classification"
    with torch.no_grad():
        again = torch.stack([back(torch.tensor([ids])).logits[0] for ids in texts])
    torch.testing.assert_close(again, expected, atol=1e-4, rtol=0)


def test_that_a_text_may_have_several_labels_goes_along(taken, tmp_path):
    bundle = load_bundle(taken[1])
    task, labels = TaskConfig(name="classify", label_separator="|"), ["bad", "fine", "good"]
    save_bundle(tmp_path / "tags", bundle.model, subwords=bundle.subwords, labels=labels, task=task)
    write_huggingface(tmp_path / "tags", tmp_path / "theirs")
    theirs = BertForSequenceClassification.from_pretrained(tmp_path / "theirs")
    assert theirs.config.problem_type == "multi_label_classification"


def test_what_was_taken_in_goes_out_as_it_came(taken, tmp_path):
    theirs, ours, tokenizer = taken
    assert write_huggingface(ours, tmp_path / "back").difference < 1e-4
    back = BertForSequenceClassification.from_pretrained(tmp_path / "back")
    assert back.config.id2label == theirs.config.id2label
    again = BertTokenizer.from_pretrained(tmp_path / "back")
    for text in TEXTS[:-1]:
        read = tokenizer(text, return_tensors="pt")
        assert again(text)["input_ids"] == read["input_ids"][0].tolist()
        with torch.no_grad():
            torch.testing.assert_close(back(**read).logits, theirs(**read).logits, atol=1e-4, rtol=0)


def test_a_classifier_that_is_no_bert_is_refused_with_every_difference(tmp_path):
    ours = small_folder(tmp_path, architecture="encoder", n_labels=3, norm="rms")
    with refused("inexpressible_setting", str(ours), error=ConfigError) as caught:
        write_huggingface(ours, tmp_path / "out")
    names = {problem.split()[0].removeprefix("model.") for problem in caught.value.problems}
    assert names == {"norm", "positions", "scale_embeddings", "embedding_norm", "label_head"}
