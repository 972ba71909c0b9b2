"""Data sets of Hugging Face in a folder: the files of each split.

A folder is a data set if it was written by `save_to_disk` (Arrow files, described by `state.json` or
`dataset_dict.json`), or if it contains tables named after splits, like a repository:
`data/train-00000-of-00002.parquet`, `train.jsonl`, `train/0000.parquet`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import CorpusError
from regard.text.files.tables import table_kind

SPLITS = {"train": "train", "training": "train", "test": "test"} | dict.fromkeys(
    ("validation", "valid", "val", "dev"), "valid"
)
"""The set that each name of a split is for."""
STATE, SPLITS_FILE = "state.json", "dataset_dict.json"
_SPLIT_IN_NAME = re.compile(rf"({'|'.join(SPLITS)})(?![A-Za-z])", re.IGNORECASE)
_DEPTH = 2
"""Folders in a folder in which tables are searched for."""


def dataset_files(folder: Path) -> dict[str, tuple[Path, ...]] | None:
    """The files of each set, `train`, `valid` and `test`; None if the folder holds no data set.

    Raises:
        CorpusError: the description of the data set is damaged, it holds several, or it has no such split.
    """
    if (folder / SPLITS_FILE).is_file():
        names = _described(folder / SPLITS_FILE).get("splits")
        if not isinstance(names, list):
            raise _damaged(folder / SPLITS_FILE, "lists no splits")
        return _by_set(folder, {str(name): _saved(folder / str(name)) for name in names})
    if (folder / STATE).is_file():
        name = _described(folder / STATE).get("_split") or "train"
        known = SPLITS.get(str(name).lower(), "train")
        return {known: _saved(folder)}
    tables = _tables(folder)
    return _by_set(folder, tables) if tables else None


def _saved(folder: Path) -> tuple[Path, ...]:
    """The Arrow files of a data set that `save_to_disk` wrote."""
    files = _described(folder / STATE).get("_data_files")
    if not isinstance(files, list) or not all(
        isinstance(each, dict) and "filename" in each for each in files
    ):
        raise _damaged(folder / STATE, "lists no files")
    return tuple(folder / Path(str(each["filename"])).name for each in files)


def _described(file: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(file, str(error)) from error
    if not isinstance(value, dict):
        raise _damaged(file, "is not an object")
    return value


def _damaged(file: Path, problem: str) -> CorpusError:
    return CorpusError(
        f"{file}: the description of the data set cannot be read: {problem}", code="damaged_file"
    )


def _tables(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The tables of each split, in the order of their names.

    Raises:
        CorpusError: there are several data sets in the folder.
    """
    by_place: dict[Path, dict[str, list[Path]]] = {}
    for depth in range(_DEPTH + 1):
        for file in sorted(folder.glob("*/" * depth + "*")):
            hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
            if hidden or table_kind(file) is None or not file.is_file():
                continue
            if found := _SPLIT_IN_NAME.match(file.name):
                by_place.setdefault(file.parent, {}).setdefault(found[1].lower(), []).append(file)
            elif (split := file.parent.name.lower()) in SPLITS and file.parent != folder:
                by_place.setdefault(file.parent.parent, {}).setdefault(split, []).append(file)
    if len(by_place) > 1:
        names = ", ".join(str(place) for place in sorted(by_place))
        raise CorpusError(f"{folder}: holds several data sets; name one of {names}", code="several_datasets")
    return {split: tuple(files) for splits in by_place.values() for split, files in splits.items()}


def _by_set(folder: Path, splits: dict[str, tuple[Path, ...]]) -> dict[str, tuple[Path, ...]]:
    found: dict[str, tuple[Path, ...]] = {}
    for split, files in splits.items():
        if (name := SPLITS.get(split.lower())) is not None:
            found.setdefault(name, files)
    if not found:
        names = ", ".join(splits)
        problem = f"the data set has no split train, validation or test, but {names}; name the folder of one"
        raise CorpusError(f"{folder}: {problem}", code="missing_split")
    return found
