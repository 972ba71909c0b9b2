"""`/api/v1/generate` and `/api/v1/classify`: models of one stack alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from regard.engine.options import ClassifyOptions, GenerateOptions
from regard.errors import RegardError
from regard.serve.http.binary import BYTES, in_bytes
from regard.serve.http.error_shapes import streamed_error
from regard.serve.http.events import event, event_stream
from regard.serve.http.middleware import request_id
from regard.serve.http.schemas import ERRORS, ClassifyAsked, GenerateAsked, NextAsked
from regard.serve.served import CLASSIFY, GENERATE, Served
from regard.serve.service import admitted, service_of
from regard.serve.translating import check_texts
from regard.serve.work.job import Job
from regard.serve.work.lone_tasks import continued, labelled, streamed

if TYPE_CHECKING:
    from torch import Tensor

router = APIRouter(prefix="/api/v1", dependencies=[Depends(admitted)], responses=ERRORS, tags=["native"])


@router.post("/generate")
async def generate(request: Request, body: GenerateAsked) -> Response:
    """Go on from a text, or from each of a list; with `stream`, by server-sent events."""
    service = service_of(request)
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    served = service.catalogue.for_task(GENERATE, body.model)
    check_texts(prompts, service.limits, "prompt")
    options = GenerateOptions(**body.options())
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        return _streamed(request, served, prompts, options, body.deadline_ms)
    found = await service.desk.do(
        request,
        lambda job: continued(served.scheduler, job, served.model.generator, prompts, options),
        body.deadline_ms,
    )
    used = {
        "input_tokens": sum(each.n_prompt_tokens for each in found),
        "output_tokens": sum(len(each.tokens) for each in found),
    }
    items = [asdict(each) for each in found]
    return JSONResponse({"id": request_id(request), "model": served.id, "items": items, "usage": used})


@router.post("/next", responses=BYTES, response_class=Response)
async def next_token(request: Request, body: NextAsked) -> Response:
    """The log-probability of every token to come next, by ids: what `generate` draws its first token from."""
    service = service_of(request)
    served = service.catalogue.for_task(GENERATE, body.model)
    check_texts([body.prompt], service.limits, "prompt")

    def work(job: Job) -> Tensor:
        return service.inspector.look(
            served, job, lambda: served.model.generator.log_probs_after(body.prompt)
        )

    found = (await service.desk.do(request, work, body.deadline_ms)).float().cpu().numpy()
    return in_bytes(found.astype("<f4").tobytes(), found.shape, "f32", 1.0)


@router.post("/classify")
async def classify(request: Request, body: ClassifyAsked) -> Any:
    """Label texts."""
    service = service_of(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    served = service.catalogue.for_task(CLASSIFY, body.model)
    check_texts(texts, service.limits)
    options = ClassifyOptions(too_long=body.too_long, threshold=body.threshold)
    found = await service.desk.do(
        request,
        lambda job: labelled(served.scheduler, job, served.model.classifier, texts, options),
        body.deadline_ms,
    )
    return {"id": request_id(request), "model": served.id, "items": [asdict(each) for each in found]}


def _streamed(
    request: Request, served: Served, prompts: list[str], options: GenerateOptions, deadline_ms: int | None
) -> Response:
    """Events `start`, `token`, `item`, `done`; or `error`."""
    service = service_of(request)
    service.desk.check()
    pieces = service.desk.stream(
        lambda job: streamed(served.scheduler, job, served.model.generator, prompts, options), deadline_ms
    )

    async def events() -> AsyncIterator[str]:
        texts = [""] * len(prompts)
        yield event({"id": request_id(request), "items": len(texts)}, "start")
        try:
            async for i, piece in pieces:
                texts[i] += piece
                yield event({"i": i, "text": piece}, "token")
            for i, text in enumerate(texts):
                yield event({"i": i, "text": text}, "item")
            yield event({"usage": {"characters": sum(map(len, prompts))}}, "done")
        except RegardError as error:
            yield event(streamed_error(error, request.url.path), "error")

    return event_stream(events())
