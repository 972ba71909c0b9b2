"""Runs behind the models: curves and events, read from the journal that training writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from regard.look.export.document import plain
from regard.look.trace.blocks import Kind
from regard.look.trace.probes import Probe, probe_files, read_probes
from regard.serve.http.binary import BYTES, HeadOrAll, Place, in_bytes
from regard.serve.http.errors import busy, draining, not_found
from regard.serve.http.events import event, event_stream
from regard.serve.http.schemas import ERRORS
from regard.serve.served import JOURNAL
from regard.serve.service import Service, admitted, service_of

router = APIRouter(prefix="/api/v1/runs", dependencies=[Depends(admitted)], responses=ERRORS, tags=["runs"])

LOOK_S = 0.5
"""Seconds between two looks at a journal that grows."""


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
    path = _journal(service, run)
    if service.desk.draining:
        raise draining()
    if service.n_followers >= service.limits.followers:
        raise busy(f"{service.limits.followers} clients follow runs already. Ask again in a moment.")

    async def followed() -> AsyncIterator[str]:
        service.n_followers += 1
        try:
            async for entry in follow(path, lambda: service.desk.draining):
                yield entry
        finally:
            service.n_followers -= 1

    return event_stream(followed())


@router.get("/{run}/probes")
async def probes(request: Request, run: str) -> Any:
    """The steps at which attention was stored, and the texts that it was stored for."""
    folder = _folder(service_of(request), run)

    def told() -> dict[str, Any]:
        files = probe_files(folder)
        last = read_probes(files[max(files)]) if files else ()
        return {"id": run, "steps": list(files), "probes": [_told(probe) for probe in last]}

    return await asyncio.to_thread(told)


@router.get("/{run}/probes/{step}/{probe}")
async def probe(request: Request, run: str, step: int, probe: int) -> Any:
    """One text as the model read it after a step: how likely each token was, and what it would have said."""
    return _told(await asyncio.to_thread(_probe, service_of(request), run, step, probe))


@router.get("/{run}/probes/{step}/{probe}/attention", responses=BYTES, response_class=Response)
async def attention(
    request: Request, run: str, step: int, probe: int, kind: Kind, layer: Place, head: HeadOrAll
) -> Response:
    """The weights of one head after a step, queries by keys, as u8; or of all heads of a layer."""
    found = await asyncio.to_thread(_probe, service_of(request), run, step, probe)
    found.attention(kind, layer, 0 if head == "*" else int(head))  # which refuses what there is not
    weights = found.weights[kind][layer]
    chosen = weights if head == "*" else weights[int(head)]
    return in_bytes(chosen.tobytes(), chosen.shape, "u8", 1 / 255)


async def follow(path: Path, over: Callable[[], bool]) -> AsyncIterator[str]:
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
    return _folder(service, run) / JOURNAL


def _folder(service: Service, run: str) -> Path:
    served = service.catalogue.named(run)
    if served.run is None:
        raise not_found(f"Model {run!r} was not served from the folder of a run.", "run")
    return served.run


def _probe(service: Service, run: str, step: int, number: int) -> Probe:
    files = probe_files(_folder(service, run))
    if step not in files:
        raise not_found(f"Nothing was stored at step {step}.", "step")
    found = read_probes(files[step])
    if not 0 <= number < len(found):
        raise not_found(f"There is no probe {number}; there are {len(found)}, from 0.", "probe")
    return found[number]


def _told(probe: Probe) -> dict[str, Any]:
    return {
        "inputs": probe.inputs and probe.inputs.to_json(),
        "outputs": probe.outputs and probe.outputs.to_json(),
        "log_probs": plain(probe.log_probs),
        "likeliest": list(probe.likeliest),
        "kinds": {kind: list(weights.shape[:2]) for kind, weights in probe.weights.items()},
    }
