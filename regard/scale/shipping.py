"""Send model folders to machines of a cluster that do not share a disk."""

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
    """A model folder to send: its path on this machine, and its content."""

    path: Path
    """The path as the user gave it: of a model folder, or a run's."""
    manifest: bytes
    """The manifest lists the hash of every other file, so it identifies them all."""
    files: Any
    """Ray's reference to the contents of all files; None on a local cluster."""

    @property
    def key(self) -> str:
        """Identifies the content."""
        return sha256(self.manifest).hexdigest()


def packed(path: Path, ray: Any = None) -> Parcel:
    """The parcel of a model folder; with `ray`, its files go into the object store of the cluster.

    Raises:
        BundleError: the folder is missing or damaged.
    """
    folder = model_folder(path).resolve()
    path = path.resolve() if path.exists() else folder  # a bundled model is given by name
    manifest, problems = read_manifest(folder), list[str]()
    files = None if ray is None else dict(intact_files(folder, manifest, problems))
    if problems:
        raise BundleError(problems, str(folder), code="damaged_model_folder")
    content = (folder / MANIFEST).read_bytes()
    return Parcel(path, content, None if ray is None else ray.put(files))


def unpacked(parcel: Parcel) -> Path:
    """The model's path on this machine: its own if the content is the same there, or a copy in the cache.

    Raises:
        BundleError: the model is not here, and a copy cannot be written.
    """
    if _holds(model_folder(parcel.path), parcel):
        return parcel.path
    if parcel.files is None:
        raise BundleError("the model was changed while it was in use", str(parcel.path), code="changed_model")
    copy = cache_folder().parent / "models" / parcel.key[:32] / _name(parcel.path)
    if not _holds(copy, parcel):
        import ray

        try:
            write_folder(copy, {**ray.get(parcel.files), MANIFEST: parcel.manifest}, overwrite=True)
        except BundleError:
            if not _holds(copy, parcel):  # otherwise another worker has written it meanwhile
                raise
    return copy


def _holds(folder: Path, parcel: Parcel) -> bool:
    try:
        return (folder / MANIFEST).read_bytes() == parcel.manifest
    except OSError:
        return False


def _name(path: Path) -> str:
    """The name of a model, as a server shows it."""
    return path.parent.name if path.name in (BEST, "last") else path.name
