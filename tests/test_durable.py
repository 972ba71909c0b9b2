"""Files are written atomically, under names that nobody can guess or prepare."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from regard import durable
from regard.durable import ABANDONED, leftovers, open_atomically, sweep, temporary_file, write_atomically
from regard.serve.http.keys import new_key, read_keys
from tests.architecture.sources import ROOT
from tests.programs import run_regard
from tests.refusals import refused


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path):
    write_atomically(tmp_path / "file", "old")
    with suppress(KeyboardInterrupt), open_atomically(tmp_path / "file") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "file").read_text() == "old"
    assert names_in(tmp_path) == ["file"]


def test_links_that_wait_at_temporary_names_are_not_followed(tmp_path, monkeypatch):
    (tmp_path / "victim").write_text("precious")
    monkeypatch.setattr(durable.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".file.guessed.partial").symlink_to(tmp_path / "victim")
    (tmp_path / ".file.partial").symlink_to(tmp_path / "victim")  # the name of earlier versions
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "victim").read_text() == "precious"


def test_temporary_names_differ(tmp_path):
    with temporary_file(tmp_path / "file") as one, temporary_file(tmp_path / "file") as other:
        assert one != other
        assert one.parent == other.parent == tmp_path
    assert names_in(tmp_path) == []


def test_what_killed_processes_left_is_removed_when_it_is_old(tmp_path):
    old, young, foreign = (
        tmp_path / name for name in (".file.1.partial", ".file.2.partial", ".other.3.partial")
    )
    for path in (old, young, foreign):
        path.write_bytes(b"half")
    for path in (old, foreign):
        os.utime(path, (time.time() - ABANDONED - 60,) * 2)
    write_atomically(tmp_path / "file", "new")
    assert names_in(tmp_path) == [young.name, foreign.name, "file"]


def test_leftovers_are_those_of_one_place(tmp_path):
    names = [".store.0a.new", ".store.1b.old", ".store.2c.partial"]
    others = [".store.v2.3d.new", ".store.4e.old.txt", ".store.new", "store.5f.new", ".stores.6a.new"]
    for name in [*names, *others]:
        (tmp_path / name).mkdir()
    found = [leftovers(tmp_path / "store", suffix) for suffix in (".new", ".old", ".partial")]
    assert [[path.name for path in paths] for paths in found] == [[name] for name in names]
    assert leftovers(tmp_path / "nowhere" / "store", ".new") == []


def test_a_sweep_removes_what_is_unfinished_and_restores_what_was_about_to_be_replaced(tmp_path):
    for name in (".best.0a.old", ".last.1b.old", "last", "data/.train.2c.new", "checkpoints/step-1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(name)
    for name in (".config.toml.3d.partial", "data/.key.4e.partial", ".lock"):
        (tmp_path / name).touch()
    sweep(tmp_path)
    files = {
        str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()
    }
    assert files == {
        "best/file": ".best.0a.old",
        "last/file": "last",
        "checkpoints/step-1/file": "checkpoints/step-1",
        ".lock": "",
    }


def test_a_key_file_that_cannot_be_written_is_refused(tmp_path):
    with refused("unwritable_file", str(tmp_path / "nowhere" / "keys"), "No such file or directory"):
        new_key(tmp_path / "nowhere" / "keys", "one")


def test_keys_that_are_added_at_the_same_time_are_all_kept(tmp_path):
    names = [f"key {i}" for i in range(24)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: new_key(tmp_path / "keys", name), names))
    assert sorted(key.name for key in read_keys(tmp_path / "keys")) == sorted(names)
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_a_device_without_an_end_is_refused(tmp_path):
    result = run_regard("train", "/dev/zero", "/dev/zero", "--out", str(tmp_path / "run"))
    assert result.returncode == 2
    assert "/dev/zero: is a device" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_terminated_program_removes_its_temporary_files(tmp_path):
    program = "from regard.cli.program import main; main()"
    arguments = ["train", "--task", "generate", "-", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    (tmp_path / "scratch").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, cwd=ROOT, env=environment
    ) as process:
        process.stdin.write(b"a line\n" * 100_000)
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not any(path.is_file() for path in tmp_path.rglob("*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [path for path in tmp_path.rglob("*") if path.is_file()]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
