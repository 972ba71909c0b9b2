"""The manifest of a model folder, and the checks of its files against it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard import bundled
from regard.config.checking import did_you_mean
from regard.durable import leftovers
from regard.errors import BundleError
from regard.version import __version__

FORMAT = 1

DAMAGED = "damaged_model_folder"
"""The error code of a model folder with missing or changed files."""

WEIGHTS, CONFIG, SUBWORDS = "model.safetensors", "config.toml", "subwords.model"
METRICS, CARD, MANIFEST = "metrics.json", "card.md", "manifest.json"
ALIGNMENT, LABELS, SHORTLIST = "alignment.json", "labels.json", "shortlist.safetensors"
REQUIRED = (WEIGHTS, CONFIG)
IN_A_RUN = ".lock"
"""A file that every folder of a run holds."""

MOST_BYTES = 64 << 20
"""Size of the largest file that is read, except the weights: the size in a manifest may be anything."""

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

# The first pattern that matches names the kind of folder; some folders match several.
FOREIGN = {
    IN_A_RUN: "a run without a model so far, which the same `regard train` command continues",
    "*vocabulary.*": "a CTranslate2 folder",
    "config.json": "a Hugging Face folder, which `regard import` converts",
    "*.npz": "a Marian folder",
    "*.onnx": "an ONNX export",
    "*.pt": "a PyTorch checkpoint, which can execute code and is not opened",
    "*.ckpt": "a PyTorch checkpoint, which can execute code and is not opened",
    "*.bin": "a PyTorch checkpoint, which can execute code and is not opened",
}


@dataclass(frozen=True, slots=True)
class SavedFile:
    """Size and hash of a file when it was saved."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `manifest.json`: what was saved, and by which version."""

    format: int
    regard: str
    weights_hash: str
    files: dict[str, SavedFile]


def manifest_of(files: Mapping[str, bytes], weights_hash: str) -> bytes:
    """The manifest of these files, as JSON."""
    entries = {name: {"size": len(data), "sha256": sha256(data).hexdigest()} for name, data in files.items()}
    table = {"format": FORMAT, "regard": __version__, "weights_hash": weights_hash, "files": entries}
    return (json.dumps(table, indent=2) + "\n").encode()


def named_folder(path: Path | str) -> Path:
    """The folder of a bundled model if a path is its name and does not exist; otherwise the path.

    Raises:
        ConfigError: it is the name of the default model, which this installation lacks.
    """
    path = Path(path)
    if not path.exists() and str(path) in (bundled.DEFAULT, *bundled.names()):
        return bundled.folder(str(path))
    return path


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a model folder.

    Raises:
        BundleError: this is not a model folder, or one of a newer format.
    """
    try:
        _check_is_model_folder(folder)
        if (size := (folder / MANIFEST).stat().st_size) > MOST_BYTES:
            raise BundleError(f"{MANIFEST} has {size:,} bytes", str(folder), code=DAMAGED)
        table = json.loads((folder / MANIFEST).read_bytes())
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise BundleError(problem, str(folder), code="unreadable_file") from error
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{MANIFEST} is not JSON: {error}", str(folder), code=DAMAGED) from error
    match table:
        case {"format": int(number)} if number > FORMAT:
            newer = f"its format is {number}, written by regard {table.get('regard')}"
            ours = f"this is regard {__version__}, which reads format {FORMAT}: upgrade regard"
            raise BundleError(f"{newer}; {ours}", str(folder), code="newer_format")
        case {
            "format": int(number),
            "regard": str(version),
            "weights_hash": str(digest),
            "files": dict(files),
        }:
            entries = {name: file for name, entry in files.items() if (file := _parse_file(entry))}
            if len(entries) == len(files):
                return Manifest(number, version, digest, entries)
    raise BundleError(f"{MANIFEST} is damaged, or not that of a model folder", str(folder), code=DAMAGED)


def _parse_file(entry: Any) -> SavedFile | None:
    match entry:
        case {"size": int(size), "sha256": str(digest)}:
            return SavedFile(size, digest)
    return None


def _check_is_model_folder(folder: Path) -> None:
    where = str(folder)
    if folder.is_file():
        raise BundleError("is a file; a model is a folder", where, code="not_a_model_folder")
    if not folder.is_dir():
        rescue = "holds the model that an interrupted save was about to replace: rename it back"
        absent = "there is no such folder"
        if folder.name == where and (names := bundled.names()):  # it may be meant as a name
            absent += f", and the models included here are {', '.join(names)}{did_you_mean(where, names)}"
        problems = [absent, *(f"but {old} {rescue}" for old in leftovers(folder, ".old"))]
        raise BundleError(problems, where, code="missing_model")
    if problem := _place_problem(folder, MANIFEST):
        missing = [name for name in REQUIRED if not (folder / name).is_file()]
        # Folders of other programs have a model.safetensors, too; a run has a config.toml.
        if CONFIG not in missing and not (folder / IN_A_RUN).exists():
            raise BundleError([problem, *(f"{name} is missing" for name in missing)], where, code=DAMAGED)
        problem = f"is not a model folder: {problem}; {_looks_like(folder)}"
        raise BundleError(problem, where, code="not_a_model_folder")


def _looks_like(folder: Path) -> str:
    for pattern, kind in FOREIGN.items():
        if file := next(folder.glob(pattern), None):
            return f"it looks like {kind} ({file.name})"
    names = sorted(entry.name for entry in folder.iterdir())
    return f"it holds {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else "it is empty"


def file_problems(folder: Path, manifest: Manifest) -> dict[str, str]:
    """Problems of the files, by name, as far as they show without reading them."""
    names = [*manifest.files, *(name for name in REQUIRED if name not in manifest.files)]
    return {name: problem for name in names if (problem := _file_problem(folder, manifest, name))}


def _file_problem(folder: Path, manifest: Manifest, name: str) -> str | None:
    if not PLAIN_NAME.fullmatch(name):
        return f"{MANIFEST} lists {name!r}, which is not a plain file name"
    if problem := _place_problem(folder, name):
        return problem
    if name not in manifest.files:
        return f"{name} is not listed in {MANIFEST}"
    size, saved = (folder / name).stat().st_size, manifest.files[name].size
    if size > MOST_BYTES and name != WEIGHTS:
        return f"{name} has {size:,} bytes; at most {MOST_BYTES:,} are read"
    return None if size == saved else f"{name} has {size:,} bytes; {saved:,} were saved"


def _place_problem(folder: Path, name: str) -> str | None:
    """A file must be in the folder itself: a link could load a file from elsewhere."""
    if not (folder / name).is_file():
        return f"{name} is missing"
    inside = (folder / name).resolve().parent == folder.resolve()
    return None if inside else f"{name} is a link to outside the folder"


def content_of(folder: Path, name: str, problems: list[str]) -> bytes | None:
    """The content of a file; None, with a problem added, where it cannot be read."""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        problems.append(f"{name} cannot be read: {error.strerror}")
    except MemoryError:
        problems.append(f"{name} does not fit into memory")
    return None


def intact_files(folder: Path, manifest: Manifest, problems: list[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file that is as it was saved; problems of the others are added."""
    before = file_problems(folder, manifest)
    problems += before.values()
    for name in [name for name in manifest.files if name not in before]:
        content = content_of(folder, name, problems)
        if content is not None and sha256(content).hexdigest() == manifest.files[name].sha256:
            yield name, content
        elif content is not None:
            problems.append(f"{name} has changed since it was saved: its sha256 is not the one in {MANIFEST}")
