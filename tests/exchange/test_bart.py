"""A BART that was taken in says, reads and writes what `transformers` does."""

import pytest
import torch
from transformers import BartForConditionalGeneration, BartTokenizer

import regard
from regard.bundle import load_bundle
from regard.engine.engines.protocol import Request, Search
from regard.exchange.huggingface import import_model, write_huggingface
from regard.packing import pack
from tests.exchange.foreign import ENGLISH, bart, saved, sentences

TEXTS = [*sentences(ENGLISH, 5, seed=5), "Zürich, 猫  !\n\n42", " the"]


@pytest.mark.parametrize("changes", [{}, {"scale_embedding": True, "activation_function": "relu"}])
def test_logits_are_those_of_transformers(tmp_path, changes):
    theirs = bart(tmp_path / "theirs", **changes)
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    texts = [torch.randint(0, theirs.config.vocab_size, (n,)).tolist() for n in (1, 17, 41)]
    with torch.no_grad():
        found = ours(pack(texts), pack(texts[::-1])).split([len(ids) for ids in texts[::-1]])
        for read, written, logits in zip(texts, texts[::-1], found, strict=True):
            given = {"input_ids": torch.tensor([read]), "decoder_input_ids": torch.tensor([written])}
            expected = theirs(**given, attention_mask=torch.ones(1, len(read))).logits[0]
            torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_what_was_taken_in_goes_out_as_it_came(tmp_path):
    theirs = bart(tmp_path / "theirs")
    ours = import_model(tmp_path / "theirs", tmp_path / "ours")
    assert write_huggingface(ours, tmp_path / "back").difference < 1e-4
    back = BartForConditionalGeneration.from_pretrained(tmp_path / "back")
    for name, weight in theirs.state_dict().items():
        # The first two places were for padding, and are not read.
        after = 2 if "embed_positions" in name else 0
        assert torch.equal(back.state_dict()[name][after:], weight[after:]), name
    assert back.config.decoder_start_token_id == theirs.config.decoder_start_token_id
    tokenizers = (BartTokenizer.from_pretrained(tmp_path / name) for name in ("theirs", "back"))
    first, second = ([tokenizer(text)["input_ids"] for text in TEXTS] for tokenizer in tokenizers)
    assert first == second


def test_a_bare_model_is_one_whose_outputs_are_read_off_its_embedding(tmp_path):
    theirs = bart(tmp_path / "theirs", scale_embedding=True)
    saved(theirs.model, tmp_path / "theirs")
    theirs.final_logits_bias.zero_()
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    ids = torch.tensor([[0, 17, 29, 2]])
    with torch.no_grad():
        expected = theirs(input_ids=ids, decoder_input_ids=ids).logits[0]
        found = ours(pack(ids.tolist()), pack(ids.tolist()))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_texts_are_read_and_written_as_transformers_does(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    theirs = bart(tmp_path / "theirs")
    tokenizer = BartTokenizer.from_pretrained(tmp_path / "theirs")
    ours = import_model(tmp_path / "theirs", tmp_path / "ours")
    for engine in ("torch", "ctranslate2"):
        model = regard.load(ours, engine=engine, quantisation="float32", device="cpu", threads=1)
        for text in TEXTS:
            read = tokenizer(text, return_tensors="pt")
            assert [*model.read(text), model.subwords.eos_id] == read["input_ids"][0].tolist()
            search = Search(beam_size=1, extra_length=5)
            # Streamed, a loop is not tried again; and random weights run in loops.
            found = list(model.engines.first.stream(Request(ids=model.read(text)), search))
            limit = len(model.read(text)) + search.extra_length
            expected = theirs.generate(
                **read, num_beams=1, do_sample=False, max_new_tokens=limit, forced_eos_token_id=None
            )
            assert found == expected[0, 1:].tolist()
    assert "summary" in model.task.templates[1]
    assert isinstance(model.respond({"document": TEXTS[0]}).text, str)


def test_a_text_of_many_lines_is_read_as_it_stands_and_has_one_output(tmp_path):
    bart(tmp_path / "theirs")
    model = regard.load(import_model(tmp_path / "theirs", tmp_path / "ours"), engine="torch", threads=1)
    text = "the cat  sat\n\non the mat"
    request = Request(ids=model.read(text))
    assert "".join(model.stream(text)) == model.subwords.outputs.decode(
        list(model.engines.first.stream(request, Search(beam_size=1)))
    )
