"""The weights of a model folder as numpy arrays, and at a quarter of their size. No torch here.

A matrix may be saved as 8-bit integers with a scale for each row (`NAME.int8_scale`): a row's largest number
is 127 times its scale. Vectors stay as they are. Read back it is float32. CTranslate2's own int8 rounds rows
in the same way, so that it gets the very integers that were saved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}
"""What weights may be, and as what numpy reads them: it has no bfloat16."""

SCALE = ".int8_scale"
"""What the name of a matrix's scales ends in."""


def float32_weights(content: bytes) -> dict[str, NDArray[np.float32]]:
    """Every weight of a safetensors file, by name, whatever it was saved as."""
    found = {
        name: _float32(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])
        for name, tensor in safetensors.deserialize(content)
    }
    for name in [name for name in found if name.endswith(SCALE)]:
        found[name.removesuffix(SCALE)] *= found.pop(name)[:, None]
    return found


def int8_weights(content: bytes, metadata: dict[str, str]) -> bytes:
    """The same safetensors file, with every matrix in 8 bits."""
    arrays: dict[str, np.ndarray] = {}
    for name, array in float32_weights(content).items():
        if array.ndim != 2:
            arrays[name] = array
            continue
        scale_rows = np.abs(array).max(axis=1) / np.float32(127)
        scale_rows[scale_rows == 0] = 1  # of a row of zeros
        arrays[name] = np.rint(array / scale_rows[:, None]).astype(np.int8)
        arrays[f"{name}{SCALE}"] = scale_rows
    return save(arrays, metadata)


def _float32(data: Any, dtype: str) -> NDArray[np.float32]:
    numbers = np.frombuffer(data, DTYPES[dtype])
    if dtype == "BF16":  # the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)
