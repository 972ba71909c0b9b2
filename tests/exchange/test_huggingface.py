"""What holds for every family: weights in parts, pickles that would do more, settings that do not fit."""

import json

import pytest
import torch

from regard.bundle import load_bundle
from regard.errors import BundleError, ConfigError
from regard.exchange.huggingface import import_model
from tests.exchange.foreign import bert, gpt2
from tests.refusals import refused


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2") / "theirs"
    gpt2(folder)
    return folder


def copied(theirs, folder, *, settings=(), without=()):
    folder.mkdir()
    for file in theirs.iterdir():
        if file.name not in without:
            (folder / file.name).write_bytes(file.read_bytes())
    table = json.loads((theirs / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(table | dict(settings)))
    return folder


def test_weights_in_several_files_are_one_model(tmp_path):
    model = gpt2(tmp_path / "theirs")
    whole = import_model(tmp_path / "theirs", tmp_path / "whole")
    (tmp_path / "theirs" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "theirs", max_shard_size="40KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 1
    parts = import_model(tmp_path / "theirs", tmp_path / "parts")
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()


def test_a_pickle_may_hold_weights_and_nothing_else(theirs, tmp_path):
    class Touches:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    other = copied(theirs, tmp_path / "other", without=["model.safetensors"])
    torch.save({"wte.weight": Touches()}, other / "pytorch_model.bin")
    with refused("unreadable_file", "pytorch_model.bin", error=BundleError):
        import_model(other, tmp_path / "ours")
    assert not (tmp_path / "touched").exists()


def test_weights_in_half_precision_become_float32(tmp_path):
    model = gpt2(tmp_path / "theirs").to(torch.bfloat16)
    model.save_pretrained(tmp_path / "theirs")
    ours = load_bundle(import_model(tmp_path / "theirs", tmp_path / "ours")).model
    assert torch.equal(ours.output_embedding.weight, model.transformer.wte.weight.float())
    assert {weight.dtype for weight in ours.parameters()} == {torch.float32}


def test_every_weight_that_is_missing_or_unknown_is_named(theirs, tmp_path):
    other = copied(theirs, tmp_path / "other", settings={"n_layer": 1, "tie_word_embeddings": False})
    with refused("wrong_weights", str(other), error=BundleError) as caught:
        import_model(other, tmp_path / "ours")
    problems = "\n".join(caught.value.problems)
    assert "weight lm_head.weight is missing" in problems
    assert "weight transformer.h.1.ln_1.bias is unknown" in problems
    assert "transformer.h.0" not in problems


def test_weights_of_another_shape_are_named(theirs, tmp_path):
    other = copied(theirs, tmp_path / "other", settings={"n_positions": 43})
    with refused("wrong_weights", "output_positions.weight", "(41, 24)", error=BundleError):
        import_model(other, tmp_path / "ours")


def test_a_model_without_a_tokenizer_is_taken_in_without_one(theirs, tmp_path):
    other = copied(theirs, tmp_path / "other", without=["tokenizer.json"])
    assert load_bundle(import_model(other, tmp_path / "ours")).subwords is None


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gpt2", {"scale_attn_weights": False, "add_cross_attention": True, "activation_function": "tanh"}),
        ("bert", {"is_decoder": True, "position_embedding_type": "relative_key", "id2label": {"0": "one"}}),
        ("bert", {"problem_type": "regression", "hidden_size": "wide"}),
    ],
)
def test_settings_that_are_not_supported_are_refused_by_name_and_all_at_once(tmp_path, theirs, kind, changes):
    if kind == "bert":
        bert(theirs := tmp_path / "bert", "BertForSequenceClassification")
    other = copied(theirs, tmp_path / "other", settings=changes)
    with refused("unsupported_setting", str(other), error=ConfigError) as caught:
        import_model(other, tmp_path / "ours")
    assert len(caught.value.problems) == len(changes)
    assert all(any(name in problem for problem in caught.value.problems) for name in changes)
