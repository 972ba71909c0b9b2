"""One file, or one block of bytes, for a trace or for probes: safetensors, the rest as JSON, no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
from safetensors.numpy import load, save

from regard.errors import RequestError

FORMAT = 1
What = Literal["trace", "probes"]
Content = tuple[dict[str, Any], dict[str, np.ndarray]]
"""The header and the arrays."""


def packed(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], what: What = "trace") -> bytes:
    """Everything in one block."""
    told = json.dumps({"format": FORMAT, **header}, ensure_ascii=False)
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(whole, metadata={f"regard_{what}": told})


def unpacked(block: bytes, name: str, what: What = "trace") -> Content:
    """What is in a block, which errors call by a name.

    Raises:
        RequestError: it holds nothing of the kind that this version reads.
    """
    try:
        arrays = load(block)
        length = int.from_bytes(block[:8], "little")
        told = json.loads(block[8 : 8 + length]).get("__metadata__", {}).get(f"regard_{what}")
    except safetensors.SafetensorError as error:
        raise RequestError(f"{name} cannot be read as a file of regard's: {error}") from error
    if told is None:
        raise RequestError(f"{name} holds arrays, but no {what}: it was written for something else")
    try:
        header = json.loads(told)
    except ValueError as error:
        raise RequestError(f"{name} is damaged: its header is no JSON ({error})") from error
    if not isinstance(header, dict) or header.pop("format", None) != FORMAT:
        raise RequestError(f"{name} is of another version of regard; look again, and save anew")
    return header, arrays


def write_file(path: Path, block: bytes) -> None:
    """Write a block beside its place, and rename it into it.

    Raises:
        RequestError: the system refuses.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(block)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RequestError(f"{path} cannot be written: {error.strerror or error}") from error


def read_file(path: Path) -> bytes:
    """The block in a file.

    Raises:
        RequestError: there is no such file.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read as a file of regard's: {error}") from error
