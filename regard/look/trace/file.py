"""The file of a trace or of probes: safetensors, with everything but the arrays as JSON in its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
from safetensors.numpy import load, save

from regard.durable import write_atomically
from regard.errors import RequestError, reason

FORMAT = 1
Contents = Literal["trace", "probes"]


def packed(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], contents: Contents = "trace"
) -> bytes:
    """Header and arrays in one block."""
    metadata = json.dumps({"format": FORMAT, **header}, ensure_ascii=False)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(contiguous, metadata={f"regard_{contents}": metadata})


def unpacked(
    block: bytes, name: str, contents: Contents = "trace"
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a block; error messages call it `name`.

    Raises:
        RequestError: it does not hold such contents in this version's format.
    """
    try:
        arrays = load(block)
        length = int.from_bytes(block[:8], "little")
        metadata = json.loads(block[8 : 8 + length]).get("__metadata__", {}).get(f"regard_{contents}")
    except safetensors.SafetensorError as error:
        raise RequestError(f"{name} is not a safetensors file: {error}", code="damaged_file") from error
    if metadata is None:
        what = f"{name} holds arrays but no {contents}: it was written for another purpose"
        raise RequestError(what, code="damaged_file")
    try:
        header = json.loads(metadata)
    except ValueError as error:
        raise RequestError(f"{name} is damaged: bad JSON ({error})", code="damaged_file") from error
    if not isinstance(header, dict) or header.pop("format", None) != FORMAT:
        what = f"{name} was written by another version of regard: look again and save anew"
        raise RequestError(what, code="file_version")
    return header, arrays


def write_file(path: Path, block: bytes) -> None:
    """Write a file atomically.

    Raises:
        RequestError: the file cannot be written.
    """
    try:
        write_atomically(path, block)
    except OSError as error:
        what = f"{path} cannot be written: {reason(error)}"
        raise RequestError(what, code="unwritable_file") from error


def read_file(path: Path) -> bytes:
    """Read a file.

    Raises:
        RequestError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error}", code="unreadable_file") from error
