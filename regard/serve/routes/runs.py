"""Training runs: those behind the models, and one that the page can start; and recorded experiments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from regard.experiments.registry import recorded_results
from regard.look.export.document import plain
from regard.look.trace.blocks import Kind
from regard.look.trace.probes import Probe, probe_files, read_probes
from regard.serve.http.dependencies import AppState, is_loopback, state_of
from regard.serve.http.errors import ApiError, busy, not_found, shutting_down
from regard.serve.http.responses import MATRIX, HeadOrAll, Index, event, event_stream, matrix_response
from regard.serve.http.schemas import ERRORS, DemonstrationRequest
from regard.serve.models import JOURNAL

router = APIRouter(prefix="/api/v1", responses=ERRORS)

POLL_S = 0.5
"""Seconds between two reads of a journal that grows."""


@router.get("/runs", tags=["runs"])
async def runs(request: Request) -> Any:
    """The runs that the models of this server come from."""
    served = [each for each in state_of(request).models if each.run is not None]
    return {"runs": [{"id": each.id, "model": each.id} for each in served]}


@router.get("/runs/{run}/curve", tags=["runs"])
async def curve(request: Request, run: str) -> Any:
    """Every entry of its journal, in order."""
    path = _folder(state_of(request), run) / JOURNAL
    entries, _ = await asyncio.to_thread(read_journal, path, 0)
    return {"id": run, "entries": entries}


@router.get("/runs/{run}/events", tags=["runs"])
async def events(request: Request, run: str) -> Response:
    """Its journal as server-sent events, followed by new entries; `reset` discards the earlier ones."""
    state = state_of(request)
    path = _folder(state, run) / JOURNAL
    if state.executor.draining:
        raise shutting_down()
    if state.n_followers >= state.limits.followers:
        raise busy(f"{state.limits.followers} clients follow runs. Retry in a moment.")

    async def followed() -> AsyncIterator[str]:
        state.n_followers += 1
        try:
            async for entry in follow(path, lambda: state.executor.draining):
                yield entry
        finally:
            state.n_followers -= 1

    return event_stream(followed())


@router.get("/runs/{run}/probes", tags=["runs"])
async def probes(request: Request, run: str) -> Any:
    """The steps at which attention was stored, and the texts that it was stored for."""
    folder = _folder(state_of(request), run)

    def described() -> dict[str, Any]:
        files = probe_files(folder)
        last = read_probes(files[max(files)]) if files else ()
        return {"id": run, "steps": list(files), "probes": [_as_json(probe) for probe in last]}

    return await asyncio.to_thread(described)


@router.get("/runs/{run}/probes/{step}/{probe}", tags=["runs"])
async def probe(request: Request, run: str, step: int, probe: int) -> Any:
    """A text at a step: the log-probability of each token, and the model's most likely token instead."""
    return _as_json(await asyncio.to_thread(_probe, state_of(request), run, step, probe))


@router.get(
    "/runs/{run}/probes/{step}/{probe}/attention",
    responses=MATRIX,
    response_class=Response,
    tags=["runs"],
)
async def attention(
    request: Request, run: str, step: int, probe: int, kind: Kind, layer: Index, head: HeadOrAll
) -> Response:
    """The weights of one head after a step, queries by keys, as u8; or of all heads of a layer."""
    found = await asyncio.to_thread(_probe, state_of(request), run, step, probe)
    found.attention(kind, layer, 0 if head == "*" else int(head))  # raises an error if there is no such head
    weights = found.weights[kind][layer]
    chosen = weights if head == "*" else weights[int(head)]
    return matrix_response(chosen.tobytes(), chosen.shape, "u8", 1 / 255)


@router.get("/demonstration", tags=["runs"])
async def demonstration(request: Request) -> Any:
    """The training that the page can start: its phase, its run, and whether this client may start it."""
    return {**state_of(request).demonstration.to_json(), "allowed": may_train(request)}


@router.post("/demonstration", status_code=201, tags=["runs"])
async def start_demonstration(request: Request, _: DemonstrationRequest) -> Any:
    """Train a small translator of dates in a process of its own; one at a time."""
    state = state_of(request)
    if not may_train(request):
        where = "with a key" if state.keys else "on the machine of the server, at an address of that machine"
        raise ApiError(403, f"Only a client {where} may start a training.", code="not_allowed")
    if state.executor.draining:
        raise shutting_down()
    await asyncio.to_thread(state.demonstration.start, request.scope["state"]["client"])
    return await demonstration(request)


@router.delete("/demonstration", tags=["runs"])
async def stop_demonstration(request: Request) -> Any:
    """Stop it; what it has learned so far stays visible."""
    await asyncio.to_thread(state_of(request).demonstration.stop, request.scope["state"]["client"])
    return await demonstration(request)


def may_train(request: Request) -> bool:
    """Whether a client may start a training: it has a key, or is on this machine.

    Behind a proxy that is not declared, every client seems to be on this machine; but the name that it
    requests is then one of those that other machines use.
    """
    if state_of(request).keys is not None:
        return request.scope["state"]["key"] is not None
    return is_loopback(request.scope["state"]["address"]) and is_loopback(request.url.hostname or "")


async def follow(path: Path, stopped: Callable[[], bool]) -> AsyncIterator[str]:
    """The entries of a journal as they are written, until `stopped()`.

    A resumed run removes the entries after its checkpoint; then `reset` precedes all remaining ones.
    """
    place = 0
    while not stopped():
        size = path.stat().st_size if path.exists() else 0
        if size < place:
            place = 0
            yield event({}, "reset")
        entries, place = await asyncio.to_thread(read_journal, path, place)
        for entry in entries:
            yield event(entry, "entry")
        await asyncio.sleep(POLL_S)


def read_journal(path: Path, place: int) -> tuple[list[dict[str, Any]], int]:
    """The complete lines after a byte offset, and the offset after them."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    whole, newline, _ = data.rpartition(b"\n")
    entries = [json.loads(line, parse_constant=lambda _: None) for line in whole.splitlines() if line.strip()]
    return entries, place + len(whole) + len(newline)


def _folder(state: AppState, run: str) -> Path:
    if run == state.demonstration.run and state.demonstration.folder is not None:
        return state.demonstration.folder
    folder = state.models.named(run).run
    if folder is None:
        raise not_found(f"Model {run!r} was not served from the folder of a run.", "run")
    return folder


def _probe(state: AppState, run: str, step: int, number: int) -> Probe:
    files = probe_files(_folder(state, run))
    if step not in files:
        raise not_found(f"Nothing was stored at step {step}.", "step")
    found = read_probes(files[step])
    if not 0 <= number < len(found):
        raise not_found(f"There is no probe {number}; there are {len(found)}, starting at 0.", "probe")
    return found[number]


def _as_json(probe: Probe) -> dict[str, Any]:
    return {
        "inputs": probe.inputs and probe.inputs.to_json(),
        "outputs": probe.outputs and probe.outputs.to_json(),
        "log_probs": plain(probe.log_probs),
        "likeliest": list(probe.likeliest),
        "kinds": {kind: list(weights.shape[:2]) for kind, weights in probe.weights.items()},
    }


@router.get("/experiments", tags=["experiments"])
async def experiments() -> Any:
    """Every experiment with its claim, tables, charts and verdict, in English and Chinese."""
    return _experiments()


@cache
def _experiments() -> dict[str, Any]:
    return {"experiments": recorded_results()}
