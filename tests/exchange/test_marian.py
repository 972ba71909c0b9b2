"""An OPUS-MT model that was taken in says, reads and writes what `MarianMTModel` does; and goes out again."""

import numpy as np
import pytest
import torch
from transformers import MarianMTModel, MarianTokenizer, PegasusForConditionalGeneration

import regard
from regard.bundle import load_bundle, save_bundle
from regard.config import ModelConfig
from regard.engine.engines.protocol import Request, Search
from regard.errors import ConfigError
from regard.exchange.huggingface import import_model, write_huggingface
from regard.model.build import build
from regard.packing import pack
from regard.text import learn_subwords
from regard.text.vocabularies import read_vocabulary
from tests.exchange.folders import SIZES, small_folder
from tests.exchange.foreign import ENGLISH, GERMAN, marian, sentences
from tests.model.small import stirred as noisy
from tests.refusals import refused

TEXTS = [*sentences(ENGLISH, 7, seed=5), "the mat", ">>deu<< two cats", "Zürich 42", "", "  spaces  "]
SHAPES = {
    "Swish": {},
    "ReLU, deeper, as they are": {
        "activation_function": "relu", "encoder_layers": 1, "decoder_layers": 3, "scale_embedding": False,
    },
    "GELU, two embeddings": {"activation_function": "gelu", "share_encoder_decoder_embeddings": False},
    "a pickle": {"pickled": True, "d_model": 12, "encoder_attention_heads": 2, "decoder_attention_heads": 2},
}  # fmt: skip


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """A model of theirs, ours, and their tokenizer."""
    folder = tmp_path_factory.mktemp("marian")
    theirs = marian(folder / "theirs", forbidden=-1e4)
    import_model(folder / "theirs", folder / "ours")
    return theirs, folder / "ours", MarianTokenizer.from_pretrained(folder / "theirs")


def drawn(vocab_size, count, longest, seed):
    random = np.random.default_rng(seed)
    return [random.integers(2, vocab_size - 1, random.integers(1, longest)).tolist() for _ in range(count)]


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_logits_are_those_of_transformers(tmp_path, changes):
    theirs = marian(tmp_path / "theirs", **changes)
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    start, end = theirs.config.decoder_start_token_id, theirs.config.eos_token_id
    inputs = [[*ids, end] for ids in drawn(theirs.config.vocab_size, 5, 30, seed=1)]
    outputs = [[start, *ids] for ids in drawn(theirs.config.vocab_size, 5, 30, seed=2)]
    with torch.no_grad():
        found = ours(pack(inputs), pack(outputs)).split([len(ids) for ids in outputs])
        for read, written, logits in zip(inputs, outputs, found, strict=True):
            expected = theirs(
                input_ids=torch.tensor([read]), decoder_input_ids=torch.tensor([written])
            ).logits[0]
            # Padding, the last of the vocabulary, is what a search never takes: here it is forbidden at once.
            torch.testing.assert_close(logits[:, :-1], expected[:, :-1], atol=1e-4, rtol=0)
            assert (logits[:, -1] < -9000).all()


def test_tokens_are_those_of_the_tokenizer(taken):
    _, ours, tokenizer = taken
    vocabulary = read_vocabulary((ours / "subwords.model").read_bytes())
    for text, ids in zip(TEXTS, vocabulary.encode(TEXTS), strict=True):
        assert [*ids.tolist(), vocabulary.eos_id] == tokenizer(text)["input_ids"]
        known = [i for i in ids.tolist() if i != tokenizer.unk_token_id]
        assert vocabulary.decode(known) == tokenizer.decode(known, use_source_tokenizer=False)
    for text in sentences(GERMAN, 5):
        ids = vocabulary.outputs.encode_one(text).tolist()
        assert [*ids, vocabulary.eos_id] == tokenizer(text_target=text)["input_ids"]
        assert vocabulary.decode([vocabulary.bos_id, *ids, vocabulary.eos_id]) == text
    assert vocabulary.encode_one("▁mat").tolist() == [tokenizer.unk_token_id]  # cut as one, and not numbered
    assert vocabulary.pieces([vocabulary.eos_id, vocabulary.bos_id]) == ["</s>", "<pad>"]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("beams", [1, 4])
