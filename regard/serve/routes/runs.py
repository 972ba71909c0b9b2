"""Runs behind the models: curves, events and probes, read from what training writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from regard.look import document
from regard.look.blocks import Kind
from regard.look.probes import probes
from regard.serve.binary import BYTES, numbers
from regard.serve.events import event, event_stream
from regard.serve.refusals import not_found
from regard.serve.schemas import ERRORS
from regard.serve.served import JOURNAL
from regard.serve.service import Service, admitted, service_of

router = APIRouter(prefix="/api/v1/runs", dependencies=[Depends(admitted)], responses=ERRORS, tags=["runs"])

LOOK_S = 0.5
"""Seconds between two looks at a journal that grows."""
Place = Annotated[int, Query(ge=0, lt=2**31)]


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


@router.get("/{run}/probes")
async def stored(request: Request, run: str) -> Any:
    """The held-out sentences that it looked at, and what it made of them at each validation."""
    found = await asyncio.to_thread(probes, _run(service_of(request), run))
    always = min((len(each.probes) for each in found), default=0)
    return {
        "id": run,
        "steps": [each.step for each in found],
        "probes": [
            {
                "inputs": probe.inputs.texts,
                "outputs": probe.outputs.texts,
                "sizes": {kind: list(weights.shape[:2]) for kind, weights in probe.weights.items()},
                "log_probs": [document.plain(each.probes[i].log_probs) for each in found],
                "likeliest": [list(each.probes[i].likeliest) for each in found],
            }
            for i, probe in enumerate(found[0].probes[:always] if found else ())
        ],
    }


@router.get("/{run}/probes/{probe}/attention", responses=BYTES, response_class=Response)
async def played(request: Request, run: str, probe: int, kind: Kind, layer: Place, head: Place) -> Response:
    """Where a head looked at each validation: validations, queries, keys."""
    found = await asyncio.to_thread(probes, _run(service_of(request), run))
    if not 0 <= probe < min((len(each.probes) for each in found), default=0):
        raise not_found(f"Run {run!r} has stored no probe {probe}.", "probe")
    through = np.stack([each.probes[probe].attention(kind, layer, head) for each in found])
    return numbers(np.rint(through * 255).astype("u1"), "u8", 1 / 255)


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


def _run(service: Service, run: str) -> Path:
    served = service.catalogue.named(run)
    if served.run is None:
        raise not_found(f"Model {run!r} was not served from the folder of a run.", "run")
    return served.run


def _journal(service: Service, run: str) -> Path:
    return _run(service, run) / JOURNAL
