"""A folder that is there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from regard.bundle.manifest import MANIFEST, read_manifest, unfinished
from regard.durable import sync_folder
from regard.errors import BundleError


def write_folder(folder: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write a folder beside its place, then rename it into it; a model folder there is swapped out.

    Until the last moment the old folder stays where it is. A process that is killed leaves at most a hidden
    folder behind: an unfinished new one, or the old one, complete, which `load_bundle` then points out.

    Raises:
        BundleError: something else is in the way, or the system refuses. What was there before still is.
    """
    try:
        replaced = is_replaceable(folder, overwrite)
        new, old = unfinished(folder, secrets.token_hex(4))
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.mkdir()
            for name, content in files.items():
                _write(new / name, content)
            sync_folder(new)
            _swap(folder, new, old if replaced else None)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise BundleError(f"cannot be written: {error.strerror or error}", str(folder)) from error
    shutil.rmtree(old, ignore_errors=True)


def is_replaceable(folder: Path, overwrite: bool) -> bool:
    """Whether something is there that may go; BundleError where it must stay."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise BundleError("cannot be written: a file of that name is in the way", str(folder))
    present = {entry.name for entry in folder.iterdir()}
    if not present:
        return True
    try:
        manifest = read_manifest(folder)
    except BundleError as error:
        kept = "something else is in the way, and is never replaced; choose another place"
        raise BundleError([kept, *error.problems], str(folder)) from error
    if not overwrite:
        raise BundleError(
            "there is a model already; choose another folder (in Python, overwrite=True replaces it)",
            str(folder),
        )
    if strangers := sorted(present - manifest.files.keys() - {MANIFEST}):
        kept = "is no part of the model, and would be lost with it; move it away"
        raise BundleError([f"{name} {kept}" for name in strangers], str(folder))
    return True


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _swap(folder: Path, new: Path, old: Path | None) -> None:
    """Put `new` in its place, and what was there, if it is to go, at `old`."""
    try:
        if old is not None:
            folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old is not None and old.exists() and not folder.exists():
            old.rename(folder)
        raise
    with suppress(OSError):  # it is written and in its place: no reason to say that it is not
        sync_folder(folder.parent)
