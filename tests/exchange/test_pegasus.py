"""Pegasus: what we export with pre-norm comes in again, and so does a Pegasus of others."""

import json
import re

import pytest
import torch
from transformers import AutoTokenizer

import regard
from regard.bundle import load_bundle, save_bundle
from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.errors import BundleError, ConfigError
from regard.exchange.huggingface import import_model, write_huggingface
from regard.model.build import build
from regard.packing import pack
from regard.text import learn_subwords
from regard.text.vocabularies import read_vocabulary
from tests.exchange.folders import SIZES
from tests.exchange.foreign import ENGLISH, GERMAN, pegasus, sentences
from tests.exchange.test_marian import drawn
from tests.model.small import stirred
from tests.refusals import refused

WEIGHTS, VOCABULARY = "model.safetensors", "subwords.model"


def two_way(folder, **changes):
    """A model of ours for both directions, with tags."""
    subwords = learn_subwords(sentences(ENGLISH) + sentences(GERMAN), 330, tags=["en", "de"], threads=1)
    torch.manual_seed(2)
    size = read_vocabulary(subwords).vocab_size
    model = stirred(build(ModelConfig(**SIZES | changes | {"vocab_size": size})))
    return save_bundle(
        folder,
        model,
        subwords=subwords,
        task=TaskConfig(source="en", target="de", both_directions=True),
        decoding=DecodingConfig(beam_size=3, length_penalty=0.7, extra_length=17),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_position": "pre"},
        {"norm_position": "pre", "attention_bias": True, "output_bias": True, "feed_forward": "gelu"},
        {"norm_position": "post"},
        {"norm_position": "post", "output_bias": True, "shared_embeddings": "two-way"},
    ],
)
def test_an_export_comes_in_as_it_was_and_goes_out_again_to_the_bit(tmp_path, changes):
    ours = two_way(tmp_path / "ours", **changes)
    write_huggingface(ours, tmp_path / "theirs")
    back = import_model(tmp_path / "theirs", tmp_path / "back")
    before, after = load_bundle(ours), load_bundle(back)
    assert (after.config, after.task, after.decoding) == (before.config, before.task, before.decoding)
    assert (back / VOCABULARY).read_bytes() == (ours / VOCABULARY).read_bytes()
    assert [*after.model.state_dict()] == [*before.model.state_dict()]
    for name, weight in before.model.state_dict().items():
        assert torch.equal(after.model.state_dict()[name], weight), name
    write_huggingface(back, tmp_path / "again")
    for file in (tmp_path / "theirs").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_both_directions_translate_as_before(tmp_path):
    ours = two_way(tmp_path / "ours", norm_position="pre")
    write_huggingface(ours, tmp_path / "theirs")
    back = regard.load(import_model(tmp_path / "theirs", tmp_path / "back"), engine="torch", device="cpu")
    original = regard.load(ours, engine="torch", device="cpu")
    texts = [*sentences(ENGLISH, 2, seed=4), *sentences(GERMAN, 2, seed=4)]
    for source, to in (("en", "de"), ("de", "en")):
        expected, found = (
            [each.text for each in model.translate(texts, source=source, to=to, check_numbers=False)]
            for model in (original, back)
        )
        assert found == expected
        assert back.read(texts[0], to=to) == original.read(texts[0], to=to)


def test_biases_that_were_trained_elsewhere_are_kept(tmp_path):
    from safetensors.torch import load_file, save_file

    write_huggingface(two_way(tmp_path / "ours", norm_position="pre"), tmp_path / "theirs")
    weights = load_file(tmp_path / "theirs" / WEIGHTS)
    weights["model.encoder.layers.0.self_attn.q_proj.bias"] += 0.5
    save_file(weights, tmp_path / "theirs" / WEIGHTS, metadata={"format": "pt"})
    back = load_bundle(import_model(tmp_path / "theirs", tmp_path / "back"))
    assert back.config.attention_bias
    assert (back.model.state_dict()["encoder.layers.0.multi_head_attention.w_q.bias"] == 0.5).all()


def test_without_its_record_an_export_is_imported_by_its_settings(tmp_path):
    ours = two_way(tmp_path / "ours", norm_position="pre")
    write_huggingface(ours, tmp_path / "theirs")
    (tmp_path / "theirs" / "regard.toml").unlink()
    back = load_bundle(import_model(tmp_path / "theirs", tmp_path / "back"))
    assert back.subwords == (ours / VOCABULARY).read_bytes()
    assert (back.task.source, back.task.target, back.decoding.beam_size) == ("en", "de", 3)
    assert back.decoding.length_penalty == pytest.approx(0.7, abs=1e-3)
    # Padding is <unk> there, and may be generated as before.
    assert not back.model.state_dict()["output_probabilities.bias"].any()


def test_a_record_that_is_damaged_is_refused(tmp_path):
    write_huggingface(two_way(tmp_path / "ours"), tmp_path / "theirs")
    (tmp_path / "theirs" / "regard.toml").write_text("[model")
    with refused("not_toml", "regard.toml", error=ConfigError):
        import_model(tmp_path / "theirs", tmp_path / "back")


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pegasus")
    theirs = pegasus(folder / "theirs")
    return theirs, import_model(folder / "theirs", folder / "ours"), folder / "theirs"


def test_logits_of_a_pegasus_of_others_are_the_same(taken):
    theirs, folder, _ = taken
    ours = load_bundle(folder).model
    inputs = [[*ids, 1] for ids in drawn(theirs.config.vocab_size, 5, 30, seed=1)]
    outputs = [[0, *ids] for ids in drawn(theirs.config.vocab_size, 5, 30, seed=2)]
    with torch.no_grad():
        found = ours(pack(inputs), pack(outputs)).split([len(ids) for ids in outputs])
        for read, written, logits in zip(inputs, outputs, found, strict=True):
            expected = theirs(
                input_ids=torch.tensor([read]), decoder_input_ids=torch.tensor([written])
            ).logits
            torch.testing.assert_close(logits, expected[0], atol=1e-5, rtol=0)


def test_tokens_of_a_pegasus_of_others_are_the_same(taken):
    _, folder, original = taken
    model, tokenizer = (
        regard.load(folder, engine="torch", device="cpu"),
        AutoTokenizer.from_pretrained(original),
    )
    assert model.task.name == "summarise"
    assert (model.decoding.beam_size, model.decoding.length_penalty) == (3, 0.6)
    for text in [*sentences(ENGLISH, 3, seed=5), "Zürich 42", " the  cat"]:
        ids = tokenizer(text)["input_ids"]
        assert [*model.subwords.encode_one(text).tolist(), model.subwords.eos_id] == ids
        assert model.subwords.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True)
    pieces = model.subwords.pieces(model.subwords.encode_one("the cat"))
    assert "".join(pieces) == "▁the▁cat"


def test_what_a_pegasus_has_differently_is_refused_by_name(taken, tmp_path):
    _, _, original = taken
    other = tmp_path / "other"
    other.mkdir()
    for file in original.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    settings = json.loads((original / "config.json").read_text())
    changed = {"normalize_before": False, "add_final_layer_norm": False, "decoder_ffn_dim": 41}
    (other / "config.json").write_text(json.dumps(settings | changed))
    with refused("unsupported_setting", str(other), error=ConfigError) as caught:
        import_model(other, tmp_path / "ours")
    assert all(re.search(name, "\n".join(caught.value.problems)) for name in changed)
    (other / "config.json").write_text(json.dumps(settings))
    (other / "tokenizer.json").rename(other / "spiece.model")
    with refused("missing_file", "spiece.model", error=BundleError):
        import_model(other, tmp_path / "ours")
