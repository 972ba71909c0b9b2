"""The weights of a model folder as numpy arrays: for those who must do without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""What weights may be, and as what numpy reads them: it has no bfloat16."""


def float32_weights(content: bytes) -> dict[str, NDArray[np.float32]]:
    """Every weight of a safetensors file, by name, whatever float it was saved as."""
    return {
        name: _float32(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])
        for name, tensor in safetensors.deserialize(content)
    }


def _float32(data: Any, dtype: str) -> NDArray[np.float32]:
    numbers = np.frombuffer(data, DTYPES[dtype])
    if dtype == "BF16":  # the upper half of a float32
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32, copy=False)
