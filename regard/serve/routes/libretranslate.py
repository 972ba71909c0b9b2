"""LibreTranslate's routes, so that its clients work: the same paths, fields and shapes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response

from regard.serve.files import FORMATS
from regard.serve.html.pages import translate_pages
from regard.serve.http.errors import Refusal, not_found, validation_refusal
from regard.serve.service import Service, bearer, service_of
from regard.serve.translating import AUTO, Asked, Translated, check_options, check_texts, translate
from regard.serve.work.job import Job
from regard.text.detection import detect
from regard.text.languages import language_name

router = APIRouter(tags=["LibreTranslate"])
URLENCODED = "application/x-www-form-urlencoded"
MOST_FIELDS = 1000
"""Of a form."""


class TranslateForm(BaseModel):
    """What `/translate` is asked, as JSON or as a form."""

    model_config = ConfigDict(extra="ignore")

    q: str | list[str]
    source: str = Field(min_length=1, max_length=32)
    target: str = Field(min_length=1, max_length=32)
    format: str = Field("text", pattern="^(text|html)$")
    alternatives: int = Field(0, ge=0)
    api_key: str | None = None


class DetectForm(BaseModel):
    """What `/detect` is asked."""

    q: str | list[str]
    api_key: str | None = None


def _body(form: type[BaseModel]) -> dict[str, Any]:
    """How the OpenAPI document shows a body that may be JSON or a form."""
    schema = form.model_json_schema()
    kinds = ("application/json", URLENCODED)
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


@router.post("/translate", openapi_extra=_body(TranslateForm))
async def translate_texts(request: Request) -> Response:
    """Translate a text or a list of texts."""
    service = service_of(request)
    form = await _read(request, TranslateForm, service)
    texts = [form.q] if isinstance(form.q, str) else form.q
    check_texts(texts, service.limits, "q")
    options = {"n_best": 1 + form.alternatives}
    check_options(options, service.limits)

    def work(job: Job) -> list[Translated]:
        asked = Asked(texts=texts, source=form.source, target=form.target, options=options)
        do = translate_pages if form.format == "html" else translate
        return do(service.catalogue, job, asked)

    found = await service.desk.do(request, work)
    answer: dict[str, Any] = {"translatedText": [each.result.text for each in found]}
    if form.source == AUTO:
        answer["detectedLanguage"] = [_detected(each) for each in found]
    if form.alternatives:
        answer["alternatives"] = [[one.text for one in each.result.alternatives] for each in found]
    if isinstance(form.q, str):
        answer = {name: of_each[0] for name, of_each in answer.items()}
    return JSONResponse(answer)


@router.post("/detect", openapi_extra=_body(DetectForm))
async def detect_language(request: Request) -> Response:
    """The language of a text: a list of one, or of none where the text does not tell."""
    service = service_of(request)
    form = await _read(request, DetectForm, service)
    text = form.q if isinstance(form.q, str) else "\n".join(form.q)
    check_texts([text], service.limits, "q")
    found = detect(text, service.catalogue.languages)
    return JSONResponse([{"confidence": 100 * found.confidence, "language": found.language}] if found else [])


@router.get("/languages")
async def languages(request: Request) -> Any:
    """The languages that are read, and what each can be translated into."""
    catalogue = service_of(request).catalogue
    return [
        {"code": code, "name": language_name(code), "targets": catalogue.targets(code)}
        for code in catalogue.languages
    ]


@router.get("/health")
async def health() -> Any:
    """That somebody is here; `/readyz` tells more."""
    return {"status": "ok"}


@router.get("/frontend/settings")
async def settings(request: Request) -> Any:
    """What a page needs to know to begin."""
    service = service_of(request)
    limits, known = service.limits, service.catalogue.languages
    first = known[0] if known else None
    target = next(iter(service.catalogue.targets(first)), None) if first else None
    return {
        "apiKeys": service.keys is not None,
        "keyRequired": service.keys is not None,
        "charLimit": limits.characters,
        "batchLimit": limits.items,
        "frontendTimeout": int(limits.deadline_s * 1000),
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": list(FORMATS),
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": target, "name": language_name(target) if target else None},
        },
    }


@router.post("/suggest", include_in_schema=False)
async def not_here() -> Any:
    """What this server does not do."""
    raise not_found("This server takes no suggestions: send texts to /translate.")


def _detected(found: Translated) -> dict[str, Any]:
    guess = found.way.detected
    return {
        "confidence": round(100 * guess.confidence) if guess else 0,
        "language": found.way.source,
    }


async def _urlencoded(request: Request) -> dict[str, list[Any]]:
    """A form, its letters escaped or, as `curl -d` sends them, in UTF-8 as they are."""
    try:
        return parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        problem = f"The form is not in UTF-8, or has more than {MOST_FIELDS:,} fields."
        raise Refusal(400, "bad_form", problem) from None


async def _multipart(request: Request) -> dict[str, list[Any]]:
    sent = await request.form()
    return {name: sent.getlist(name) for name in sent}


async def _read(request: Request, form: type[Any], service: Service) -> Any:
    """The body as a form, and whoever asks admitted.

    Raises:
        Refusal: it cannot be read, a value is wrong, or the key is.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    values: Any
    if kind in (URLENCODED, "multipart/form-data"):
        sent = await (_urlencoded(request) if kind == URLENCODED else _multipart(request))
        values = {name: several if len(several) > 1 else several[0] for name, several in sent.items()}
    else:
        try:
            values = json.loads(await request.body())
        except ValueError:
            raise Refusal(400, "bad_json", "The body is neither JSON nor a form.") from None
    service.admit(bearer(request) or (values.get("api_key") if isinstance(values, dict) else None))
    try:
        return form.model_validate(values)
    except ValidationError as error:
        raise validation_refusal(error.errors()) from None
