"""Model folders on their way to other machines, which need not see the disk that they lie on."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from regard.bundle.manifest import MANIFEST, intact_files, read_manifest
from regard.bundle.writing import write_folder
from regard.engine.loading import BEST, model_folder
from regard.errors import BundleError
from regard.exchange.ctranslate2.cache import cache_folder


class Parcel(NamedTuple):
    """A model folder, by the path that it has here and by what is in it."""

    path: Path
    """As it was named: a model folder, or a run's."""
    manifest: bytes
    """Which lists the hash of every other file, and so stands for all of them."""
    files: Any
    """Where Ray keeps their contents; None where all machines see the path."""

    @property
    def key(self) -> str:
        """A name for what is in it."""
        return sha256(self.manifest).hexdigest()


def packed(path: Path, ray: Any = None) -> Parcel:
    """A parcel of a model folder; with `ray`, its files are put where all machines of the cluster find them.

    Raises:
        BundleError: the folder is missing or damaged.
    """
    folder = model_folder(path).resolve()
    path = path.resolve() if path.exists() else folder  # a bundled one is known by its name
    manifest, problems = read_manifest(folder), list[str]()
    files = None if ray is None else dict(intact_files(folder, manifest, problems))
    if problems:
        raise BundleError(problems, str(folder))
    content = (folder / MANIFEST).read_bytes()
    return Parcel(path, content, None if ray is None else ray.put(files))


def unpacked(parcel: Parcel) -> Path:
    """The model on this machine: at its own path, where that holds the same, or a copy in the cache.

    Raises:
        BundleError: it is not here, and cannot be written.
    """
    if _holds(model_folder(parcel.path), parcel):
        return parcel.path
    if parcel.files is None:
        raise BundleError("is not this model any more: it was changed in the meantime", str(parcel.path))
    copy = cache_folder().parent / "models" / parcel.key[:32] / _name(parcel.path)
    if not _holds(copy, parcel):
        import ray

        try:
            write_folder(copy, {**ray.get(parcel.files), MANIFEST: parcel.manifest}, overwrite=True)
        except BundleError:
            if not _holds(copy, parcel):  # else another worker was quicker
                raise
    return copy


def _holds(folder: Path, parcel: Parcel) -> bool:
    try:
        return (folder / MANIFEST).read_bytes() == parcel.manifest
    except OSError:
        return False


def _name(path: Path) -> str:
    """What a model is called: a server goes by it."""
    return path.parent.name if path.name in (BEST, "last") else path.name
