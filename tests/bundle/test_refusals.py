"""Model folders that are damaged, foreign or newer are refused, with every problem at once."""

import pickle
from pathlib import Path

import pytest
import torch

from regard.bundle import load_bundle
from regard.bundle.manifest import FORMAT
from regard.version import __version__
from tests.bundle.folders import SMALL, change_manifest, change_weights, places, refusal, reseal
from tests.refusals import refused


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.toml", "subwords.model", "metrics.json", "card.md"]
)
def test_a_missing_truncated_grown_or_changed_file_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    assert refusal(folder) == [f"{name} has {len(whole) - 1:,} bytes; {len(whole):,} were saved"]
    (folder / name).write_bytes(whole + b"\0")
    assert refusal(folder) == [f"{name} has {len(whole) + 1:,} bytes; {len(whole):,} were saved"]
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    (folder / name).write_bytes(flipped)
    (problem,) = refusal(folder)
    assert problem.startswith(name)
    assert "sha256" in problem
    (folder / name).unlink()
    assert refusal(folder) == [f"{name} is missing"]


def test_missing_unexpected_renamed_and_misshapen_weights_are_all_listed(folder):
    def change(weights):
        weights["encoder.layers.7.norm"] = weights.pop("decoder.layers.0.feed_forward.widen.bias")
        weights["input_embedding.weight"] = torch.zeros(19, 13)
        weights["encoder.layers.0.feed_forward.narrow.bias"] = torch.zeros(12, dtype=torch.int32)
        return weights

    change_weights(folder, change)
    assert refusal(folder) == [
        "weight decoder.layers.0.feed_forward.widen.bias is missing",
        "weight encoder.layers.7.norm is unexpected",
        "weight input_embedding.weight has the shape (19, 13); the configuration requires (19, 12)",
        "weight encoder.layers.0.feed_forward.narrow.bias is torch.int32; weights are float64, float32, "
        "float16, bfloat16",
    ]


def test_a_folder_without_any_weight_lists_them_all(folder, model):
    change_weights(folder, lambda weights: {"nothing": weights["input_embedding.weight"]})
    problems = refusal(folder)
    assert len(problems) == len(list(model.named_parameters())) + 1
    change_weights(folder, lambda _: {})
    assert len(refusal(folder)) == len(problems) - 1


def test_problems_of_every_sort_are_reported_together(folder):
    config = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(config.replace("n_heads", "n_head").replace('"post"', '"past"'))
    (folder / "metrics.json").write_text("{")
    reseal(folder)
    (folder / "card.md").unlink()
    (folder / "subwords.model").write_bytes(b"other")
    (folder / "model.safetensors").write_bytes(b"")
    problems = refusal(folder)
    assert sorted(places(problems)) == [
        "card.md",
        "config.toml",
        "config.toml",
        "metrics.json",
        "model.safetensors",
        "subwords.model",
    ]
    assert any("did you mean model.n_heads?" in problem for problem in problems)


def test_weights_that_contradict_the_settings_are_reported_beside_a_damaged_file(folder):
    config = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(config.replace("encoder_layers = 2", "encoder_layers = 1"))
    reseal(folder)
    (folder / "card.md").write_text("")
    first, *others = places(refusal(folder))
    assert first == "card.md"
    assert len(others) == 12
    assert all(weight.startswith("encoder.layers.1.") for weight in others)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_pickle_in_place_of_the_weights_is_refused_and_not_opened(folder, tmp_path, sealed):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    (folder / "model.safetensors").write_bytes(pickle.dumps(Bomb()))
    if sealed:
        reseal(folder)
    (problem,) = refusal(folder)
    assert problem.startswith("model.safetensors")
    assert ("safetensors file" in problem) == sealed  # otherwise its hash is wrong
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("", "manifest.json"),
        ("[" * 100_000, "manifest.json"),
        ("\xff", "manifest.json"),
        ("[]", "manifest.json"),
        ('{"format": 1}', "manifest.json"),
        ('{"format": 1, "regard": "0", "weights_hash": "", "files": {"card.md": 3}}', "manifest.json"),
        ('{"format": 1, "regard": "0", "weights_hash": "", "files": {}}', "model.safetensors"),
    ],
)
def test_a_damaged_manifest_is_refused(folder, text, file):
    (folder / "manifest.json").write_text(text, encoding="latin-1")
    assert places(refusal(folder))[0] == file


