"""Files and folders that are there whole or not at all, and last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write_atomically(path: Path, text: str) -> None:
    """Write a text beside its place, and rename it into it."""
    with open_atomically(path) as file:
        file.write(text)


@contextmanager
def open_atomically(path: Path) -> Iterator[TextIO]:
    """Write a text bit by bit beside its place; when the block has ended well, it is renamed into it."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder last; a file's own sync keeps only what is in it."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
