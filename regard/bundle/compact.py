"""A model folder at a quarter of its size: the same model, with its matrices in 8 bits. No torch here."""

from __future__ import annotations

from pathlib import Path

from regard.bundle.arrays import int8_weights
from regard.bundle.bundle import describe_bundle
from regard.bundle.card import card
from regard.bundle.manifest import CARD, FORMAT, MANIFEST, WEIGHTS, intact_files, manifest_of, read_manifest
from regard.bundle.weights import hash_of
from regard.bundle.writing import write_folder
from regard.errors import BundleError


def compact(folder: Path | str, out: Path | str, *, notes: str = "", overwrite: bool = False) -> Path:
    """Write a model folder once more, whole or not at all, with every matrix in 8 bits and a scale a row.

    It is loaded like any other, and computes in float32 or in what its engine takes. `notes` are Markdown for
    its card.

    Raises:
        BundleError: the folder is damaged, or something is in the way of the new one.
    """
    folder, out = Path(folder), Path(out).resolve()
    described, problems = describe_bundle(folder), list[str]()
    files = dict(intact_files(folder, read_manifest(folder), problems))
    if problems:
        raise BundleError(problems, str(folder))
    files[WEIGHTS] = int8_weights(files[WEIGHTS], {"regard_format": str(FORMAT)})
    sizes = (described.n_parameters, "int8")
    files[CARD] = card(out.name, described.config, sizes, described.metrics, notes).encode()
    files[MANIFEST] = manifest_of(files, hash_of(files[WEIGHTS]))
    write_folder(out, files, overwrite=overwrite)
    return out
