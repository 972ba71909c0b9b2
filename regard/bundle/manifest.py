"""What a model folder says about itself, and whether its files are what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.errors import BundleError
from regard.version import __version__

FORMAT = 1

WEIGHTS, CONFIG, SUBWORDS = "model.safetensors", "config.toml", "subwords.model"
METRICS, CARD, MANIFEST = "metrics.json", "card.md", "manifest.json"
ALIGNMENT, LABELS = "alignment.json", "labels.json"
NEEDED = (WEIGHTS, CONFIG)

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

# The first sign that is found names the stranger: some folders show several.
FOREIGN = {
    "*vocabulary.*": "a CTranslate2 folder",
    "config.json": "a Hugging Face folder, of which `regard import` makes a model folder",
    "*.npz": "a Marian folder",
    "*.onnx": "an ONNX export",
    "*.pt": "a PyTorch checkpoint, which could execute anything and is not opened",
    "*.ckpt": "a PyTorch checkpoint, which could execute anything and is not opened",
    "*.bin": "a PyTorch checkpoint, which could execute anything and is not opened",
}


@dataclass(frozen=True, slots=True)
class SavedFile:
    """Size and hash of one file, as it was saved."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was saved, and by which version."""

    format: int
    regard: str
    weights_hash: str
    files: dict[str, SavedFile]


def manifest_of(files: Mapping[str, bytes], weights_hash: str) -> bytes:
    """The manifest that goes with these files, as JSON."""
    entries = {name: {"size": len(data), "sha256": sha256(data).hexdigest()} for name, data in files.items()}
    table = {"format": FORMAT, "regard": __version__, "weights_hash": weights_hash, "files": entries}
    return (json.dumps(table, indent=2) + "\n").encode()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder; BundleError where it is no model folder, or one of a newer format."""
    try:
        if problems := _not_a_model_folder(folder):
            raise BundleError(problems, str(folder))
        table = json.loads((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise BundleError(f"cannot be read: {error.strerror}", str(folder)) from error
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{MANIFEST} is not JSON: {error}", str(folder)) from error
    return _parse(table, folder)


def _parse(table: Any, folder: Path) -> Manifest:
    match table:
        case {"format": int(number)} if number > FORMAT:
            newer = f"its format is {number}, written by regard {table.get('regard')}"
            ours = f"this is regard {__version__}, which reads format {FORMAT}: upgrade regard"
            raise BundleError(f"{newer}; {ours}", str(folder))
        case {
            "format": int(number),
            "regard": str(version),
            "weights_hash": str(digest),
            "files": dict(files),
        }:
            entries = {name: file for name, entry in files.items() if (file := _parse_file(entry))}
            if len(entries) == len(files):
                return Manifest(number, version, digest, entries)
    raise BundleError(f"{MANIFEST} is not that of a model folder, or damaged", str(folder))


def _parse_file(entry: Any) -> SavedFile | None:
    match entry:
        case {"size": int(size), "sha256": str(digest)}:
            return SavedFile(size, digest)
    return None


def _not_a_model_folder(folder: Path) -> list[str]:
    """Why this cannot be a model folder at all; nothing where it has a manifest."""
    if folder.is_file():
        return ["is a file; a model is a folder"]
    if not folder.is_dir():
        return ["there is no such folder", *map(_rescue, _replaced(folder))]
    if problem := _place_problem(folder, MANIFEST):
        missing = [name for name in NEEDED if not (folder / name).is_file()]
        if CONFIG not in missing:  # others have a model.safetensors too
            return [problem, *(f"{name} is missing" for name in missing)]
        return [f"is not a model folder: {problem}; {_looks_like(folder)}"]
    return []


def _looks_like(folder: Path) -> str:
    for sign, kind in FOREIGN.items():
        if found := next(folder.glob(sign), None):
            return f"it looks like {kind} ({found.name})"
    names = sorted(entry.name for entry in folder.iterdir())
    return f"it holds {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else "it is empty"


def unfinished(folder: Path, mark: str) -> tuple[Path, Path]:
    """Where a new folder is written, and where the one that it replaces waits: hidden, beside its place."""
    return folder.with_name(f".{folder.name}.{mark}.new"), folder.with_name(f".{folder.name}.{mark}.old")


def _replaced(folder: Path) -> list[Path]:
    """What an interrupted save may have left of the model that it was about to replace."""
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    return [path for path in beside if path.name.startswith(f".{folder.name}.") and path.suffix == ".old"]


def _rescue(old: Path) -> str:
    return f"but {old} holds the model that an interrupted save was about to replace: rename it back"


def file_problems(folder: Path, manifest: Manifest) -> dict[str, str]:
    """What is wrong with the files, by name, as far as can be told without reading them."""
    names = [*manifest.files, *(name for name in NEEDED if name not in manifest.files)]
    return {name: problem for name in names if (problem := _file_problem(folder, manifest, name))}


def _file_problem(folder: Path, manifest: Manifest, name: str) -> str | None:
    if not PLAIN_NAME.fullmatch(name):
        return f"{MANIFEST} lists {name!r}, which is not a plain file name"
    if problem := _place_problem(folder, name):
        return problem
    if name not in manifest.files:
        return f"{name} is not listed in {MANIFEST}"
    size, saved = (folder / name).stat().st_size, manifest.files[name].size
    return None if size == saved else f"{name} has {size:,} bytes; {saved:,} were saved"


def _place_problem(folder: Path, name: str) -> str | None:
    """A file must lie in the folder: what is loaded came with it, and not through a link from elsewhere."""
    if not (folder / name).is_file():
        return f"{name} is missing"
    inside = (folder / name).resolve().parent == folder.resolve()
    return None if inside else f"{name} is a link that leads out of the folder"


def content_of(folder: Path, name: str, problems: list[str]) -> bytes | None:
    """What is in a file; None, and why, where it cannot be read."""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        problems.append(f"{name} cannot be read: {error.strerror}")
        return None


def intact_files(folder: Path, manifest: Manifest, problems: list[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file that is as it was saved; what is wrong with the others is added."""
    before = file_problems(folder, manifest)
    problems += before.values()
    for name in [name for name in manifest.files if name not in before]:
        content = content_of(folder, name, problems)
        if content is not None and sha256(content).hexdigest() == manifest.files[name].sha256:
            yield name, content
        elif content is not None:
            problems.append(f"{name} is not what was saved: its sha256 is not the one in {MANIFEST}")
