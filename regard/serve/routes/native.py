"""`/api/v1`: models, translation and what belongs to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from regard.errors import RegardError
from regard.serve.http.error_shapes import streamed_error
from regard.serve.http.errors import bad_value
from regard.serve.http.events import event, event_stream
from regard.serve.http.middleware import request_id
from regard.serve.http.schemas import (
    ERRORS,
    DetectAsked,
    DetokenizeAsked,
    ScoreAsked,
    TokenizeAsked,
    TranslateAnswer,
    TranslateAsked,
)
from regard.serve.served import Served
from regard.serve.service import Service, admitted, service_of
from regard.serve.translating import (
    Asked,
    Said,
    Translated,
    check_options,
    check_texts,
    stream,
    stream_and_search,
    translate,
    way,
)
from regard.serve.work.job import Job
from regard.text.detection import detect
from regard.text.languages import language_name

router = APIRouter(prefix="/api/v1", dependencies=[Depends(admitted)], responses=ERRORS, tags=["native"])


@router.get("/models")
async def models(request: Request) -> Any:
    """Every model of this server."""
    service = service_of(request)
    return {"models": [_about(each, service) for each in service.catalogue]}


@router.get("/models/{model}")
async def model(request: Request, model: str) -> Any:
    """One of them."""
    service = service_of(request)
    return _about(service.catalogue.named(model), service)


@router.get("/languages")
async def languages(request: Request) -> Any:
    """The languages that are read, with their names and what they can be translated into."""
    catalogue = service_of(request).catalogue
    return {
        "languages": [
            {
                "code": code,
                "name": language_name(code),
                "name_zh": language_name(code, chinese=True),
                "targets": catalogue.targets(code),
            }
            for code in catalogue.languages
        ]
    }


@router.post("/translate", responses={200: {"model": TranslateAnswer}})
async def translate_texts(request: Request, body: TranslateAsked) -> Response:
    """Translate a text or a list of texts; with `stream`, by server-sent events."""
    service = service_of(request)
    texts, options = body.texts(), body.options()
    check_texts(texts, service.limits)
    check_options(options, service.limits)
    if body.has_rows and not service.catalogue.choose(body.model, body.source, body.target).template:
        raise bad_value("This model was trained on texts, not on named fields: send a text.", "text")
    asked = Asked(texts=texts, model=body.model, source=body.source, target=body.target, options=options)
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        return await _streamed(request, service, asked, body.deadline_ms)

    def work(job: Job) -> list[Translated]:
        return translate(service.catalogue, job, asked)

    found = await service.desk.do(request, work, body.deadline_ms)
    items = [_item(each, tokens=body.tokens, scores=body.scores) for each in found]
    used = {
        "characters": sum(map(len, texts)),
        "output_tokens": sum(len(each.result.tokens) for each in found),
    }
    name = next((each.way.model.id for each in found if each.way.model), body.model)
    return JSONResponse({"id": request_id(request), "model": name, "items": items, "usage": used})


@router.post("/score")
async def score(request: Request, body: ScoreAsked) -> Any:
    """How likely each target is as the translation of its source."""
    service = service_of(request)
    sources, targets = body.pairs()
    check_texts([*sources, *targets], service.limits, "source")
    if len(sources) != len(targets):
        raise bad_value(
            f"{len(sources)} sources and {len(targets)} targets: one of each is a pair.", "target"
        )
    served = service.catalogue.choose(body.model)
    found = await service.desk.do(
        request, lambda job: served.for_job(job).score(sources, targets, to=body.to), body.deadline_ms
    )
    return {"model": served.id, "items": [asdict(each) for each in found]}


@router.post("/tokenize")
async def tokenize(request: Request, body: TokenizeAsked) -> Any:
    """Texts in subwords."""
    service = service_of(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    check_texts(texts, service.limits)
    served = service.catalogue.any(body.model)
    subwords = served.model.subwords

    def work(_job: Job) -> list[dict[str, Any]]:
        encoded = subwords.encode(list(map(_readable, texts)))
        return [{"ids": ids.tolist(), "tokens": subwords.pieces(ids)} for ids in encoded]

    return {"model": served.id, "items": await service.desk.do(request, work, body.deadline_ms)}


@router.post("/detokenize")
async def detokenize(request: Request, body: DetokenizeAsked) -> Any:
    """The text of some token ids."""
    served = service_of(request).catalogue.any(body.model)
    return {"model": served.id, "text": served.model.subwords.decode(body.ids)}


@router.post("/detect")
async def detect_languages(request: Request, body: DetectAsked) -> Any:
    """Which of this server's languages each text is in; null where it does not tell."""
    service = service_of(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    check_texts(texts, service.limits)
    known = service.catalogue.languages
    found = [detect(text, known) for text in texts]
    return {"items": [each and {"language": each.language, "confidence": each.confidence} for each in found]}


# --- what is told -------------------------------------------------------------------------------------------


def _about(served: Served, service: Service) -> dict[str, Any]:
    described = served.description
    return {
        "id": served.id,
        "task": served.task,
        "does": served.does,
        "template": served.template,
        "labels": list(served.model.labels),
        "directions": [{"source": source, "target": target} for source, target in served.directions],
        "config": asdict(described.config),
        "decoding": asdict(described.decoding),
        "n_parameters": described.n_parameters,
        "weights_hash": described.weights_hash,
        "metrics": described.metrics,
        "run": served.run is not None,
        "limits": asdict(service.limits),
    }


def _item(found: Translated, *, tokens: bool, scores: bool) -> dict[str, Any]:
    result = found.result
    item = {
        "text": result.text,
        "score": result.score,
        "source_lang": found.way.source,
        "target_lang": found.way.target,
        "confidence": found.way.detected and found.way.detected.confidence,
        "hypotheses": [{"text": each.text, "score": each.score} for each in (result, *result.alternatives)],
        "engine": result.engine,
        "split": result.split,
        "unfinished": result.unfinished,
        "repetitive": result.repetitive,
        "missing": list(result.missing),
    }
    if tokens or scores:
        item["tokens"] = list(result.tokens)
    if scores:
        item["token_scores"] = list(result.token_scores)
    if result.aligned_by:
        item["alignment"] = [asdict(link) for link in result.alignment]
        item["aligned_by"] = result.aligned_by
    return item


# --- streams ------------------------------------------------------------------------------------------------


async def _streamed(request: Request, service: Service, asked: Asked, deadline_ms: int | None) -> Response:
    """Events `start`, `token`, `revise`, `item`, `done`; or `error`."""
    if asked.options["n_best"] > 1:
        raise bad_value("A stream has one translation of each text: leave out n_best or stream.", "n_best")

    way(service.catalogue, asked, 0)
    service.desk.check()

    searches = (asked.options["beam_size"] or 1) > 1 and not asked.options["sample"]

    def work(job: Job) -> Iterator[Said]:
        return (stream_and_search if searches else stream)(service.catalogue, job, asked)

    pieces = service.desk.stream(work, deadline_ms)

    async def events() -> AsyncIterator[str]:
        texts = [""] * len(asked.texts)
        yield event({"id": request_id(request), "items": len(texts)}, "start")
        try:
            async for i, text, instead in pieces:
                texts[i] = text if instead else texts[i] + text
                yield event({"i": i, "text": text}, "revise" if instead else "token")
            for i, text in enumerate(texts):
                yield event({"i": i, "text": text}, "item")
            yield event({"usage": {"characters": sum(map(len, asked.texts))}}, "done")
        except RegardError as error:
            yield event(streamed_error(error, request.url.path), "error")

    return event_stream(events())


def _readable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_value("A text holds half a character, which cannot be read.", "text") from None
    return text
