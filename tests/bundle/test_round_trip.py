"""What is saved comes back: every weight to the bit, and all that goes with it."""

import re
import shutil

import pytest
import torch
from safetensors.torch import load_file

from regard.bundle import describe_bundle, load_bundle, save_bundle, weights_hash
from regard.bundle.manifest import FORMAT
from regard.bundle.weights import empty_model
from regard.config import DecodingConfig, read_config
from regard.model.build import build
from regard.packing import pack
from regard.version import __version__
from tests.bundle.folders import KINDS, SMALL, contents, outputs_of, reseal
from tests.refusals import refused


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_trip_changes_no_bit(tmp_path, kind):
    model = build(KINDS[kind])
    bundle = load_bundle(save_bundle(tmp_path / kind, model))
    assert bundle.config == bundle.model.config == KINDS[kind]
    assert torch.equal(outputs_of(bundle.model), outputs_of(model))
    assert weights_hash(bundle.model) == weights_hash(model) == weights_hash(tmp_path / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_shared_weights_are_saved_once_and_shared_again(tmp_path, kind):
    model = build(KINDS[kind])
    loaded = load_bundle(save_bundle(tmp_path / kind, model)).model
    assert list(load_file(tmp_path / kind / "model.safetensors")) == sorted(dict(model.named_parameters()))
    assert [name for name, _ in loaded.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert loaded.n_parameters == model.n_parameters == describe_bundle(tmp_path / kind).n_parameters


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_has_no_state_but_its_parameters(kind):
    model = build(KINDS[kind])
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters(remove_duplicate=False)}


def test_everything_else_comes_back_too(tmp_path, model):
    decoding = DecodingConfig(beam_size=7, length_penalty=0.1)
    metrics = {"bleu": 31.25, "per_language": {"zh": [1, 2]}, "signature": "nrefs:1|case:mixed"}
    save_bundle(tmp_path / "model", model, subwords=b"\x00\xff", metrics=metrics, decoding=decoding)
    bundle = load_bundle(str(tmp_path / "model"))
    assert (bundle.decoding, bundle.metrics, bundle.subwords) == (decoding, metrics, b"\x00\xff")
    assert bundle.folder == tmp_path / "model"
    assert "vocab_size=19" in repr(bundle)
    assert "xff" not in repr(bundle)
    assert len(repr(bundle)) < 1500


def test_what_was_not_given_is_not_there(tmp_path, model):
    bundle = load_bundle(save_bundle(tmp_path / "model", model))
    assert (bundle.decoding, bundle.metrics, bundle.subwords) == (DecodingConfig(), {}, None)
    assert sorted(contents(tmp_path / "model")) == [
        "card.md",
        "config.toml",
        "manifest.json",
        "model.safetensors",
    ]


def test_a_loaded_model_is_ready_to_run_and_to_train_on(folder, model):
    model.train()
    loaded = load_bundle(folder).model
    assert not any(module.training for module in loaded.modules())
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    outputs = loaded(pack([[1, 2]]), pack([[3]]))
    outputs.sum().backward()
    assert loaded.input_embedding.weight.grad is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_keep_their_dtype(tmp_path, model, dtype):
    loaded = load_bundle(save_bundle(tmp_path / "model", model.to(dtype))).model
    assert {parameter.dtype for parameter in loaded.parameters()} == {dtype}
    assert weights_hash(loaded) == weights_hash(model)


def test_weights_that_are_not_numbers_and_not_contiguous_are_saved_as_they_are(tmp_path, model):
    with torch.no_grad():
        model.input_embedding.weight[3, 5] = torch.nan
    model.encoder.layers[0].multi_head_attention.w_q.weight.data = torch.randn(12, 15).T
    loaded = load_bundle(save_bundle(tmp_path / "model", model)).model
    assert loaded.input_embedding.weight.isnan().sum() == 1
    assert weights_hash(loaded) == weights_hash(model)


def test_loading_draws_no_random_numbers(folder):
    state = torch.get_rng_state()
    load_bundle(folder)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_model_is_the_built_one_except_for_its_values(kind):
    state = torch.get_rng_state()
    blank = empty_model(KINDS[kind])
    assert torch.equal(torch.get_rng_state(), state)
    model = build(KINDS[kind])
    assert repr(blank) == repr(model)
    assert {n: p.shape for n, p in blank.named_parameters()} == {
        n: p.shape for n, p in model.named_parameters()
    }
    assert all(
        torch.equal(ours, theirs) for ours, theirs in zip(blank.buffers(), model.buffers(), strict=True)
    )


def test_what_is_loaded_does_not_change_with_the_file(folder, model):
    loaded = load_bundle(folder).model
    with (folder / "model.safetensors").open("r+b") as file:
        file.write(b"\0" * (folder / "model.safetensors").stat().st_size)
    assert weights_hash(loaded) == weights_hash(model)


def test_saving_twice_writes_the_same_bytes(tmp_path, model):
    first, second = (save_bundle(tmp_path / name / "model", model, metrics={"bleu": 3.0}) for name in "ab")
    assert contents(first) == contents(second)


def test_the_configuration_is_one_that_can_be_trained_from(folder):
    assert read_config(file=folder / "config.toml").model == SMALL


def test_the_hash_of_the_weights_tells_weights_apart(folder, model):
    saved = weights_hash(model)
    assert saved == weights_hash(folder) == weights_hash(str(folder)) == describe_bundle(folder).weights_hash
    assert weights_hash(build(SMALL)) != saved
    assert weights_hash(load_bundle(folder).model.double()) != saved
    with torch.no_grad():
        model.encoder.layers[1].feed_forward.narrow.bias[3] += 1e-7
    assert weights_hash(model) != saved


def test_the_hash_sees_names_and_shapes(tmp_path):
    one, other = torch.nn.Module(), torch.nn.Module()
    one.a = torch.nn.Parameter(torch.ones(2, 3))
    other.b = torch.nn.Parameter(torch.ones(2, 3))
    assert weights_hash(one) != weights_hash(other)
    one.a.data = torch.ones(3, 2)
    other.a, other.b = one.a, None
    before = weights_hash(one)
    assert before == weights_hash(other)
    other.a = torch.nn.Parameter(torch.ones(2, 3))
    assert before != weights_hash(other)
    with refused("damaged_model_folder", "model.safetensors"):
        weights_hash(tmp_path / "nowhere")


@pytest.mark.parametrize("kind", ["three-way", "decoder", "encoder"])
def test_the_python_on_the_card_runs(tmp_path, monkeypatch, kind):
    model = build(KINDS[kind])
    save_bundle(tmp_path / "zh-en", model, metrics={"bleu": 31.5}, notes="From Chinese to English.")
    card = (tmp_path / "zh-en" / "card.md").read_text(encoding="utf-8")
    assert card.startswith("# zh-en\n")
    for part in (
        f"{model.n_parameters:,} parameters, float32",
        "| bleu | 31.5 |",
        "| d_model | 12 |",
        "to English.",
    ):
        assert part in card
    monkeypatch.chdir(tmp_path)
    (python,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    names = {}
    exec(python.replace("path/to/", ""), names)
    assert names["logits"].isfinite().all()


def test_a_description_tells_what_loading_would(folder, model):
    described, loaded = describe_bundle(folder), load_bundle(folder)
    assert (described.config, described.decoding, described.metrics) == (
        loaded.config,
        loaded.decoding,
        loaded.metrics,
    )
    assert (described.n_parameters, described.dtype) == (model.n_parameters, "float32")
    assert (described.format, described.regard) == (FORMAT, __version__)
    assert described.files == {
        name: len(data) for name, data in contents(folder).items() if name != "manifest.json"
    }


def test_a_description_refuses_what_it_can_see(folder):
    whole = shutil.copytree(folder, folder.with_name("whole"))
    (folder / "card.md").unlink()
    (folder / "metrics.json").write_text("")
    with refused("damaged_model_folder", "2 problems"):
        describe_bundle(folder)
    (whole / "metrics.json").write_text("[]")
    (whole / "config.toml").write_text("[model]\nn_head = 3\n")
    (whole / "model.safetensors").write_bytes(b"\x80\x04K\x01.")
    reseal(whole)
    with refused("damaged_model_folder", "3 problems"):
        describe_bundle(whole)
