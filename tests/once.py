"""Folders that take seconds to make: made once for all test processes, then copied."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

SHARED: list[Path] = []
"""The folder that all processes of a test session share; `tests/conftest.py` sets it."""


def share_in(base: Path) -> None:
    """Choose the shared folder: pytest-xdist gives each of its processes a folder of its own inside one."""
    SHARED[:] = [base.parent if "PYTEST_XDIST_WORKER" in os.environ else base]


def copy_of(name: str, make: Callable[[Path], object], place: Path) -> Path:
    """Copy what `make` writes into a folder to `place`; the first process makes it, the others wait."""
    (shared,) = SHARED
    made = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = shared / f"{name}.unfinished"
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(made)
    shutil.copytree(made, place, symlinks=True, dirs_exist_ok=True)
    return place
