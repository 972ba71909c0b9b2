"""Our own API, `/api/v1`: models, translation, generation, classification, tokens, languages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from regard.engine.options import ClassifyOptions, GenerateOptions
from regard.engine.results import Continuation
from regard.errors import RegardError
from regard.serve.http.bodies import JSON
from regard.serve.http.dependencies import AppState, state_of
from regard.serve.http.errors import bad_value, stream_error
from regard.serve.http.middleware import request_id
from regard.serve.http.responses import MATRIX, as_json, event, event_stream, matrix_response
from regard.serve.http.schemas import (
    ERRORS,
    ClassifyRequest,
    DetectRequest,
    DetokenizeRequest,
    GenerateRequest,
    NextTokenRequest,
    ScoreRequest,
    TokenizeRequest,
    TranslateRequest,
    TranslateResponse,
)
from regard.serve.models import ModelRegistry, ServedClassifier, ServedGenerator, ServedModel
from regard.serve.translation import (
    StreamedText,
    TextsToTranslate,
    Translated,
    check_options,
    check_texts,
    choose_model,
    stream,
    stream_and_search,
    translate,
)
from regard.serve.work.executor import client_of
from regard.serve.work.jobs import RequestJob
from regard.text.detection import detect
from regard.text.languages import language_name

if TYPE_CHECKING:
    from torch import Tensor

router = APIRouter(prefix="/api/v1", responses=ERRORS, tags=["native"])


@router.get("/models")
async def models(request: Request) -> Any:
    """Every model of this server."""
    state = state_of(request)
    return {"models": [_described(each, state) for each in state.models]}


@router.get("/models/{model}")
async def model(request: Request, model: str) -> Any:
    """One model."""
    state = state_of(request)
    return _described(state.models.named(model), state)


@router.get("/languages")
async def languages(request: Request) -> Any:
    """The source languages, with their names and target languages."""
    registry = state_of(request).models
    return {
        "languages": [
            {
                "code": code,
                "name": language_name(code),
                "name_zh": language_name(code, chinese=True),
                "targets": registry.targets(code),
            }
            for code in registry.languages
        ]
    }


# --- translation --------------------------------------------------------------------------------------------


@router.post("/translate", responses={200: {"model": TranslateResponse}})
async def translate_texts(request: Request, body: TranslateRequest) -> Response:
    """Translate a text or a list of texts; with `stream`, by server-sent events."""
    state = state_of(request)
    texts, options = body.texts(), body.options()
    check_texts(texts, state.limits)
    check_options(options, state.limits)
    if body.has_rows and not state.models.translator(body.model, body.source, body.target).template:
        raise bad_value("This model was trained on texts, not on named fields: send a text.", "text")
    query = TextsToTranslate(
        texts=texts, model=body.model, source=body.source, target=body.target, options=options
    )
    if body.stream or _accepts_events(request):
        return await _streamed_translation(request, query, body)
    shown = body.tokens, body.scores
    content = await state.executor.process(
        request, _translations, query, shown, request_id(request), deadline_ms=body.deadline_ms
    )
    return Response(content, media_type=JSON)


@router.post("/score")
async def score(request: Request, body: ScoreRequest) -> Response:
    """The log-probability of each target as the translation of its source."""
    state = state_of(request)
    sources, targets = body.pairs()
    check_texts([*sources, *targets], state.limits, "source")
    if len(sources) != len(targets):
        counts = f"{len(sources)} sources and {len(targets)} targets"
        raise bad_value(f"{counts}: send one target per source.", "target")
    served = state.models.translator(body.model)
    content = await state.executor.process(
        request, _scores, served.id, sources, targets, body.to, deadline_ms=body.deadline_ms
    )
    return Response(content, media_type=JSON)


# --- generation and classification ------------------------------------------------------------------------


@router.post("/generate")
async def generate(request: Request, body: GenerateRequest) -> Response:
    """Continue a text, or each text of a list; with `stream`, by server-sent events."""
    state = state_of(request)
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    served = state.models.of_kind(ServedGenerator, body.model)
    check_texts(prompts, state.limits, "prompt")
    options = GenerateOptions(**body.options())
    if body.stream or _accepts_events(request):
        return _streamed_continuation(request, served, prompts, options, body.deadline_ms)
    results = await state.executor.run(
        request, lambda job: served.generate(job, prompts, options), body.deadline_ms
    )
    items, used = [asdict(each) for each in results], _used_to_generate(results)
    return JSONResponse({"id": request_id(request), "model": served.id, "items": items, "usage": used})


@router.post("/next", responses=MATRIX, response_class=Response)
async def next_token(request: Request, body: NextTokenRequest) -> Response:
    """The log-probability of every token to come next, by id."""
    state = state_of(request)
    served = state.models.of_kind(ServedGenerator, body.model)
    check_texts([body.prompt], state.limits, "prompt")

    def work(job: RequestJob) -> Tensor:
        return state.inspector.look(served, job, lambda: served.model.generator.log_probs_after(body.prompt))

    log_probs = (await state.executor.run(request, work, body.deadline_ms)).float().cpu().numpy()
    return matrix_response(log_probs.astype("<f4").tobytes(), log_probs.shape, "f32", 1.0)


@router.post("/classify")
async def classify(request: Request, body: ClassifyRequest) -> Any:
    """Label a text, or each text of a list."""
    state = state_of(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    served = state.models.of_kind(ServedClassifier, body.model)
    check_texts(texts, state.limits)
    options = ClassifyOptions(too_long=body.too_long, threshold=body.threshold)
    results = await state.executor.run(
        request, lambda job: served.classify(job, texts, options), body.deadline_ms
    )
    return {"id": request_id(request), "model": served.id, "items": [asdict(each) for each in results]}


# --- tokens and languages ---------------------------------------------------------------------------------


@router.post("/tokenize")
async def tokenize(request: Request, body: TokenizeRequest) -> Response:
    """Texts in subwords."""
    state = state_of(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    check_texts(texts, state.limits)
    served = state.models.any(body.model)
    content = await state.executor.process(request, _tokens, served.id, texts, deadline_ms=body.deadline_ms)
    return Response(content, media_type=JSON)


@router.post("/detokenize")
async def detokenize(request: Request, body: DetokenizeRequest) -> Response:
    """The text of token ids."""
    state = state_of(request)
    served = state.models.any(body.model)
    content = await state.executor.process(
        request, _text_of_ids, served.id, body.ids, deadline_ms=body.deadline_ms
    )
    return Response(content, media_type=JSON)


@router.post("/detect")
async def detect_languages(request: Request, body: DetectRequest) -> Response:
    """Which of this server's languages each text is in; null if that is unclear."""
    state = state_of(request)
    texts = [body.text] if isinstance(body.text, str) else body.text
    check_texts(texts, state.limits)
    return Response(await state.executor.process(request, _languages, texts), media_type=JSON)


