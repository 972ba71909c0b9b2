"""LibreTranslate's routes, for its clients: the same paths, fields and formats.

A file is sent, and its translation can be downloaded for a while.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.formparsers import MultiPartException
from starlette.responses import JSONResponse, Response
from starlette.types import Message

from regard.serve.http.bodies import FORM, JSON, MULTIPART, media_type
from regard.serve.http.dependencies import check_key_in_body, state_of
from regard.serve.http.errors import ApiError, bad_value, not_found, validation_error
from regard.serve.http.responses import as_json
from regard.serve.http.schemas import Code, Many
from regard.serve.models import ModelRegistry
from regard.serve.pages import translate_pages
from regard.serve.translation import (
    AUTO,
    TextsToTranslate,
    Translated,
    check_options,
    check_texts,
    translate,
)
from regard.serve.work.jobs import RequestJob
from regard.text.detection import detect
from regard.text.languages import language_name

router = APIRouter(tags=["LibreTranslate"])
MAX_FIELDS = 1000
"""Maximum number of fields of a form."""
FORMATS: dict[str, Callable[[ModelRegistry, RequestJob, TextsToTranslate], list[Translated]]] = {
    ".txt": translate,
    ".html": translate_pages,
    ".htm": translate_pages,
}
"""How files are translated, by suffix."""


class TranslateForm(BaseModel):
    """The body of `/translate`, as JSON or as a form."""

    model_config = ConfigDict(extra="ignore")

    q: str | Many[str]
    source: Code
    target: Code
    format: str = Field("text", pattern="^(text|html)$")
    alternatives: int = Field(0, ge=0)
    api_key: str | None = None


class DetectForm(BaseModel):
    """The body of `/detect`."""

    q: str | Many[str]
    api_key: str | None = None


def _body(form: type[BaseModel]) -> dict[str, Any]:
    """A body that may be JSON or a form, for the OpenAPI document."""
    schema = form.model_json_schema()
    kinds = (JSON, FORM)
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


@router.post("/translate", openapi_extra=_body(TranslateForm))
async def translate_texts(request: Request) -> Response:
    """Translate a text or a list of texts."""
    state = state_of(request)
    form = await _read(request, TranslateForm)
    texts = [form.q] if isinstance(form.q, str) else form.q
    check_texts(texts, state.limits, "q")
    check_options({"n_best": 1 + form.alternatives}, state.limits)
    return Response(await state.executor.process(request, _translations, form), media_type=JSON)


def _translations(models: ModelRegistry, job: RequestJob, form: TranslateForm) -> bytes:
    """The body of a response."""
    texts = [form.q] if isinstance(form.q, str) else form.q
    options = {"n_best": 1 + form.alternatives}
    query = TextsToTranslate(texts=texts, source=form.source, target=form.target, options=options)
    results = (translate_pages if form.format == "html" else translate)(models, job, query)
    response: dict[str, Any] = {"translatedText": [each.result.text for each in results]}
    if form.source == AUTO:
        response["detectedLanguage"] = [_detected(each) for each in results]
    if form.alternatives:
        response["alternatives"] = [[one.text for one in each.result.alternatives] for each in results]
    if isinstance(form.q, str):
        response = {name: by_text[0] for name, by_text in response.items()}
    return as_json(response)


@router.post("/detect", openapi_extra=_body(DetectForm))
async def detect_language(request: Request) -> Response:
    """The language of a text: a list of one, or an empty list if it is unclear."""
    state = state_of(request)
    form = await _read(request, DetectForm)
    text = form.q if isinstance(form.q, str) else "\n".join(form.q)
    check_texts([text], state.limits, "q")
    return Response(await state.executor.process(request, _language, text), media_type=JSON)


def _language(models: ModelRegistry, _job: RequestJob, text: str) -> bytes:
    found = detect(text, models.languages)
    return as_json([{"confidence": 100 * found.confidence, "language": found.language}] if found else [])


@router.get("/languages")
async def languages(request: Request) -> Any:
    """The source languages and their target languages."""
    models = state_of(request).models
    return [
        {"code": code, "name": language_name(code), "targets": models.targets(code)}
        for code in models.languages
    ]


@router.get("/health")
async def health() -> Any:
    """Whether the process responds; see also `/readyz`."""
    return {"status": "ok"}


@router.get("/frontend/settings")
async def settings(request: Request) -> Any:
    """The settings of LibreTranslate's page."""
    state = state_of(request)
    limits, known = state.limits, state.models.languages
    first = known[0] if known else None
    target = next(iter(state.models.targets(first)), None) if first else None
    return {
        "apiKeys": state.keys is not None,
        "keyRequired": state.keys is not None,
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
async def suggest() -> Any:
    """Not supported."""
    raise not_found("This server accepts no suggestions: send texts to /translate.")


def _detected(translated: Translated) -> dict[str, Any]:
    guess = translated.choice.detected
    return {
        "confidence": round(100 * guess.confidence) if guess else 0,
        "language": translated.choice.source,
    }


def _urlencoded(body: bytes) -> dict[str, list[Any]]:
    """A form, percent-encoded or, as `curl -d` sends it, in plain UTF-8."""
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        problem = f"The form is not in UTF-8, or has more than {MAX_FIELDS:,} fields."
        raise ApiError(400, problem, code="bad_form") from None


def _multipart(
    content_type: str, body: bytes, most: dict[str, int]
) -> tuple[dict[str, list[str]], dict[str, tuple[str, bytes]]]:
    """The fields and files of a form of several parts; Starlette parses it with an event loop."""
    scope = {"type": "http", "headers": [(b"content-type", content_type.encode("latin-1"))]}

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def parsed() -> tuple[dict[str, list[str]], dict[str, tuple[str, bytes]]]:
        fields: dict[str, list[str]] = {}
        files: dict[str, tuple[str, bytes]] = {}
        async with Request(scope, receive).form(**most) as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields.setdefault(name, []).append(value)
                else:
                    files.setdefault(name, (value.filename or "", await value.read()))
        return fields, files

    try:
        return asyncio.run(parsed())
    except MultiPartException as error:
        raise ApiError(400, f"The form cannot be read: {error.message}", code="bad_form") from None


def _parts(
    _models: ModelRegistry, _job: RequestJob, content_type: str, body: bytes, most: dict[str, int]
) -> tuple[dict[str, list[str]], dict[str, tuple[str, bytes]]]:
    return _multipart(content_type, body, most)


def _fields(_models: ModelRegistry, _job: RequestJob, content_type: str, body: bytes) -> dict[str, list[Any]]:
    """The fields of a form. Parsing 2 MB may take seconds."""
    if media_type(content_type) == MULTIPART:
        return _multipart(content_type, body, {})[0]
    return _urlencoded(body)


async def _read(request: Request, form: type[Any]) -> Any:
    """The body as a form; its key is checked.

    Raises:
        ApiError: it cannot be read, a value is invalid, or the key is.
    """
    kind = media_type(request.headers.get("content-type", ""))
    values: Any
    if kind in (FORM, MULTIPART):
        body, header = await request.body(), request.headers["content-type"]
        sent = await state_of(request).executor.process(request, _fields, header, body)
        values = {name: several if len(several) > 1 else several[0] for name, several in sent.items()}
    else:
        try:
            values = json.loads(await request.body())
        except (ValueError, RecursionError):
            raise ApiError(400, "The body is not valid JSON.", code="bad_json") from None
    check_key_in_body(request, values.get("api_key") if isinstance(values, dict) else None)
    try:
        return form.model_validate(values)
    except ValidationError as error:
        raise validation_error(error.errors()) from None


# --- files --------------------------------------------------------------------------------------------------


class FileForm(BaseModel):
    """The fields of `/translate_file`, without the file."""

    source: Code
    target: Code


_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["file", "source", "target"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "source": {"type": "string"},
        "target": {"type": "string"},
        "api_key": {"type": "string"},
    },
}


