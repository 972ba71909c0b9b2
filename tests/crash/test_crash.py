"""Every file operation is interrupted: by SIGKILL, a power failure, an error, a full disk."""

import os
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from regard.durable import sync_folder
from tests.crash.file_layer import AVAILABLE, FileLayer, read_state
from tests.crash.interruptions import Scene, crashed, failed, record
from tests.crash.scenes import COMMANDS, NEW, NOTHING, OLD, RUNS
from tools import crash

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the file layer needs /proc")


QUICK = ("make a key file", "add a key", "revoke a key", "write a store", "replace a store")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in COMMANDS]
)
def test_a_command_can_be_interrupted_at_every_operation(tmp_path, name):
    scene, folder = COMMANDS[name], tmp_path / "folder"
    done = record(scene, folder)
    after_crashes = Counter(outcome.found for outcome in crashed(scene, folder, done, done.states))
    assert len(after_crashes) > 1
    assert after_crashes[done.result]
    errors = [*failed(scene, folder, done, range(len(done.operations)))]
    assert len(errors) == 2 * len(done.operations)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_ends_the_same_after_an_interruption(tmp_path, name):
    """At some operations; `python tools/crash.py` tries every one."""
    scene, folder = RUNS[name], tmp_path / "folder"
    done = record(scene, folder)
    n_operations, states = len(done.operations), list(done.states)
    assert n_operations > 300
    stages = Counter(outcome.found for outcome in crashed(scene, folder, done, states[5 :: len(states) // 7]))
    assert len(stages) > 3
    assert [*failed(scene, folder, done, range(n_operations // 5, n_operations, n_operations // 3))]


def test_the_tool_prints_what_was_found(capsys):
    assert crash.main(["add a key", "--kills", "0"]) == 0
    _, row, crashes, errors, _, end = capsys.readouterr().out.splitlines()
    n_operations = int(row.removeprefix("add a key").split()[0])
    assert crashes.split() == ["crashes:", str(n_operations - 1), "1", "keys,", "1", "2", "keys"]
    assert "keys (unwritable_file)" in errors
    assert end == "0 failures"


def test_the_tool_counts_failures(capsys, monkeypatch):
    careless = Scene(command=lambda folder: _write(folder / "file", sync=True), found=_read_file)
    monkeypatch.setitem(crash.COMMANDS, "write carelessly", careless)
    monkeypatch.setattr("tests.crash.interruptions.FileLayer.durable", lambda layer: read_state(layer.root))
    assert crash.main(["write carelessly", "--kills", "0"]) == 1
    assert "0 failures" not in capsys.readouterr().out


# --- the checks can fail -----------------------------------------------------------------------------------


def _problem(tmp_path, command):
    """Interrupt a command that writes one file; returns the first problem."""
    scene = Scene(
        prepare=lambda folder: (folder / "file").write_bytes(b"old"), command=command, found=_read_file
    )
    try:
        done = record(scene, tmp_path / "folder")
        list(crashed(scene, tmp_path / "folder", done, done.states))
        list(failed(scene, tmp_path / "folder", done, range(len(done.operations))))
    except (AssertionError, KeyError) as problem:
        return problem
    pytest.fail("nothing was noticed")


def test_half_a_file_is_noticed(tmp_path):
    problem = _problem(tmp_path, lambda folder: _write(folder / "file", sync=True))
    assert problem.__notes__ == ["the interruption: killed after truncate file"]


def test_a_rename_without_a_sync_of_the_content_is_noticed(tmp_path):
    def replace(folder):
        _write(folder / "other", sync=False)
        (folder / "other").rename(folder / "file")
        sync_folder(folder)

    problem = _problem(tmp_path, replace)
    assert isinstance(problem, KeyError)  # the file is empty
    assert not hasattr(problem, "__notes__")


def test_a_rename_that_a_power_failure_undoes_is_noticed(tmp_path):
    def replace(folder):
        _write(folder / "other", sync=True)
        (folder / "other").rename(folder / "file")

    assert "a power failure has undone what was done" in str(_problem(tmp_path, replace))


def test_an_error_that_is_not_reported_is_noticed(tmp_path):
    def replace(folder):
        with suppress(OSError):
            _write(folder / "other", sync=True)
            (folder / "other").rename(folder / "file")
            sync_folder(folder)

    problem = _problem(tmp_path, replace)
    assert "there was no error" in str(problem)
    assert problem.__notes__ == ["the interruption: create other fails"]


def test_what_is_written_past_the_layer_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match="written past the file layer: array"), FileLayer(tmp_path):
        np.memmap(tmp_path / "array", np.uint8, "w+", shape=(7,))[:] = 1


def test_the_layer_changes_nothing_but_what_fails(tmp_path):
    real, layered = tmp_path / "real", tmp_path / "layered"
    for folder in (real, layered):
        folder.mkdir()
    _many_operations(real)
    with FileLayer(layered):
        _many_operations(layered)
    assert read_state(layered) == read_state(real)


def _read_file(folder):
    content = (folder / "file").read_bytes() if (folder / "file").exists() else None
    return {None: NOTHING, b"old": OLD, b"new": NEW}[content]


def _write(path, *, sync):
    with path.open("wb") as file:
        file.write(b"new")
        if sync:
            file.flush()
            os.fsync(file.fileno())


def _many_operations(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "text").write_text("one\ntwo\n", encoding="utf-8")
    with (folder / "a" / "b" / "text").open("a", encoding="utf-8") as file:
        file.write("three\n")
    with (folder / "a" / "b" / "text").open("r+b") as file:
        file.seek(4)
        file.write(b"TWO")
    os.truncate(folder / "a" / "b" / "text", 11)
    shutil.copytree(
        folder / "a", folder / "c", copy_function=lambda a, b: Path(b).write_bytes(Path(a).read_bytes())
    )
    (folder / "c").rename(folder / "d")
    (folder / "a" / "b" / "text").replace(folder / "text")
    shutil.rmtree(folder / "a")
    (folder / "empty").touch()
    handle = os.open(folder / "low", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(handle, "wb") as file:
        file.write(b"7" * 20_011)
    (folder / "empty").unlink()