def test_translations_are_those_of_transformers(taken, engine, beams, monkeypatch, tmp_path):
    theirs, ours, tokenizer = taken
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    model = regard.load(ours, engine=engine, quantisation="float32", device="cpu", threads=1)
    texts = sentences(ENGLISH, 6, seed=9)
    # With no length penalty ended hypotheses rank by log-probability in both.
    search = Search(beam_size=beams, length_penalty=0.0, extra_length=9)
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        limit = ids.shape[1] - 1 + search.extra_length
        expected = theirs.generate(
            ids, num_beams=beams, do_sample=False, length_penalty=0.0, max_new_tokens=limit,
            early_stopping=False, forced_eos_token_id=None,
        )[0, 1:].tolist()  # fmt: skip
        ((best, *_),) = model.engines.first.decode([Request(ids=model.read(text))], search)
        assert [*best.ids, *[0] * best.finished] == expected


def test_what_was_taken_in_tells_its_languages_and_how_it_searches(taken):
    bundle = load_bundle(taken[1])
    assert (bundle.task.source, bundle.task.target, bundle.decoding.beam_size) == ("en", "de", 3)


def test_what_was_taken_in_goes_out_as_it_came(taken, tmp_path):
    theirs, ours, tokenizer = taken
    verified = write_huggingface(ours, tmp_path / "back")
    assert verified.by == "transformers (MarianMTModel)"
    assert verified.difference < 1e-4
    back = MarianMTModel.from_pretrained(tmp_path / "back")
    for name, weight in theirs.state_dict().items():
        torch.testing.assert_close(back.state_dict()[name], weight, atol=1e-6, rtol=0)
    again = MarianTokenizer.from_pretrained(tmp_path / "back")
    assert [again(text)["input_ids"] for text in TEXTS] == [tokenizer(text)["input_ids"] for text in TEXTS]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, MarianMTModel),
        ({"attention_bias": True, "feed_forward": "gelu", "shared_embeddings": "two-way"}, MarianMTModel),
        ({"norm_position": "pre", "output_bias": True}, PegasusForConditionalGeneration),
    ],
)
def test_a_model_of_ours_translates_there_as_it_does_here(tmp_path, changes, kind):
    subwords = learn_subwords(sentences(ENGLISH) + sentences(GERMAN), 330, tags=["de"], threads=1)
    size = read_vocabulary(subwords).vocab_size
    torch.manual_seed(2)
    model = noisy(build(ModelConfig(**SIZES | changes | {"vocab_size": size})))
    ours = save_bundle(tmp_path / "ours", model, subwords=subwords)
    assert write_huggingface(ours, tmp_path / "out").difference < 1e-4
    theirs, told = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not told["missing_keys"]
    tokenizer = MarianTokenizer.from_pretrained(tmp_path / "out")
    loaded = regard.load(ours, engine="torch", device="cpu")
    texts = [*sentences(ENGLISH, 3, seed=4), "Zürich 42"]
    read = tokenizer(texts, return_tensors="pt", padding=True)
    outputs = theirs.generate(**read, num_beams=1, do_sample=False, max_new_tokens=15)
    for text, ids, output in zip(texts, read["input_ids"].tolist(), outputs.tolist(), strict=True):
        assert ids[: ids.index(tokenizer.eos_token_id)] == list(loaded.read(text))
        request = Request(ids=loaded.read(text))
        search = Search(beam_size=1, extra_length=15 - len(request.ids))
        ((best, *_),) = loaded.engines.first.decode([request], search)
        assert output[1 : len(best.ids) + 1] == list(best.ids)
    tag = read_vocabulary(subwords).tag_id("de")
    assert tokenizer(">>de<<the cat")["input_ids"][:-1] == [tag, *loaded.read("the cat")]


def test_what_marian_cannot_express_is_refused_by_name_and_all_at_once(tmp_path):
    changes = {"norm": "rms", "positions": "rotary", "d_k": 6, "feed_forward": "swiglu", "similarity": "dot"}
    with refused("inexpressible_setting", "MarianMTModel", error=ConfigError) as caught:
        write_huggingface(small_folder(tmp_path, **changes), tmp_path / "out")
    names = {"norm", "positions", "d_k", "feed_forward", "similarity"}
    assert {problem.split()[0].removeprefix("model.") for problem in caught.value.problems} == names
    assert not (tmp_path / "out").exists()
