"""Server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.responses import StreamingResponse

PING_S = 10.0
"""Seconds without an event after which a comment tells proxies and clients that somebody is still here."""
PING = ": still here\n\n"


def event(data: Any, name: str | None = None) -> str:
    """One event; its data is JSON, on one line."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def event_stream(events: AsyncIterator[str]) -> StreamingResponse:
    """An answer of events."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_pinged(events), media_type="text/event-stream", headers=headers)


async def _pinged(events: AsyncIterator[str]) -> AsyncIterator[str]:
    coming: asyncio.Future[str] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(events))
            finished, _ = await asyncio.wait({coming}, timeout=PING_S)
            if not finished:
                yield PING
                continue
            try:
                given = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            yield given
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await coming
        if hasattr(events, "aclose"):
            await events.aclose()
