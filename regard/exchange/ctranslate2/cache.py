"""Conversions, kept for the next time: each in a folder of its own, named after all that decides it.

They lie in `~/.cache/regard/ctranslate2`, where `XDG_CACHE_HOME` says, or under `REGARD_CACHE`. Nothing in
there is needed: what is removed is made again.
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
"""Grows when the same model folder would be converted to something else."""

ABANDONED = 24 * 3600
"""Seconds after which an unfinished folder belongs to nobody: writing one takes less than a minute."""


def cache_folder() -> Path:
    """Where conversions are kept."""
    if chosen := os.environ.get("REGARD_CACHE"):
        return Path(chosen) / "ctranslate2"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "regard" / "ctranslate2"


def converted(
    bundle: Description | Path | str, quantisation: Quantisation = "int8", *, bos: int, eos: int
) -> Path:
    """The CTranslate2 folder of a model folder, written on first use.

    Several processes may ask at once: each gets a whole folder. Where the cache cannot be written, the folder
    is a temporary one, gone when the process ends, and a warning says so.

    Raises:
        BundleError: the model folder is damaged.
        ConfigError: with every setting that CTranslate2 cannot express.
    """
    described = bundle if isinstance(bundle, Description) else describe_bundle(bundle)
    folder = cache_folder() / _name(described, quantisation, bos, eos)
    if _is_whole(folder):
        return folder
    files = ctranslate2_files(described.folder, quantisation, bos=bos, eos=eos)
    _sweep(folder)
    try:
        write_folder(folder, files, overwrite=False)
    except BundleError as error:
        if _is_whole(folder):  # another process was quicker
            return folder
        warnings.warn(f"conversions cannot be kept, and this one is for now only: {error}", stacklevel=2)
        return _for_this_process(files)
    return folder


def _name(described: Description, quantisation: Quantisation, bos: int, eos: int) -> str:
    """A name that changes with everything that the conversion depends on."""
    manifest, config = read_manifest(described.folder), described.config
    subwords = manifest.files.get(SUBWORDS)
    decisive = [CONVERTER, manifest.weights_hash, asdict(config), subwords and subwords.sha256, bos, eos]
    return f"{sha256(json.dumps(decisive).encode()).hexdigest()[:32]}-{quantisation}"


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (MODEL, VOCABULARY, SETTINGS))


def _sweep(folder: Path) -> None:
    """Clear the way: what is left of a spoilt folder, and of processes that were killed while writing one."""
    with suppress(OSError):
        if folder.exists() and not _is_whole(folder):  # a whole one may have come in the meantime
            shutil.rmtree(folder)
        for path in folder.parent.glob(".*.new"):
            if path.stat().st_mtime < time.time() - ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


def _for_this_process(files: dict[str, bytes]) -> Path:
    parent = Path(tempfile.mkdtemp(prefix="regard-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    write_folder(parent / "ctranslate2", files, overwrite=False)
    return parent / "ctranslate2"
