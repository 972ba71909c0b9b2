"""A cache of CTranslate2 conversions: one folder each, named after everything that it depends on.

The cache is in `~/.cache/regard/ctranslate2`, or where `XDG_CACHE_HOME` or `REGARD_CACHE` says. It can be
removed at any time; a missing conversion is made again.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from regard.bundle.bundle import Description, describe_bundle
from regard.bundle.manifest import SUBWORDS, read_manifest
from regard.bundle.writing import write_folder
from regard.errors import BundleError
from regard.exchange.ctranslate2.convert import MODEL, SETTINGS, VOCABULARY, ctranslate2_files
from regard.exchange.ctranslate2.weights_file import Quantisation

CONVERTER = 1
"""Version of the conversion; increased when its result changes."""

ABANDONED = 24 * 3600
"""Seconds after which an unfinished folder is removed; writing one takes less than a minute."""


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
    if _is_complete(folder):
        return folder
    files = ctranslate2_files(described.folder, quantisation, bos=bos, eos=eos)
    _sweep(folder)
    try:
        write_folder(folder, files, overwrite=False)
    except BundleError as error:
        if _is_complete(folder):  # another process has written it meanwhile
            return folder
        warnings.warn(f"the conversion is not cached: {error}", stacklevel=2)
        return _temporary(files)
    return folder


def _name(described: Description, quantisation: Quantisation, bos: int, eos: int) -> str:
    """A hash of everything that the conversion depends on."""
    manifest, config = read_manifest(described.folder), described.config
    subwords = manifest.files.get(SUBWORDS)
    inputs = [CONVERTER, manifest.weights_hash, asdict(config), subwords and subwords.sha256, bos, eos]
    return f"{sha256(json.dumps(inputs).encode()).hexdigest()[:32]}-{quantisation}"


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (MODEL, VOCABULARY, SETTINGS))


def _sweep(folder: Path) -> None:
    """Remove an incomplete folder, and what killed processes left behind."""
    with suppress(OSError):
        if folder.exists() and not _is_complete(folder):  # another process may have completed it
            shutil.rmtree(folder)
        for path in folder.parent.glob(".*.new"):
            if path.stat().st_mtime < time.time() - ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


def _temporary(files: dict[str, bytes]) -> Path:
    parent = Path(tempfile.mkdtemp(prefix="regard-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    write_folder(parent / "ctranslate2", files, overwrite=False)
    return parent / "ctranslate2"
