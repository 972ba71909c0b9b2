"""One file for one trace, or for probes: arrays as safetensors, the rest as JSON in its header, no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
from safetensors.numpy import save

from regard.errors import RequestError

FORMAT = 1
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
"""Those of safetensors that a trace may have, as numpy calls them."""
What = Literal["trace", "probes"]


def packed(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], what: What = "trace") -> bytes:
    """All that a file holds, as one block."""
    told = json.dumps({"format": FORMAT, **header}, ensure_ascii=False)
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(whole, metadata={f"regard_{what}": told})


def unpacked(block: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a trace that this process has packed; arrays are views of the block."""
    size = int.from_bytes(block[:8], "little")  # as safetensors' own format begins
    told = json.loads(block[8 : 8 + size])
    header = json.loads(told.pop("__metadata__")["regard_trace"])
    values = memoryview(block)[8 + size :]
    return header, {name: _array(values, **each) for name, each in told.items()}


def _array(values: memoryview, dtype: str, shape: list[int], data_offsets: tuple[int, int]) -> np.ndarray:
    start, end = data_offsets
    return np.frombuffer(values[start:end], DTYPES[dtype]).reshape(shape)


def write_file(
    path: Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], what: What = "trace"
) -> None:
    """Write the file beside its place, and rename it into it."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        # Not `save_file`, which makes files that nobody else may read.
        partial.write_bytes(packed(header, arrays, what))
        partial.replace(path)
    except (OSError, safetensors.SafetensorError) as error:
        partial.unlink(missing_ok=True)
        raise RequestError(f"{path} cannot be written: {error}") from error


def read_file(path: Path, what: What = "trace") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays.

    Raises:
        RequestError: there is no such file, or it holds nothing of the kind that this version reads.
    """
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            told = (file.metadata() or {}).get(f"regard_{what}")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except (OSError, safetensors.SafetensorError) as error:
        raise RequestError(f"{path} cannot be read as a file of regard's: {error}") from error
    if told is None:
        raise RequestError(f"{path} holds arrays, but no {what}: it was written for something else")
    try:
        header = json.loads(told)
    except ValueError as error:
        raise RequestError(f"{path} is damaged: its header is no JSON ({error})") from error
    if not isinstance(header, dict) or header.pop("format", None) != FORMAT:
        raise RequestError(f"{path} is of another version of regard; look again, and save anew")
    return header, arrays