# --- work on texts: in this process or, for large requests, in another one --------------------------------


def _translations(
    models: ModelRegistry, job: RequestJob, query: TextsToTranslate, shown: tuple[bool, bool], number: str
) -> bytes:
    """The body of a response; `shown`: whether with tokens, and with their scores."""
    results = translate(models, job, query)
    tokens, scores = shown
    items = [_item(each, tokens=tokens, scores=scores) for each in results]
    name = next((each.choice.model for each in results if each.choice.model), query.model)
    return as_json({"id": number, "model": name, "items": items, "usage": _used(query, results)})


def _scores(
    models: ModelRegistry,
    job: RequestJob,
    model: str,
    sources: list[str],
    targets: list[str],
    to: str | None,
) -> bytes:
    scores = models.translator(model).for_job(job).score(sources, targets, to=to)
    return as_json({"model": model, "items": [asdict(each) for each in scores]})


def _tokens(models: ModelRegistry, _job: RequestJob, model: str, texts: list[str]) -> bytes:
    subwords = models.named(model).model.subwords
    encoded = subwords.encode(texts)
    items = [{"ids": ids.tolist(), "tokens": subwords.pieces(ids)} for ids in encoded]
    return as_json({"model": model, "items": items})


def _text_of_ids(models: ModelRegistry, _job: RequestJob, model: str, ids: list[int]) -> bytes:
    return as_json({"model": model, "text": models.named(model).model.subwords.decode(ids)})


def _languages(models: ModelRegistry, _job: RequestJob, texts: list[str]) -> bytes:
    known = models.languages
    found = [detect(text, known) for text in texts]
    items = [each and {"language": each.language, "confidence": each.confidence} for each in found]
    return as_json({"items": items})


def _check_choice(models: ModelRegistry, _job: RequestJob, query: TextsToTranslate) -> None:
    """Check that there is a model for the first text."""
    choose_model(models, query, 0)


# --- responses --------------------------------------------------------------------------------------------


def _described(served: ServedModel[Any], state: AppState) -> dict[str, Any]:
    described = served.model.description
    return {
        "id": served.id,
        "task": served.verb,
        "does": served.task,
        "template": served.template,
        "labels": list(served.model.labels),
        "directions": [{"source": source, "target": target} for source, target in served.directions],
        "config": asdict(described.config),
        "decoding": asdict(described.decoding),
        "n_parameters": described.n_parameters,
        "weights_hash": described.weights_hash,
        "metrics": described.metrics,
        "run": served.run is not None,
        "limits": asdict(state.limits),
    }


