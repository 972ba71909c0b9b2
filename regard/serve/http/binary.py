"""Matrices over HTTP: bytes, with their shape, kind and scale in the headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

Place = Annotated[int, Query(ge=0, lt=2**31)]
HeadOrAll = Annotated[str, Query(pattern=r"^(\*|\d{1,9})$", description="A number, or * for all.")]

BYTES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Numbers of the kind X-Dtype, row by row, X-Shape many, each times X-Scale.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def in_bytes(data: bytes, shape: Sequence[int], dtype: str, scale: float) -> Response:
    """An answer that is a matrix."""
    headers = {"X-Shape": ",".join(map(str, shape)), "X-Dtype": dtype, "X-Scale": repr(scale)}
    return Response(data, media_type="application/octet-stream", headers=headers)
