"""Writing a model folder: atomically, and never in place of anything else."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from regard.bundle.manifest import MANIFEST, read_manifest
from regard.durable import (
    hidden_folder,
    leftovers,
    make_folder,
    move_into_place,
    remove_abandoned,
    write_new_file,
)
from regard.errors import BundleError, reason


def write_folder(folder: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write files into a new folder beside its place, then rename it into place of a model folder or nothing.

    The old folder stays in place until the last moment. A killed process leaves at most a hidden folder: an
    unfinished new one, or the complete old one, which `load_bundle` then names.

    Raises:
        BundleError: something else is in the way, or the system refuses. What was there before is unchanged.
    """
    try:
        replace = check_replaceable(folder, overwrite)
        make_folder(folder.parent)
        remove_abandoned(leftovers(folder, ".new"))
        new = hidden_folder(folder)
        try:
            new.mkdir()
            for name, content in files.items():
                write_new_file(new / name, content)
            move_into_place(new, folder, replace=replace)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        problem = f"cannot be written: {reason(error)}"
        raise BundleError(problem, str(folder), code="unwritable_folder") from error


def check_replaceable(folder: Path, overwrite: bool) -> bool:
    """Whether there is something to replace.

    Raises:
        BundleError: it must not be replaced.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        problem = "cannot be written: there is a file of that name"
        raise BundleError(problem, str(folder), code="unwritable_folder")
    present = {entry.name for entry in folder.iterdir()}
    if not present:
        return True
    try:
        manifest = read_manifest(folder)
    except BundleError as error:
        problem = "the folder holds something else, which is never replaced; choose another folder"
        raise BundleError([problem, *error.problems], str(folder), code="folder_exists") from error
    if not overwrite:
        problem = "there is a model already; choose another folder (in Python, overwrite=True replaces it)"
        raise BundleError(problem, str(folder), code="folder_exists")
    if strangers := sorted(present - manifest.files.keys() - {MANIFEST}):
        problem = "is not part of the model, and would be lost; move it away"
        raise BundleError([f"{name} {problem}" for name in strangers], str(folder), code="folder_exists")
    return True
