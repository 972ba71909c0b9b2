"""Looking inside models: traces, ablations, positions, neighbours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from regard.errors import RegardError, RequestError
from regard.look.alignment.alignment import AligningHeads
from regard.look.export import document
from regard.look.export.html import html
from regard.look.influence import STEPS
from regard.look.influence.methods import Method
from regard.look.trace.blocks import Kind
from regard.look.trace.trace import Trace
from regard.serve.http.bodies import JSON
from regard.serve.http.dependencies import state_of
from regard.serve.http.errors import not_found
from regard.serve.http.responses import MATRIX, HeadOrAll, Index, as_json, matrix_response
from regard.serve.http.schemas import ERRORS, AblateRequest, TraceRequest
from regard.serve.inspector import TracedText
from regard.serve.models import ModelRegistry, ServedModel
from regard.serve.work.jobs import RequestJob
from regard.serve.work.process import AT_REST, AskingJob
from regard.tasks.loaded import LoadedModel

T = TypeVar("T")
Steps = Annotated[int, Query(ge=2, le=512, description="Most points of integrated gradients.")]
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A safetensors file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
KEPT_TRACES = 2
"""Traces that the process for large work keeps: the page asks for many parts of one."""
_RECENT: OrderedDict[str, Future[Trace]] = OrderedDict()
AT_REST.append(_RECENT.clear)
PAGE: dict[int | str, dict[str, Any]] = {
    200: {"description": "An HTML file.", "content": {"text/html": {"schema": {"type": "string"}}}}
}
router = APIRouter(prefix="/api/v1", responses=ERRORS, tags=["look"])


@router.post("/traces")
async def make_trace(request: Request, body: TraceRequest) -> Response:
    """Trace what a model does with a text; the trace is stored for a while."""
    state = state_of(request)
    served = state.models.any(body.model)
    prefix = tuple(body.prefix or ())
    text = TracedText(body.source, _hashable(body.target), body.to, body.beam, prefix, body.length_penalty)
    changes = state.inspector.interventions(served, [body.interventions])[0]

    def work(job: RequestJob) -> dict[str, Any]:
        trace = state.inspector.trace(served, job, text, changes)
        if not changes:
            state.inspector.cache_output(served, text, trace)
        stored = state.inspector.traces.add(served.id, trace.to_bytes())
        head = {"trace_id": stored.id, "model": stored.name, "expires": stored.expires}
        return head | document.describe(trace)

    return JSONResponse(await state.executor.run(request, work, body.deadline_ms), 201)


@router.get("/traces/{trace}")
async def describe(request: Request, trace: str) -> Response:
    """The model's sizes, kinds of attention, and tokens."""
    return await _shown_as_json(request, trace, document.describe)


@router.get("/traces/{trace}/file", responses=FILE, response_class=Response)
async def file(request: Request, trace: str) -> Response:
    """The whole trace as a file, which `Trace.load` reads in Python."""
    stored = state_of(request).inspector.traces.get(trace)
    headers = {"Content-Disposition": 'attachment; filename="trace.safetensors"'}
    return Response(stored.content, media_type="application/octet-stream", headers=headers)


@router.get("/traces/{trace}/page", responses=PAGE, response_class=Response)
async def page(
    request: Request,
    trace: str,
    state: Annotated[
        str, Query(max_length=4000, description="What the page shows: its address behind #.")
    ] = "",
) -> Response:
    """One HTML file with the trace, which needs no server."""
    try:
        heads = _model_of(request, trace).model.aligning_heads
    except RequestError:  # the model does not align
        heads = None
    content = await _shown(request, trace, _page, heads, state.removeprefix("#"))
    headers = {"Content-Disposition": 'attachment; filename="trace.html"'}
    return Response(content, media_type="text/html", headers=headers)


def _page(trace: Trace, heads: AligningHeads | None, start: str) -> bytes:
    aligned = None
    if heads is not None:
        with suppress(RequestError):  # there is nothing to align
            aligned = document.alignment(trace, heads.heads, heads.rows) | {"measured": heads.measured}
    return html(trace, aligned=aligned, start=start).encode()


