"""A model folder is written atomically, and nothing else is ever lost."""

import errno
import json
import os
import resource
import subprocess
import sys
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
@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_when_the_system_refuses_nothing_is_left_behind(tmp_path, monkeypatch, model, there, call):
    place = tmp_path / "model"
    if there:
        save_bundle(place, model)
    before = contents(place) if there else None
    real, calls = {"fsync": os.fsync, "rename": Path.rename}.get(call), []

    def refuse(*arguments):
        calls.append(arguments)
        if len(calls) == 1 + there:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if call == "write":
            # A limit on the size of files lets the write itself fail, half-way.
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        else:
            monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "rename")), refuse)
        with refused("unwritable_folder", "File too large" if call == "write" else "No space left on device"):
            save_bundle(place, build(SMALL), overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        monkeypatch.undo()
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


# Replaces a folder again and again, in children that die one line later each time, until one survives.
KILLER = """
import json, os, signal, sys
from pathlib import Path
from regard import durable
from regard.bundle import writing
from regard.bundle.manifest import manifest_of, read_manifest
from regard.errors import BundleError

def die_after(lines):
    def count(frame, event, _):
        nonlocal lines
        if frame.f_code.co_filename not in (writing.__file__, durable.__file__):
            return None
        lines -= event == "line"
        if lines < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return count
    sys.settrace(count)

def save(place, version):
    files = {"model.safetensors": version.encode(), "config.toml": b"", "card.md": b""}
    files["manifest.json"] = manifest_of(files, version)
    writing.write_folder(place, files, overwrite=True)

def saved(place):
    version = read_manifest(place).weights_hash
    assert (place / "model.safetensors").read_text() == version
    assert len(os.listdir(place)) == 4
    return version

found, status = [], None
while status != 0:
    place = Path(sys.argv[1]) / str(len(found)) / "model"
    save(place, "old")
    if (child := os.fork()) == 0:
        die_after(len(found))
        save(place, "new")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if place.exists():
        found.append(saved(place))
    else:
        (waiting,) = place.parent.glob(".model.*.old")
        try:
            read_manifest(place)
        except BundleError as error:
            assert str(waiting) in str(error)
        found.append("beside it: " + saved(waiting))
print(json.dumps(found))
"""


def test_a_process_killed_at_any_line_leaves_the_old_folder_or_the_new_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLER, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 40
    assert list(dict.fromkeys(found)) == ["old", "beside it: old", "new"]


def test_a_model_killed_in_the_middle_of_the_swap_is_pointed_out(folder):
    folder.rename(folder.with_name(".model.0a1b2c3d.old"))
    _, hint = refusal(folder, "missing_model")
    assert ".model.0a1b2c3d.old" in hint


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
