"""Arrays of numbers as answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.responses import Response

BYTES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Numbers of the kind X-Dtype, row by row, X-Shape many, each times X-Scale.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""How the OpenAPI document tells of them."""


def numbers(array: np.ndarray, dtype: str, scale: float = 1.0) -> Response:
    """An array, which is of that kind already."""
    return in_bytes(array.tobytes(), array.shape, dtype, scale)


def in_bytes(data: bytes, shape: tuple[int, ...], dtype: str, scale: float) -> Response:
    """Numbers that are bytes already."""
    headers = {"X-Shape": ",".join(map(str, shape)), "X-Dtype": dtype, "X-Scale": repr(scale)}
    return Response(data, media_type="application/octet-stream", headers=headers)
