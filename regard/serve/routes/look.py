"""Looking inside: traces and what they show, what-ifs, positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, Response

from regard.look.export import document
from regard.look.influence.methods import Method
from regard.look.interventions.interventions import from_json
from regard.look.trace.blocks import Kind
from regard.look.trace.trace import Trace
from regard.serve.ablating import ablated, remember
from regard.serve.http.binary import BYTES, HeadOrAll, Place, in_bytes
from regard.serve.http.errors import bad_value, not_found
from regard.serve.http.schemas import ERRORS, AblateAsked, LookAsked
from regard.serve.looking import Looked, check_length, traced
from regard.serve.served import Served
from regard.serve.service import admitted, service_of
from regard.serve.work.job import Job
from regard.tasks.loaded import LoadedModel

T = TypeVar("T")
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A safetensors file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
router = APIRouter(prefix="/api/v1", dependencies=[Depends(admitted)], responses=ERRORS, tags=["look"])


@router.post("/traces")
async def make_trace(request: Request, body: LookAsked) -> Response:
    """Trace what a model does with a text, and keep it for a while."""
    service = service_of(request)
    served = service.catalogue.any(body.model)
    prefix = tuple(body.prefix or ())
    looked = Looked(body.source, _whole(body.target), body.to, body.beam, prefix, body.length_penalty)
    changes = from_json(body.interventions)

    def work(job: Job) -> dict[str, Any]:
        trace = traced(service, served, job, looked, changes)
        if not changes:
            remember(service, served, looked, trace)
        kept = service.inspector.traces.keep(served.id, trace.to_bytes())
        head = {"trace_id": kept.id, "model": kept.name, "expires": kept.expires}
        return head | document.describe(trace)

    return JSONResponse(await service.desk.do(request, work, body.deadline_ms), 201)


@router.get("/traces/{trace}")
async def describe(request: Request, trace: str) -> Response:
    """What was read by what: sizes, kinds of attention, tokens."""
    return JSONResponse(await _shown(request, trace, document.describe))


@router.get("/traces/{trace}/file", responses=FILE, response_class=Response)
async def file(request: Request, trace: str) -> Response:
    """The whole trace as a file, which `Trace.load` reads in Python."""
    kept = service_of(request).inspector.traces.get(trace)
    headers = {"Content-Disposition": 'attachment; filename="trace.safetensors"'}
    return Response(kept.content, media_type="application/octet-stream", headers=headers)


@router.delete("/traces/{trace}", status_code=204)
async def drop(request: Request, trace: str) -> Response:
    """Let go of a trace."""
    service_of(request).inspector.traces.drop(trace)
    return Response(status_code=204)


@router.get("/traces/{trace}/attention", responses=BYTES, response_class=Response)
async def attention(
    request: Request,
    trace: str,
    kind: Kind,
    layer: Place,
    head: HeadOrAll,
    form: Literal["weights", "scores"] = "weights",
    dtype: Literal["u8", "f16", "f32"] = "u8",
) -> Response:
    """A head's weights or scores, queries by keys; or those of all heads of a layer, heads first."""
    one = None if head == "*" else int(head)
    found = await _shown(request, trace, lambda found: document.matrix(found, kind, layer, one, form, dtype))
    return in_bytes(found.data, found.shape, dtype, found.scale)


@router.get("/traces/{trace}/walk")
async def walk(request: Request, trace: str, kind: Kind, layer: Place, head: Place, query: Place) -> Response:
    """The formula, step by step, with the numbers of one token in one head."""
    return JSONResponse(
        await _shown(request, trace, lambda found: document.walk(found, kind, layer, head, query))
    )


@router.get("/traces/{trace}/steps")
async def steps(request: Request, trace: str) -> Response:
    """What the model said after each token of the outputs."""
    return JSONResponse(await _shown(request, trace, document.steps))


@router.get("/traces/{trace}/beam")
async def beam(request: Request, trace: str) -> Response:
    """The tree of the search that found the outputs."""

    def tree(found: Trace) -> dict[str, Any]:
        if found.beam is None:
            raise not_found("Nothing was searched for in this trace: its target was given.")
        return document.beam(found.beam)

    return JSONResponse(await _shown(request, trace, tree))


