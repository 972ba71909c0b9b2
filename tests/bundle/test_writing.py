"""A model folder is written whole or not at all, and nothing else is lost by it."""

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

from regard.bundle import load_bundle, save_bundle, weights_hash
from regard.errors import BundleError
from regard.model.build import build
from tests.bundle.folders import (
    SMALL,
    contents,
    names_in,
    refusal,
)


def test_a_model_is_replaced_only_when_asked_to(folder, model):
    before = contents(folder)
    with pytest.raises(
        BundleError, match=r"there is a model already; choose another folder .*overwrite=True"
    ):
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
    with pytest.raises(BundleError, match="something else is in the way, and is never replaced"):
        save_bundle(tmp_path / "mine", model, overwrite=True)
    assert contents(tmp_path / "mine") == {name: b"{}"}
    assert names_in(tmp_path) == ["mine"]


def test_the_root_of_all_folders_is_not_replaced_either(model):
    with pytest.raises(BundleError, match="something else is in the way"):
        save_bundle("/", model, overwrite=True)


def test_files_that_somebody_put_beside_the_model_are_not_lost(folder, model):
    (folder / "notes.txt").write_text("dear")
    (folder / "checkpoints").mkdir()
    with pytest.raises(BundleError, match="2 problems") as caught:
        save_bundle(folder, model, overwrite=True)
    assert [problem.split()[0] for problem in caught.value.problems] == ["checkpoints", "notes.txt"]
    assert (folder / "notes.txt").read_text() == "dear"


def test_a_file_in_the_way_stays(tmp_path, model):
    (tmp_path / "file").write_text("dear")
    for place in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(BundleError, match="cannot be written"):
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
        with pytest.raises(BundleError, match=r"cannot be written: (No space left on device|File too large)"):
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
        with pytest.raises(BundleError, match="cannot be written: Permission denied"):
            save_bundle(tmp_path / "model", model)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(folder):
    (folder / "card.md").chmod(0)
    assert refusal(folder) == ["card.md cannot be read: Permission denied"]
    folder.chmod(0)
    assert refusal(folder) == ["cannot be read: Permission denied"]
    folder.chmod(0o700)


def test_an_interrupt_while_saving_leaves_the_old_model(folder, monkeypatch, model):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_bundle(folder, build(SMALL), overwrite=True)
    assert weights_hash(load_bundle(folder).model) == weights_hash(model)
    assert names_in(folder.parent) == ["model"]


# Replaces a model again and again, in children that die one line later each time, until one lives.
KILLER = """
import json, os, shutil, signal, sys
from pathlib import Path
from regard.bundle import load_bundle, save_bundle, weights_hash, writing
from regard.errors import BundleError
from regard.model.build import build
from tests.bundle.folders import SMALL

def die_after(lines):
    def count(frame, event, _):
        nonlocal lines
        if frame.f_code.co_filename != writing.__file__:
            return None
        lines -= event == "line"
        if lines < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return count
    sys.settrace(count)

old, new = build(SMALL), build(SMALL)
names = {weights_hash(old): "old", weights_hash(new): "new"}
found, status = [], None
while status != 0:
    place = Path(sys.argv[1]) / str(len(found)) / "model"
    save_bundle(place, old)
    if (child := os.fork()) == 0:
        die_after(len(found))
        save_bundle(place, new, overwrite=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if place.exists():
        found.append(names[weights_hash(load_bundle(place).model)])
    else:
        try:
            load_bundle(place)
        except BundleError as error:
            assert "rename it back" in error.problems[1]
        (waiting,) = place.parent.glob(".model.*.old")
        found.append("beside it: " + names[weights_hash(load_bundle(waiting).model)])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_process_killed_at_any_line_leaves_the_old_model_or_the_new_one(tmp_path):
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
    first, second = refusal(folder)
    assert first == "there is no such folder"
    assert ".model.0a1b2c3d.old holds the model that an interrupted save was about to replace" in second


def test_a_model_that_could_not_be_loaded_again_is_not_saved(tmp_path, model):
    model.output_probabilities.weight = torch.nn.Parameter(model.output_probabilities.weight.clone())
    with pytest.raises(
        BundleError, match=r"cannot be saved: weight output_probabilities\.weight is unexpected"
    ):
        save_bundle(tmp_path / "model", model)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, torch.ones(1)])
def test_metrics_that_json_cannot_hold_are_refused(tmp_path, model, value):
    with pytest.raises(BundleError, match="metrics cannot be saved as JSON"):
        save_bundle(tmp_path / "model", model, metrics={"bleu": value})
    assert names_in(tmp_path) == []
