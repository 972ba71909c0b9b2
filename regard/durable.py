"""Atomic writes: a file or folder is in its place complete, or not at all, even after a power failure."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

ABANDONED = 24 * 3600
"""Seconds after which an unfinished file or folder is removed; writing one takes less."""


def write_atomically(path: Path, content: str | bytes, *, sync: bool = True, mode: int = 0o666) -> None:
    """Write a file beside its place, and rename it into place.

    Without `sync` it survives a killed process, but perhaps not a power failure. `mode` is the access of the
    new file, from which the process's umask is subtracted.
    """
    with open_atomically(path, sync=sync, mode=mode) as file:
        file.write(content if isinstance(content, bytes) else content.encode("utf-8"))


@contextmanager
def open_atomically(path: Path, *, sync: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file beside its place; it is renamed into place when the block ends without an error."""
    with temporary_file(path, mode=mode) as partial:
        with partial.open("r+b") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        partial.replace(path)


@contextmanager
def temporary_file(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """A new, empty file beside a place, to be renamed to it; otherwise it is removed when the block ends.

    Its name is random, and it is created here: a link that somebody else put there is never followed.
    """
    remove_abandoned(path.parent, f".{path.name}.", ".partial")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), mode))
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def remove_abandoned(folder: Path, prefix: str, suffix: str) -> None:
    """Remove files and folders that killed processes left, by their names and age."""
    with suppress(OSError):
        for path in folder.iterdir():
            is_leftover = path.name.startswith(prefix) and path.name.endswith(suffix)
            if is_leftover and path.lstat().st_mtime < time.time() - ABANDONED:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for this path. A hidden lock file stays beside it."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path.with_name(f".{path.name}.lock"), flags, 0o600)
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        yield
    finally:
        os.close(handle)


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
