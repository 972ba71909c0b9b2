"""Runs behind the models: curves and events, read from the journal that training writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from regard.serve.events import event, event_stream
from regard.serve.refusals import not_found
from regard.serve.schemas import ERRORS
from regard.serve.served import JOURNAL
from regard.serve.service import Service, admitted, service_of

router = APIRouter(prefix="/api/v1/runs", dependencies=[Depends(admitted)], responses=ERRORS, tags=["runs"])

LOOK_S = 0.5
"""Seconds between two looks at a journal that grows."""
"""Entries of a curve, at most: of a longer journal, evenly many are left out."""


@router.get("")
async def runs(request: Request) -> Any:
    """The runs that the models of this server come from."""
    found = [each for each in service_of(request).catalogue if each.run is not None]
    return {"runs": [{"id": each.id, "model": each.id} for each in found]}


@router.get("/{run}/curve")
async def curve(request: Request, run: str) -> Any:
    """Every entry of its journal, in order."""
    service = service_of(request)
    path = _journal(service, run)
    entries, _ = await asyncio.to_thread(read_journal, path, 0)
    return {"id": run, "entries": entries}


@router.get("/{run}/events")
async def events(request: Request, run: str) -> Response:
    """Its journal as server-sent events: what is there, and then what comes. `reset` begins it anew."""
    service = service_of(request)
    return event_stream(follow(_journal(service, run), lambda: service.desk.draining))


async def follow(path: Path, over: Any) -> AsyncIterator[str]:
    """The entries of a journal as they are written, until somebody says that it is over.

    A run that is resumed takes back what came after its checkpoint: then a `reset` tells to forget all.
    """
    place = 0
    while not over():
        size = path.stat().st_size if path.exists() else 0
        if size < place:
            place = 0
            yield event({}, "reset")
        entries, place = await asyncio.to_thread(read_journal, path, place)
        for entry in entries:
            yield event(entry, "entry")
        await asyncio.sleep(LOOK_S)


def read_journal(path: Path, place: int) -> tuple[list[dict[str, Any]], int]:
    """The whole lines after a place, and the place behind them; a line that is being written is left."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    whole, newline, _ = data.rpartition(b"\n")
    entries = [json.loads(line, parse_constant=lambda _: None) for line in whole.splitlines() if line.strip()]
    return entries, place + len(whole) + len(newline)


def _journal(service: Service, run: str) -> Path:
    served = service.catalogue.named(run)
    if served.run is None:
        raise not_found(f"Model {run!r} was not served from the folder of a run.", "run")
    return served.run / JOURNAL