@router.get("/traces/{trace}/alignment")
async def alignment(request: Request, trace: str) -> Response:
    """Words of the outputs with their shares in those of the inputs, by the heads that align best."""
    served = _model_of(request, trace)

    def aligned(found: Trace) -> dict[str, Any]:
        heads = served.model.aligning_heads
        told = document.alignment(found, heads.heads, heads.rows)
        measured = {"accuracy": heads.accuracy, "of_each_head": heads.of_each_head}
        return {**told, "measured": heads.measured, **measured}

    return JSONResponse(await _shown(request, trace, aligned))


@router.get("/traces/{trace}/influence")
async def influence(
    request: Request, trace: str, row: Place = 0, method: Method = "integrated-gradients"
) -> Response:
    """How much each token that was read had to do with one that was written, or with a classifier's label."""
    found = await _asked(
        request, trace, lambda model, kept: document.plain(model.influence(kept, row, method=method))
    )
    return JSONResponse({"row": row, "method": method, "values": found})


@router.get("/traces/{trace}/influences")
async def influences(request: Request, trace: str, row: Place = 0) -> Response:
    """The same by every method, with what was written before: values, agreement, deletion curves."""
    found = await _asked(request, trace, lambda model, kept: document.measures(model.influences(kept, row)))
    return JSONResponse({"row": row, **found})


@router.post("/ablate")
async def ablate(request: Request, body: AblateAsked) -> Response:
    """What becomes of a text when the model is changed inside: one result for each list of interventions."""
    service = service_of(request)
    if (n := sum(map(len, body.interventions))) > (most := service.limits.interventions):
        raise bad_value(f"A request may have {most} interventions, and this one has {n}.", "interventions")
    served = service.catalogue.any(body.model)
    looked = Looked(body.source, _whole(body.target), body.to)
    lists = [from_json(each) for each in body.interventions]

    def work(job: Job) -> dict[str, Any]:
        return ablated(service, served, job, looked, lists, effects=body.effects)

    return JSONResponse(await service.desk.do(request, work, body.deadline_ms))


@router.get("/positions", responses=BYTES, response_class=Response)
async def positions(
    request: Request,
    model: str | None = None,
    length: Annotated[int, Query(ge=1, le=4096)] = 128,
) -> Response:
    """What the model adds to the embeddings at each place: places by d_model, as f32."""
    service = service_of(request)
    served = service.catalogue.any(model)

    def work(job: Job) -> np.ndarray | None:
        return service.inspector.look(served, job, lambda: served.model.positions(length))

    found = await service.desk.do(request, work)
    if found is None:
        raise not_found(f"Model {served.id!r} adds no positions to its embeddings.", "model")
    return in_bytes(found.astype("<f4").tobytes(), found.shape, "f32", 1.0)


@router.get("/neighbours")
async def neighbours(
    request: Request,
    text: Annotated[str, Query(min_length=1)],
    model: str | None = None,
    n: Annotated[int, Query(ge=1, le=50)] = 8,
) -> Response:
    """The tokens whose embeddings are nearest to those of a text's tokens, and all of them on a plane."""
    service = service_of(request)
    served = service.catalogue.any(model)

    def work(job: Job) -> dict[str, Any]:
        check_length(service, served, "text", text)
        found = service.inspector.look(served, job, lambda: served.model.neighbours(text, n))
        return document.neighbours(found)

    return JSONResponse(await service.desk.do(request, work))


async def _asked(request: Request, number: str, ask: Callable[[LoadedModel, Trace], T]) -> T:
    """What a model answers about a trace of it that is kept."""
    service, served = service_of(request), _model_of(request, number)
    kept = service.inspector.traces.get(number)

    def work(job: Job) -> T:
        found = Trace.from_bytes(kept.content)
        return service.inspector.look(served, job, lambda: ask(served.model, found))

    return await service.desk.do(request, work)


async def _shown(request: Request, number: str, show: Callable[[Trace], T]) -> T:
    """What is shown of a trace that is kept."""
    service = service_of(request)
    kept = service.inspector.traces.get(number)
    return await service.desk.do(request, lambda _: show(Trace.from_bytes(kept.content)))


def _model_of(request: Request, number: str) -> Served:
    """The model that a trace is of."""
    service = service_of(request)
    return service.catalogue.named(service.inspector.traces.get(number).name)


def _whole(target: str | list[int] | None) -> str | tuple[int, ...] | None:
    """A target, its ids as a value that can be remembered."""
    return tuple(target) if isinstance(target, list) else target
