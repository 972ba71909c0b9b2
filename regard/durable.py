"""Atomic writes: a file or folder is in its place complete, or not at all, even after a power failure."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


def write_atomically(path: Path, text: str) -> None:
    """Write a text file beside its place, and rename it into place."""
    with open_atomically(path) as file:
        file.write(text)


@contextmanager
def open_atomically(path: Path) -> Iterator[TextIO]:
    """Open a text file beside its place; it is renamed into place when the block ends without an error."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_new_file(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet, and wait until it is on disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def hidden_folder(folder: Path) -> Path:
    """Where a folder is written before `move_into_place`: hidden, beside its place, not yet created."""
    return folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.new")


def leftovers(folder: Path, suffix: str) -> list[Path]:
    """What killed processes left beside a folder: unfinished ones (`.new`), or replaced ones (`.old`)."""
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    return [path for path in beside if path.name.startswith(f".{folder.name}.") and path.suffix == suffix]


def move_into_place(new: Path, folder: Path, *, replace: bool) -> None:
    """Rename a finished folder into place, and remove the one that it replaces, if any.

    A process killed halfway leaves the old folder, complete, beside its place under a name in `.old`.
    """
    sync_folder(new)
    old = new.with_suffix(".old")
    try:
        if replace:
            with suppress(FileNotFoundError):
                folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    with suppress(OSError):  # the folder is complete and in place, so this is no failure
        sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Wait until the file names in a folder are on disk; syncing a file covers its content only."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
