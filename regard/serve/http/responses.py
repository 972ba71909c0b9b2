"""Responses: JSON as bytes, server-sent events, and matrices as bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response, StreamingResponse

Index = Annotated[int, Query(ge=0, lt=2**31)]
HeadOrAll = Annotated[str, Query(pattern=r"^(\*|\d{1,9})$", description="A number, or * for all.")]

MATRIX: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Numbers of type X-Dtype, row by row, of shape X-Shape; multiply by X-Scale.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""A matrix in the OpenAPI document."""
PING_S = 10.0
"""Seconds without an event after which a comment keeps proxies and clients connected."""
PING = ": still here\n\n"


def as_json(content: Any) -> bytes:
    """JSON as it is sent."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def matrix_response(data: bytes, shape: Sequence[int], dtype: str, scale: float) -> Response:
    """A matrix as bytes, with its shape, type and scale in the headers."""
    headers = {"X-Shape": ",".join(map(str, shape)), "X-Dtype": dtype, "X-Scale": repr(scale)}
    return Response(data, media_type="application/octet-stream", headers=headers)


def event(data: Any, name: str | None = None) -> str:
    """One event; its data is JSON on one line."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def event_stream(events: AsyncIterator[str]) -> StreamingResponse:
    """A response of server-sent events."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_with_pings(events), media_type="text/event-stream", headers=headers)


async def _with_pings(events: AsyncIterator[str]) -> AsyncIterator[str]:
    upcoming: asyncio.Future[str] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(events))
            finished, _ = await asyncio.wait({upcoming}, timeout=PING_S)
            if not finished:
                yield PING
                continue
            try:
                text = upcoming.result()
            except StopAsyncIteration:
                return
            upcoming = None
            yield text
    finally:
        if upcoming is not None:
            upcoming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await upcoming
        if hasattr(events, "aclose"):
            await events.aclose()
