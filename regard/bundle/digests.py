"""Hashes of large files, and a quick check that notices most changes without reading a whole file."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO

from regard.durable import write_atomically

BLOCK, N_BLOCKS = 4096, 64
"""Bytes and number of the blocks that a sample reads."""
SETTLED_NS = 2_000_000_000
"""Age of a file's last change above which its times identify its content; clocks tick in steps."""


def sha256_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def sample_of(file: BinaryIO) -> str:
    """A hash of a file's size and of blocks spread over it, the first and the last included."""
    size = file.seek(0, os.SEEK_END)
    total = sha256(str(size).encode())
    last = max(0, size - BLOCK)
    for start in sorted({last * i // (N_BLOCKS - 1) for i in range(N_BLOCKS)}):
        file.seek(start)
        total.update(file.read(BLOCK))
    return total.hexdigest()


def remembered_sha256(path: Path, memory: Path) -> str:
    """The sha256 of a file, computed once and stored in the folder `memory`.

    The stored hash is used while the file has the same inode, size, times and sample. A change of content
    through the file system changes `ctime`, which a program cannot set.
    """
    path = path.resolve()
    place = memory / f"{sha256(os.fsencode(path)).hexdigest()[:32]}.json"
    before = _identity(path)
    with suppress(OSError, ValueError, RecursionError, AttributeError):
        known = json.loads(place.read_bytes())
        if known.get("identity") == before and isinstance(digest := known.get("sha256"), str):
            return digest
    digest = sha256_of(path)
    settled = time.time_ns() - max(before["mtime"], before["ctime"]) > SETTLED_NS
    if settled and _identity(path) == before:
        with suppress(OSError):  # the cache is read-only or full
            memory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(place, json.dumps({"identity": before, "sha256": digest}), sync=False)
    return digest


def _identity(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        facts, sample = os.fstat(file.fileno()), sample_of(file)
    return {
        "device": facts.st_dev,
        "inode": facts.st_ino,
        "size": facts.st_size,
        "mtime": facts.st_mtime_ns,
        "ctime": facts.st_ctime_ns,
        "sample": sample,
    }