@router.post(
    "/translate_file",
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _BODY}}}},
)
async def translate_file(request: Request) -> Response:
    """Translate a text or HTML file; the response has the URL of the translation."""
    state = state_of(request)
    body, header = await request.body(), request.headers["content-type"]
    fields, files = await state.executor.process(
        request, _parts, header, body, {"max_files": 1, "max_fields": 8}
    )
    check_key_in_body(request, fields.get("api_key", [None])[0])
    try:
        form = FileForm.model_validate({name: fields.get(name, [None])[0] for name in FileForm.model_fields})
    except ValidationError as error:
        raise validation_error(error.errors()) from None
    if "file" not in files:
        raise bad_value("There is no file: send one as multipart/form-data.", "file")
    name, content = files["file"]
    text, suffix = text_of(content), suffix_of(name)
    check_texts([text], state.limits, "file")
    query = TextsToTranslate(texts=[text], source=form.source, target=form.target)
    content = await state.executor.process(request, _translated_file, suffix, query)
    stored = state.files.add(translated_name(name, form.target), content)
    return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", number=stored.id))})


def _translated_file(models: ModelRegistry, job: RequestJob, suffix: str, query: TextsToTranslate) -> bytes:
    (translated,) = FORMATS[suffix](models, job, query)
    return translated.result.text.encode()


@router.get("/download_file/{number}", response_class=Response)
async def download_file(request: Request, number: str) -> Response:
    """A translated file, as long as it is stored. Its id is secret, so it needs no key."""
    stored = state_of(request).files.get(number)
    media_type = "text/plain" if stored.name.endswith(".txt") else "text/html"
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(stored.name)}"}
    return Response(stored.content, headers=headers, media_type=f"{media_type}; charset=utf-8")


def suffix_of(name: str) -> str:
    """The suffix of a file name, in lower case.

    Raises:
        ApiError: the format is not supported.
    """
    suffix = next((each for each in FORMATS if name.lower().endswith(each)), None)
    if suffix is None:
        raise bad_value(f"The file name must end in one of {', '.join(FORMATS)}.", "file")
    return suffix


def text_of(content: bytes) -> str:
    """The text of a file.

    Raises:
        ApiError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"The file is not UTF-8 text: byte {error.start + 1} is invalid."
        raise ApiError(400, message, code="bad_file", param="file") from None


def translated_name(name: str, target: str) -> str:
    """The name of a translated file: the name without folders, and the language."""
    suffix = suffix_of(name)
    stem = re.split(r"[/\\]", name)[-1][: -len(suffix)]
    safe = re.sub(r"[^\w.-]+", "_", stem).strip("._")[:80] or "file"
    return f"{safe}_{re.sub('[^A-Za-z-]', '', target)}{suffix}"
