import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from regard.training.checkpoints.run_folder import LOCK, locked
from tests.refusals import refused

HOLD = """
import sys, time
from pathlib import Path
from regard.training.checkpoints.run_folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process, which holds the lock of `tmp_path / "run"`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def test_a_folder_in_use_is_refused_with_the_process_until_that_is_killed(tmp_path, holder):
    with (
        refused("folder_locked", f"process {holder.pid} on ", str(tmp_path / "run")),
        locked(tmp_path / "run"),
    ):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with locked(tmp_path / "run"):
        assert f"process {os.getpid()} on" in (tmp_path / "run" / LOCK).read_text()


def test_a_lock_is_let_go_at_the_end_of_its_block(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            pass
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path):
        pass


def test_the_first_of_several_processes_locks_for_all(tmp_path, monkeypatch, holder):
    monkeypatch.setenv("RANK", "1")
    with locked(tmp_path / "run"):
        assert str(holder.pid) in (tmp_path / "run" / LOCK).read_text()
    monkeypatch.setenv("RANK", "0")
    with refused("folder_locked"), locked(tmp_path / "run"):
        pass


def test_a_folder_that_cannot_be_locked_is_used_with_a_warning(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    messages = []
    with locked(tmp_path, messages.append):
        assert len(messages) == 1
    assert "cannot be locked" in messages[0]
    assert "No locks available" in messages[0]
