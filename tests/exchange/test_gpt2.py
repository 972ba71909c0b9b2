"""A GPT-2 that was taken in continues texts as `transformers` does; and goes out again."""

import pytest
import torch
from transformers import GPT2LMHeadModel, GPT2Tokenizer

import regard
from regard.bundle import load_bundle
from regard.errors import ConfigError
from regard.exchange.huggingface import import_model, write_huggingface
from regard.packing import pack
from tests.exchange.folders import small_folder
from tests.exchange.foreign import ENGLISH, gpt2, sentences
from tests.refusals import refused

TEXTS = [*sentences(ENGLISH, 5, seed=5), "Zürich, 猫  !\n\n42", " the"]


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    theirs = gpt2(folder / "theirs")
    import_model(folder / "theirs", folder / "ours")
    return theirs, folder / "ours", GPT2Tokenizer.from_pretrained(folder / "theirs")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"old": True},
        {"tie_word_embeddings": False, "n_inner": 29, "activation_function": "relu", "n_layer": 1},
    ],
)
def test_logits_are_those_of_transformers(tmp_path, changes):
    theirs = gpt2(tmp_path / "theirs", **changes)
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    texts = [torch.randint(0, theirs.config.vocab_size, (n,)).tolist() for n in (1, 17, 40)]
    with torch.no_grad():
        found = ours(pack(texts)).split([len(ids) for ids in texts])
        for ids, logits in zip(texts, found, strict=True):
            torch.testing.assert_close(logits, theirs(torch.tensor([ids])).logits[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("old", [False, True])
def test_tokens_are_those_of_the_tokenizer(tmp_path, old):
    gpt2(tmp_path / "theirs", old=old)
    subwords = regard.load(import_model(tmp_path / "theirs", tmp_path / "ours")).subwords
    tokenizer = GPT2Tokenizer.from_pretrained(tmp_path / "theirs")
    for text, ids in zip(TEXTS, subwords.encode(TEXTS), strict=True):
        assert ids.tolist() == tokenizer(text)["input_ids"]
        assert subwords.decode(ids) == text
    assert "".join(subwords.pieces(subwords.encode_one("a cat 猫"))) == "a▁cat▁<0xE7><0x8C><0xAB>"


def test_texts_are_continued_as_transformers_does(taken):
    theirs, ours, tokenizer = taken
    model = regard.load(ours, device="cpu")
    for text in TEXTS:
        read = tokenizer(text, return_tensors="pt")
        expected = theirs.generate(**read, max_new_tokens=12, do_sample=False, pad_token_id=0)[0].tolist()
        found = model.generate(text, max_tokens=12, temperature=0)
        added = expected[read["input_ids"].shape[1] :]
        assert found.tokens == tuple(model.subwords.pieces([i for i in added if i != 0]))
    trace = model.look(TEXTS[0])
    assert list(trace.outputs.ids) == tokenizer(TEXTS[0])["input_ids"]
    assert trace.outputs.text == TEXTS[0]


def test_what_was_taken_in_goes_out_as_it_came(taken, tmp_path):
    theirs, ours, tokenizer = taken
    assert write_huggingface(ours, tmp_path / "back").difference < 1e-4
    back = GPT2LMHeadModel.from_pretrained(tmp_path / "back")
    for name, weight in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[name], weight), name
    again = GPT2Tokenizer.from_pretrained(tmp_path / "back")
    assert [again(text)["input_ids"] for text in TEXTS] == [tokenizer(text)["input_ids"] for text in TEXTS]


def test_a_language_model_that_is_no_gpt2_is_refused_with_every_difference(tmp_path):
    ours = small_folder(tmp_path, architecture="decoder", output_bias=True, d_v=7)
    with refused("inexpressible_setting", str(ours), error=ConfigError) as caught:
        write_huggingface(ours, tmp_path / "out")
    names = {problem.split()[0].removeprefix("model.") for problem in caught.value.problems}
    assert names == {"norm_position", "positions", "scale_embeddings", "output_bias", "d_k"}
