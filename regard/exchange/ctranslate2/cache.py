"""A cache of CTranslate2 conversions: one folder each, named after everything that it depends on.

The cache is in `~/.cache/regard/ctranslate2`, or where `XDG_CACHE_HOME` or `REGARD_CACHE` says. It can be
removed at any time; a missing or damaged conversion is made again.

A model folder may come from anywhere, so nothing that it states about itself is believed: the hash of the
weights in a conversion's name is computed. A conversion has a digest of its files; sizes, times and samples
are checked on every use, the whole content by `regard doctor --deep`.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from regard.bundle.bundle import Description, describe_bundle
from regard.bundle.manifest import DAMAGED, MANIFEST, SHORTLIST, SUBWORDS, WEIGHTS, read_manifest
from regard.bundle.writing import write_folder
from regard.durable import make_folder, remove_abandoned, write_atomically
from regard.errors import BundleError
from regard.exchange.ctranslate2.convert import CANDIDATES, MODEL, SETTINGS, VOCABULARY, ctranslate2_files
from regard.exchange.ctranslate2.weights_file import Quantisation

CONVERTER = 2
"""Version of the conversion; increased when its result changes."""

DIGEST = "digest.json"
"""The file of a conversion with a hash and a sample of every other file; it is written last."""
BLOCK, N_BLOCKS = 4096, 64
"""Bytes and number of the blocks that a sample reads."""
SETTLED_NS = 2_000_000_000
"""Age of a file's last change above which its times identify its content; clocks tick in steps."""


def cache_folder() -> Path:
    """The folder of the cache."""
    if chosen := os.environ.get("REGARD_CACHE"):
        return Path(chosen) / "ctranslate2"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "regard" / "ctranslate2"


def converted(
    bundle: Description | Path | str, quantisation: Quantisation = "int8", *, bos: int, eos: int
) -> Path:
    """The CTranslate2 folder of a model folder, written on first use.

    Several processes may call this at once: all get a complete folder. If the cache cannot be written, the
    folder is temporary, removed when the process ends, and a warning says so.

    Raises:
        BundleError: the model folder is damaged.
        ConfigError: with every setting that CTranslate2 cannot express.
    """
    described = bundle if isinstance(bundle, Description) else describe_bundle(bundle)
    folder = cache_folder() / _name(described, quantisation, bos, eos)
    if not (problem := conversion_problem(folder)):
        return folder
    files = ctranslate2_files(described.folder, quantisation, bos=bos, eos=eos)
    files[DIGEST] = _digest_of(files)
    if folder.exists() and conversion_problem(folder):  # another process may have replaced it meanwhile
        warnings.warn(f"the cached conversion {folder} {problem}; it is made again", stacklevel=2)
        _remove(folder)
    remove_abandoned(folder.parent.glob(".*.new"))
    try:
        make_folder(folder.parent, mode=0o700)
        write_folder(folder, files, overwrite=False)
    except (BundleError, OSError) as error:
        if conversion_problem(folder) is None:  # another process has written it
            return folder
        warnings.warn(f"the conversion is not cached: {error}", stacklevel=2)
        return _temporary(files)
    return folder


def _name(described: Description, quantisation: Quantisation, bos: int, eos: int) -> str:
    """A hash of everything that the conversion depends on."""
    manifest = read_manifest(described.folder)
    hashes: dict[str, str] = {}
    for name in (WEIGHTS, SUBWORDS, SHORTLIST):
        if name not in manifest.files:
            continue
        hashes[name] = remembered_sha256(described.folder / name, cache_folder() / "hashes")
        if hashes[name] != manifest.files[name].sha256:
            problem = f"{name} has changed since it was saved: its sha256 is not the one in {MANIFEST}"
            raise BundleError(problem, str(described.folder), code=DAMAGED)
    inputs = [CONVERTER, hashes, asdict(described.config), bos, eos]
    return f"{sha256(json.dumps(inputs).encode()).hexdigest()[:32]}-{quantisation}"


def _digest_of(files: Mapping[str, bytes]) -> bytes:
    digests = {
        name: {"sha256": sha256(data).hexdigest(), "sample": sample_of(BytesIO(data))}
        for name, data in files.items()
    }
    return json.dumps(digests).encode()


def conversion_problem(folder: Path, *, deep: bool = False) -> str | None:
    """Why a conversion cannot be used; None if it can.

    A file that changed after the digest was written is read as a whole, and with `deep` every file.
    """
    if folder.is_symlink() or not folder.is_dir():
        return "is missing"
    try:
        digests = json.loads((folder / DIGEST).read_bytes())
        written = (folder / DIGEST).stat().st_mtime_ns
        for name in (MODEL, VOCABULARY, SETTINGS, *({CANDIDATES} & {*digests})):
            path, saved = folder / name, digests[name]
            with path.open("rb") as file:
                intact = sample_of(file) == saved["sample"]
            if intact and (deep or path.stat().st_mtime_ns > written):
                intact = sha256_of(path) == saved["sha256"]
            if not intact:
                return f"is damaged: {name} has changed"
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        return f"is incomplete: {type(error).__name__}"
    return None


def damaged_conversions() -> Iterator[str]:
    """The names of cached conversions that a whole reading finds damaged."""
    for folder in sorted(cache_folder().glob("*-*")):
        if conversion_problem(folder, deep=True):
            yield folder.name


def _remove(folder: Path) -> None:
    with suppress(OSError):
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink()
        else:
            shutil.rmtree(folder)


def _temporary(files: dict[str, bytes]) -> Path:
    parent = Path(tempfile.mkdtemp(prefix="regard-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    write_folder(parent / "ctranslate2", files, overwrite=False)
    return parent / "ctranslate2"


# --- hashes of large files ---------------------------------------------------------------------------------


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
