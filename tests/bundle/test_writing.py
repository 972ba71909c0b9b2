"""A model folder is written atomically, and nothing else is ever lost."""

import errno
import json
import os
import resource
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.bundle import describe_bundle, load_bundle, save_bundle, weights_hash
from regard.model.build import build
from regard.model.similarity import DotProduct
from tests.bundle.folders import SMALL, contents, names_in, places, refusal
from tests.refusals import refused


def test_a_model_is_replaced_only_when_asked_to(folder, model):
    before = contents(folder)
    with refused("folder_exists", str(folder), "overwrite=True"):
        save_bundle(folder, build(SMALL))
    assert contents(folder) == before
    other = build(replace(SMALL, d_ff=13))
    save_bundle(folder, other, overwrite=True)
    assert weights_hash(load_bundle(folder).model) == weights_hash(other) != weights_hash(model)
    assert load_bundle(folder).subwords is None
    assert names_in(folder.parent) == ["model"]


def test_a_damaged_model_can_be_replaced(folder, model):
    (folder / "model.safetensors").write_bytes(b"")
    save_bundle(folder, model, overwrite=True)
    load_bundle(folder)


@pytest.mark.parametrize("name", ["notes.txt", "config.json", "manifest.json"])
def test_another_folder_is_never_replaced(tmp_path, model, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("{}")
    with refused("folder_exists", "mine"):
        save_bundle(tmp_path / "mine", model, overwrite=True)
    assert contents(tmp_path / "mine") == {name: b"{}"}
    assert names_in(tmp_path) == ["mine"]


def test_the_root_of_all_folders_is_not_replaced_either(model):
    with refused("folder_exists"):
        save_bundle("/", model, overwrite=True)


def test_files_that_somebody_put_beside_the_model_are_not_lost(folder, model):
    (folder / "notes.txt").write_text("dear")
    (folder / "checkpoints").mkdir()
    with refused("folder_exists") as caught:
        save_bundle(folder, model, overwrite=True)
    assert places(caught.value.problems) == ["checkpoints", "notes.txt"]
    assert (folder / "notes.txt").read_text() == "dear"


def test_a_file_in_the_way_stays(tmp_path, model):
    (tmp_path / "file").write_text("dear")
    for place in (tmp_path / "file", tmp_path / "file" / "model"):
        with refused("unwritable_folder", str(place)):
            save_bundle(place, model, overwrite=True)
    assert contents(tmp_path) == {"file": b"dear"}


def test_an_empty_folder_a_missing_one_and_a_link_are_filled(tmp_path, model):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    load_bundle(save_bundle(tmp_path / "link", model))
    assert (tmp_path / "link").is_symlink()
    assert save_bundle(tmp_path / "link", model, overwrite=True) == (tmp_path / "empty").resolve()
    load_bundle(save_bundle(tmp_path / "a" / "b" / "c", model))
    assert names_in(tmp_path) == ["a", "empty", "link"]


def test_a_relative_path_is_one_too(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    save_bundle("model", model)
    assert load_bundle("model").folder == Path("model")


@pytest.mark.parametrize("there", [False, True])
def test_when_the_system_refuses_in_the_middle_of_a_file_nothing_is_left_behind(tmp_path, model, there):
    """Every other refusal is tested in tests/crash."""
    place = tmp_path / "model"
    if there:
        save_bundle(place, model)
    before = contents(place) if there else None
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        with refused("unwritable_folder", "File too large"):
            save_bundle(place, build(SMALL), overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names_in(tmp_path) == (["model"] if there else [])
    assert before is None or contents(place) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_place_is_refused(tmp_path, model):
    tmp_path.chmod(0o500)
    try:
        with refused("unwritable_folder", "Permission denied"):
            save_bundle(tmp_path / "model", model)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(folder):
    (folder / "card.md").chmod(0)
    assert places(refusal(folder)) == ["card.md"]
    folder.chmod(0)
    refusal(folder, "unreadable_file")
    folder.chmod(0o700)


def test_an_interrupt_while_saving_leaves_the_old_model(folder, monkeypatch, model):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_bundle(folder, build(SMALL), overwrite=True)
    assert weights_hash(load_bundle(folder).model) == weights_hash(model)
    assert names_in(folder.parent) == ["model"]


def test_a_model_killed_in_the_middle_of_the_swap_is_pointed_out(folder):
    folder.rename(folder.with_name(".model.0a1b2c3d.old"))
    folder.with_name(".model.v2.0a1b2c3d.old").mkdir()  # of another model
    _, hint = refusal(folder, "missing_model")
    assert ".model.0a1b2c3d.old" in hint


def test_what_was_set_aside_of_another_model_is_not_removed(folder, model):
    other = folder.with_name(".model.v2.0a1b2c3d.old")
    folder.rename(other)
    for _ in range(2):
        save_bundle(folder, model, overwrite=True)
    assert names_in(folder.parent) == [other.name, "model"]


def test_a_file_system_that_cannot_sync_folders_will_do(folder, monkeypatch):
    real = os.fsync

    def sync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    save_bundle(folder, build(SMALL), overwrite=True)
    load_bundle(folder)


class Swapped(DotProduct):
    """A similarity that no configuration names."""


def _swap_similarity(model):
    model.encoder.layers[0].multi_head_attention.similarity = Swapped(2, 4)
    return "encoder.layers.0.multi_head_attention.similarity"


def _swap_method(model):
    model.decoder.layers[0].feed_forward.forward = torch.nn.Identity()
    return "decoder.layers.0.feed_forward.forward"


def _swap_activation(model):
    model.decoder.layers[0].feed_forward.activation = torch.tanh
    return "decoder.layers.0.feed_forward.activation"


def _change_epsilon(model):
    model.encoder.layers[0].add_and_norm[1].norm.epsilon = 0.1
    return "encoder.layers.0.add_and_norm.1.norm.epsilon"


def _change_buffer(model):
    model.input_positions.table.zero_()
    return "input_positions.table"


def _add_module(model):
    model.encoder.extra = torch.nn.Identity()
    return "encoder.extra"


@pytest.mark.parametrize(
    "change", [_swap_similarity, _swap_method, _swap_activation, _change_epsilon, _change_buffer, _add_module]
)
def test_a_model_that_its_configuration_does_not_describe_is_not_saved(tmp_path, model, change):
    place = change(model)
    with refused("unsavable_model", place):
        save_bundle(tmp_path / "new", model)
    assert not (tmp_path / "new").exists()


def test_hooks_dropout_and_precision_do_not_keep_a_model_from_being_saved(tmp_path, model):
    model.encoder.register_forward_hook(lambda *_: None)
    model.encoder.layers[0].add_and_norm[0].dropout.p = 0.3
    save_bundle(tmp_path / "new", model.bfloat16())
    assert load_bundle(tmp_path / "new").config == model.config


def test_a_model_that_could_not_be_loaded_again_is_not_saved(tmp_path, model):
    model.output_probabilities.weight = torch.nn.Parameter(model.output_probabilities.weight.clone())
    with refused("unsavable_model", "output_probabilities.weight"):
        save_bundle(tmp_path / "model", model)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, torch.ones(1)])
def test_metrics_that_json_cannot_hold_are_refused(tmp_path, model, value):
    with refused("bad_metrics", "metrics"):
        save_bundle(tmp_path / "model", model, metrics={"bleu": value})
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("name", ["metrics.json", "card.md", "manifest.json"])
def test_an_enormous_file_is_refused_unread(folder, name):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / name).touch()
    os.truncate(folder / name, 1 << 42)  # sparse: no disk has room for it
    if name != "manifest.json":
        manifest["files"][name] = {"size": 1 << 42, "sha256": "0" * 64}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    for read in (load_bundle, describe_bundle):
        with refused("damaged_model_folder", name):
            read(folder)