def test_a_newer_format_asks_for_a_newer_regard(folder):
    change_manifest(
        folder, lambda table: table.update(format=FORMAT + 1, regard="9.9.0", files="by then, who knows")
    )
    (problem,) = refusal(folder, "newer_format")
    assert "regard 9.9.0" in problem
    assert f"regard {__version__}" in problem


def test_another_version_of_regard_is_named_where_something_does_not_fit(folder):
    change_manifest(folder, lambda table: table.update(regard="0.0.7"))
    assert load_bundle(folder).config == SMALL
    (folder / "card.md").unlink()
    with refused("damaged_model_folder", "regard 0.0.7", f"regard {__version__}"):
        load_bundle(folder)


def test_a_file_that_this_version_does_not_know_is_checked_and_left_alone(folder):
    (folder / "labels.txt").write_text("good\nbad\n")
    load_bundle(folder)
    reseal(folder)
    load_bundle(folder)
    (folder / "labels.txt").write_text("bad\ngood\n")
    assert places(refusal(folder)) == ["labels.txt"]


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "sub/file", "sub\\file", "..", ".hidden", "", "a\0b"]
)
def test_a_manifest_cannot_name_files_elsewhere(folder, tmp_path, name):
    (tmp_path / "secret").write_text("x")
    change_manifest(folder, lambda table: table["files"].update({name: {"size": 1, "sha256": ""}}))
    (problem,) = refusal(folder)
    assert problem.startswith(f"manifest.json lists {name!r}")


@pytest.mark.parametrize("name", ["model.safetensors", "subwords.model", "manifest.json"])
def test_a_link_may_stay_inside_but_not_lead_out(folder, tmp_path, name):
    (folder / name).rename(folder / "elsewhere")
    (folder / name).symlink_to("elsewhere")
    load_bundle(folder)
    (folder / "elsewhere").rename(tmp_path / "outside")
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "outside")
    assert places(refusal(folder)) == [name]


@pytest.mark.parametrize("target", ["/dev/zero", "card.md", "."])
def test_a_link_to_no_file_is_a_missing_file(folder, target):
    (folder / "card.md").unlink()
    (folder / "card.md").symlink_to(target)
    assert places(refusal(folder)) == ["card.md"]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (
            ["config.json", "model.safetensors", "source.spm"],
            "a Hugging Face folder, which `regard import` converts (config.json)",
        ),
        (
            ["config.json", "model.bin", "shared_vocabulary.json"],
            "a CTranslate2 folder (shared_vocabulary.json)",
        ),
        (["model.npz", "decoder.yml"], "a Marian folder (model.npz)"),
        (["checkpoint_best.pt"], "a PyTorch checkpoint"),
        (["notes.txt"], "it holds notes.txt"),
        (["a", "b", "c", "d", "e", "f"], "it holds a, b, c, d, e, …"),
        ([], "it is empty"),
    ],
)
def test_a_foreign_folder_is_recognised(tmp_path, names, kind):
    for name in names:
        (tmp_path / name).touch()
    (problem,) = refusal(tmp_path, "not_a_model_folder")
    assert kind in problem


def test_a_folder_that_lost_its_manifest_says_so(folder):
    (folder / "manifest.json").unlink()
    assert places(refusal(folder)) == ["manifest.json"]
    (folder / "model.safetensors").unlink()
    assert places(refusal(folder)) == ["manifest.json", "model.safetensors"]


def test_what_is_no_folder_is_refused(folder):
    refusal(folder.parent / "nowhere" / "at all", "missing_model")
    refusal(folder / "model.safetensors", "not_a_model_folder")