def _item(translated: Translated, *, tokens: bool, scores: bool) -> dict[str, Any]:
    result, choice = translated
    item = {
        "text": result.text,
        "score": result.score,
        "source_lang": choice.source,
        "target_lang": choice.target,
        "confidence": choice.detected and choice.detected.confidence,
        "hypotheses": [{"text": each.text, "score": each.score} for each in (result, *result.alternatives)],
        "engine": result.engine,
        "split": result.split,
        "unfinished": result.unfinished,
        "repetitive": result.repetitive,
        "missing": list(result.missing),
        "unexpected_language": result.unexpected_language,
        "numbers": [asdict(change) for change in result.numbers],
    }
    if tokens or scores:
        item["tokens"] = list(result.tokens)
    if scores:
        item["token_scores"] = list(result.token_scores)
    if result.aligned_by:
        item["alignment"] = [asdict(link) for link in result.alignment]
        item["aligned_by"] = result.aligned_by
    return item


def _accepts_events(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


def _used(query: TextsToTranslate, results: Sequence[Translated]) -> dict[str, int]:
    return {
        "characters": sum(map(len, query.texts)),
        "output_tokens": sum(len(each.result.tokens) for each in results),
    }


def _used_to_generate(results: Sequence[Continuation]) -> dict[str, int]:
    return {
        "input_tokens": sum(each.n_prompt_tokens for each in results),
        "output_tokens": sum(len(each.tokens) for each in results),
    }


# --- streams ----------------------------------------------------------------------------------------------


async def _streamed_translation(
    request: Request, query: TextsToTranslate, body: TranslateRequest
) -> Response:
    state = state_of(request)
    if query.options["n_best"] > 1:
        raise bad_value("A stream has one translation per text: omit n_best or stream.", "n_best")
    searches = (query.options["beam_size"] or 1) > 1 and not query.options["sample"]
    for name in () if searches else ("scores", "alignment"):
        if getattr(body, name):
            raise bad_value(f"A stream without a beam has no {name}: omit it, or set beam.", name)

    # Before the response starts, so that a text of unclear language gets its status code.
    await state.executor.process(request, _check_choice, query, deadline_ms=body.deadline_ms)
    state.executor.check(client_of(request))
    pieces = state.executor.stream(
        request, stream_and_search if searches else stream, query, deadline_ms=body.deadline_ms
    )

    def item(translated: Translated) -> dict[str, Any]:
        described = _item(translated, tokens=body.tokens, scores=body.scores)
        unscored = () if searches else ("score", "hypotheses")
        return {name: value for name, value in described.items() if name not in unscored}

    return _events(request, len(query.texts), pieces, item, partial(_used, query))


def _streamed_continuation(
    request: Request,
    served: ServedGenerator,
    prompts: list[str],
    options: GenerateOptions,
    deadline_ms: int | None,
) -> Response:
    def work(_models: ModelRegistry, job: RequestJob) -> Iterator[StreamedText]:
        for i, piece in served.stream(job, prompts, options):
            yield StreamedText(i, piece) if isinstance(piece, str) else StreamedText(i, "", result=piece)

    state = state_of(request)
    state.executor.check(client_of(request))
    pieces = state.executor.stream(request, work, apart=False, deadline_ms=deadline_ms)
    return _events(request, len(prompts), pieces, asdict, _used_to_generate)


def _events(
    request: Request,
    n_items: int,
    pieces: AsyncGenerator[StreamedText],
    item: Callable[[Any], dict[str, Any]],
    used: Callable[[Sequence[Any]], dict[str, int]],
) -> Response:
    """Events `start`, `token`, `revise`, `item`, `done`; or `error`.

    An `item` is what the response without a stream has, and so is the usage.
    """

    async def events() -> AsyncIterator[str]:
        results: dict[int, Any] = {}
        yield event({"id": request_id(request), "items": n_items}, "start")
        try:
            async for i, text, replaces, result in pieces:
                if result is not None:
                    results[i] = result
                else:
                    yield event({"i": i, "text": text}, "revise" if replaces else "token")
            for i in range(n_items):
                yield event({"i": i, **item(results[i])}, "item")
            yield event({"usage": used([*results.values()])}, "done")
        except RegardError as error:
            yield event(stream_error(error, request.url.path), "error")

    return event_stream(events())