@router.delete("/traces/{trace}", status_code=204)
async def drop(request: Request, trace: str) -> Response:
    """Delete a trace."""
    state_of(request).inspector.traces.delete(trace)
    return Response(status_code=204)


@router.get("/traces/{trace}/attention", responses=MATRIX, response_class=Response)
async def attention(
    request: Request,
    trace: str,
    kind: Kind,
    layer: Index,
    head: HeadOrAll,
    form: Literal["weights", "scores"] = "weights",
    dtype: Literal["u8", "f16", "f32"] = "u8",
) -> Response:
    """The weights or scores of a head, queries by keys; or of all heads of a layer, heads first."""
    one = None if head == "*" else int(head)
    found = await _shown(request, trace, document.matrix, kind, layer, one, form, dtype)
    return matrix_response(found.data, found.shape, dtype, found.scale)


@router.get("/traces/{trace}/activation", responses=MATRIX, response_class=Response)
async def activation(request: Request, trace: str, address: str) -> Response:
    """The activations at an address, tokens first, such as `encoder.layers.0.feed_forward.output`."""
    found = await _shown(request, trace, document.activation, address)
    return matrix_response(found.data, found.shape, "f32", found.scale)


@router.get("/traces/{trace}/walk")
async def walk(request: Request, trace: str, kind: Kind, layer: Index, head: Index, query: Index) -> Response:
    """The formula, step by step, with the numbers of one token in one head."""
    return await _shown_as_json(request, trace, document.walk, kind, layer, head, query)


@router.get("/traces/{trace}/steps")
async def steps(request: Request, trace: str) -> Response:
    """The model's predictions after each output token."""
    return await _shown_as_json(request, trace, document.steps)


@router.get("/traces/{trace}/summaries")
async def summaries(request: Request, trace: str) -> Response:
    """Role, entropy, confidence and distance of every head, by kind, layer and head."""
    return await _shown_as_json(request, trace, document.head_summaries)


@router.get("/traces/{trace}/beam")
async def beam(request: Request, trace: str) -> Response:
    """The tree of the beam search."""
    return await _shown_as_json(request, trace, _tree)


def _tree(trace: Trace) -> dict[str, Any]:
    if trace.beam is None:
        raise not_found("This trace has no beam search: its target was given.")
    return document.beam(trace.beam)


@router.get("/traces/{trace}/alignment")
async def alignment(request: Request, trace: str) -> Response:
    """Word alignment by the heads that align best."""
    return await _shown_as_json(request, trace, _aligned, _model_of(request, trace).model.aligning_heads)


def _aligned(trace: Trace, heads: AligningHeads) -> dict[str, Any]:
    described = document.alignment(trace, heads.heads, heads.rows)
    measured = {"accuracy": heads.accuracy, "of_each_head": heads.of_each_head}
    return {**described, "measured": heads.measured, **measured}


@router.get("/traces/{trace}/influence")
async def influence(
    request: Request,
    trace: str,
    row: Index = 0,
    method: Method = "integrated-gradients",
    steps: Steps = STEPS,
) -> Response:
    """The influence of each input token on an output token, or on a label; for gradients, how it adds up."""

    def compute(model: LoadedModel, found: Trace) -> dict[str, Any]:
        influence = model.influence(found, row, method=method, steps=steps)
        convergence = influence.convergence and influence.convergence.to_json()
        return {"values": document.plain(influence), "convergence": convergence}

    return JSONResponse({"row": row, "method": method, **await _computed(request, trace, compute)})


@router.get("/traces/{trace}/influences")
async def influences(request: Request, trace: str, row: Index = 0, steps: Steps = STEPS) -> Response:
    """Influence by every method, including earlier output tokens: values, agreement, deletion curves."""
    measures = await _computed(
        request, trace, lambda model, found: document.influences(model.influences(found, row, steps=steps))
    )
    return JSONResponse({"row": row, **measures})


