"""Atomic writes: a file or folder is in its place complete, or not at all, even after a power failure."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

ABANDONED = 24 * 3600
"""Seconds after which an unfinished file or folder is removed; writing one takes less."""
LEFTOVER = re.compile(r"\.(.+)\.[0-9a-f]+(\.new|\.old|\.partial)")
"""Names of unfinished folders, replaced folders and unfinished files, around the name of the finished one."""


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
    if sync:
        sync_folder(path.parent)


@contextmanager
def temporary_file(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """A new, empty file beside a place, to be renamed to it; otherwise it is removed when the block ends.

    Its name is random, and it is created here: a link that somebody else put there is never followed.
    """
    remove_abandoned(leftovers(path, ".partial"))
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), mode))
    try:
        yield partial
    finally:
        _remove(partial)


def leftovers(path: Path, suffix: str) -> list[Path]:
    """What killed processes left beside a place.

    These are unfinished folders (`.new`) or files (`.partial`), or folders that were being replaced (`.old`).
    """
    beside: list[Path] = []
    with suppress(OSError):  # one may be allowed to write into a folder, but not to list it
        beside += path.parent.iterdir()
    names = ((each, LEFTOVER.fullmatch(each.name)) for each in beside)
    return [each for each, found in names if found and found.groups() == (path.name, suffix)]


def remove_abandoned(paths: Iterable[Path]) -> None:
    """Remove those of these files and folders that are so old that nobody is writing them."""
    for path in paths:
        with suppress(OSError):
            if path.lstat().st_mtime < time.time() - ABANDONED:
                _remove(path)


def sweep(folder: Path) -> None:
    """Remove what killed processes left anywhere in a folder, where nobody else may be writing.

    A folder that was being replaced, and whose place is empty, is renamed back.
    """
    for path in list(folder.rglob(".*")):
        if found := LEFTOVER.fullmatch(path.name):
            place = path.with_name(found[1])
            if path.suffix == ".old" and path.exists() and not place.exists():
                path.rename(place)
            else:
                _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or a folder, as far as the system lets us."""
    with suppress(OSError):
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


def move_into_place(new: Path, folder: Path, *, replace: bool) -> None:
    """Rename a finished folder into place, and remove the one that it replaces, if any.

    A process killed halfway leaves the old folder, complete, beside its place under a name in `.old`. After
    an error the old folder is in its place.
    """
    sync_folder(new)
    old, in_place = new.with_suffix(".old"), False
    try:
        if replace:
            with suppress(FileNotFoundError):
                folder.rename(old)
        new.rename(folder)
        in_place = True
        sync_folder(folder.parent)  # until then, a power failure may bring the old one back
    except BaseException:
        if in_place:
            folder.rename(new)
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    for left in leftovers(folder, ".old"):
        _remove(left)


def remove_folder(folder: Path) -> None:
    """Remove a folder. It is renamed first: a killed process leaves no incomplete one in its place."""
    with suppress(OSError):
        _remove(folder.rename(hidden_folder(folder)))


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder, with access `mode`, and the missing ones above it; wait until they are on disk."""
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the file names in a folder are on disk; syncing a file covers its content only."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # as in `leftovers`
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network drives cannot sync folders
            raise
    finally:
        os.close(handle)