@router.post("/ablate")
async def ablate(request: Request, body: AblateRequest) -> Response:
    """The output for a text when the model is changed inside: one result per list of interventions."""
    state = state_of(request)
    served = state.models.any(body.model)
    text = TracedText(body.source, _hashable(body.target), body.to)
    lists = state.inspector.interventions(served, body.interventions)

    def work(job: RequestJob) -> dict[str, Any]:
        return state.inspector.ablate(served, job, text, lists, effects=body.effects)

    return JSONResponse(await state.executor.run(request, work, body.deadline_ms))


@router.get("/positions", responses=MATRIX, response_class=Response)
async def positions(
    request: Request,
    model: str | None = None,
    length: Annotated[int, Query(ge=1, le=4096)] = 128,
) -> Response:
    """What the model adds to the embeddings: positions by d_model, as f32."""
    state = state_of(request)
    served = state.models.any(model)

    def work(job: RequestJob) -> np.ndarray | None:
        return state.inspector.look(served, job, lambda: served.model.positions(length))

    found = await state.executor.run(request, work)
    if found is None:
        raise not_found(f"Model {served.id!r} adds no positions to its embeddings.", "model")
    return matrix_response(found.astype("<f4").tobytes(), found.shape, "f32", 1.0)


@router.get("/neighbours")
async def neighbours(
    request: Request,
    text: Annotated[str, Query(min_length=1)],
    model: str | None = None,
    n: Annotated[int, Query(ge=1, le=50)] = 8,
) -> Response:
    """The tokens whose embeddings are closest to those of a text's tokens, and their positions on a plane."""
    state = state_of(request)
    served = state.models.any(model)

    def work(job: RequestJob) -> dict[str, Any]:
        state.inspector.check_length(served, "text", text)
        found = state.inspector.look(served, job, lambda: served.model.neighbours(text, n))
        return document.neighbours(found)

    return JSONResponse(await state.executor.run(request, work))


async def _computed(request: Request, trace: str, compute: Callable[[LoadedModel, Trace], T]) -> T:
    """What a model computes about a stored trace of it."""
    state, served = state_of(request), _model_of(request, trace)
    stored = state.inspector.traces.get(trace)

    def work(job: RequestJob) -> T:
        return state.inspector.look(
            served, job, lambda: compute(served.model, Trace.from_bytes(stored.content))
        )

    return await state.executor.run(request, work)


async def _shown_as_json(request: Request, trace: str, show: Callable[..., Any], *arguments: Any) -> Response:
    """A part of a stored trace as JSON: `show(trace, *arguments)`."""
    content = await _shown(request, trace, _written, show, *arguments)
    return Response(content, media_type=JSON)


async def _shown(request: Request, trace: str, show: Callable[..., T], *arguments: Any) -> T:
    """A part of a stored trace, calculated in the process for large work: `show(trace, *arguments)`."""
    state = state_of(request)
    stored = state.inspector.traces.get(trace)
    return await state.executor.process(request, _part, stored.id, show, arguments, apart=True)


def _part(_models: ModelRegistry, job: AskingJob, trace: str, show: Callable[..., T], arguments: Any) -> T:
    return show(_recent(job, trace), *arguments)


def _recent(job: AskingJob, trace: str) -> Trace:
    """A stored trace; of calls that need it at the same time, one asks for it."""
    if (found := _RECENT.get(trace)) is None:
        _RECENT[trace] = found = Future()
        while len(_RECENT) > KEPT_TRACES:
            _RECENT.popitem(last=False)
        try:
            found.set_result(Trace.from_bytes(job.ask("trace", trace)))
        except Exception as error:
            _RECENT.pop(trace, None)
            found.set_exception(error)
    try:
        with job.waiting():
            return found.result()
    except RegardError:
        job.check()
        return Trace.from_bytes(job.ask("trace", trace))  # the call that asked was cancelled


def _written(trace: Trace, show: Callable[..., Any], *arguments: Any) -> bytes:
    return as_json(show(trace, *arguments))


def _model_of(request: Request, trace: str) -> ServedModel[Any]:
    """The model of a trace."""
    state = state_of(request)
    return state.models.named(state.inspector.traces.get(trace).name)


def _hashable(target: str | list[int] | None) -> str | tuple[int, ...] | None:
    """A target whose ids can be part of a cache's key."""
    return tuple(target) if isinstance(target, list) else target
