"""Errors in the shape that each family of routes has for them, and in the names of its fields."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from regard.errors import RegardError, with_options
from regard.serve.http.errors import Refusal, refusal_of

LIBRETRANSLATE = (
    "/translate",
    "/translate_file",
    "/detect",
    "/languages",
    "/health",
    "/frontend/settings",
    "/suggest",
)
DOWNLOADS = "/download_file/"
OPENAI = "/v1/"
TEI = "/predict"
OPEN_INFERENCE = "/v2/"

FIELDS = {"beam_size": "beam", "token_scores": "scores"}
"""Options that are fields of another name."""
LIBRETRANSLATE_FIELDS = {"n_best": "alternatives"}
TEI_FIELDS = {"too_long": "truncate"}
OPENAI_FIELDS = {"n_best": "n"}
OPENAI_LACKS = {"past_length": "/api/v1/generate", "source": "/api/v1/translate"}
"""Options that are no fields there, and where they are."""


def refused(refusal: Refusal, path: str, request_id: str) -> JSONResponse:
    """The answer to a request that is refused."""
    # What it quotes may hold half a character, which no answer can.
    refusal.message = told(refusal, path).encode("utf-8", "replace").decode()
    refusal.param = _param(refusal.param, path)
    status, body = refusal.status, _native(refusal, request_id)
    if _is_libretranslate(path):
        status, body = _plain_status(refusal), {"error": refusal.message}
    elif path.startswith(OPENAI):
        # A conflict is what its clients try again, after a while, and again.
        status = 400 if refusal.status == 409 else _plain_status(refusal)
        body = _openai(refusal)
    elif path == TEI:
        status, body = _tei(refusal)
    elif path.startswith(OPEN_INFERENCE):
        body = {"error": refusal.message}
    return JSONResponse(body, status, refusal.headers)


def told(error: RegardError, path: str) -> str:
    """What an error says, with a field of that route's requests where it names an option."""

    def named(option: str, value: str) -> str:
        field = _param(option, path) or option
        if path == TEI and option in TEI_FIELDS:
            value = "true"
        name = f"`{field}: {value}`" if value else f"`{field}`"
        return f"{name} of {_lacking(path)[option]}" if option in _lacking(path) else name

    return with_options(str(error), named)


def streamed_error(error: RegardError, path: str) -> dict[str, Any]:
    """What a stream of ours says where it ends before its time."""
    refusal = refusal_of(error)
    return {"code": refusal.code, "message": told(refusal, path)}


def _is_libretranslate(path: str) -> bool:
    return path in LIBRETRANSLATE or path.startswith(DOWNLOADS)


def _lacking(path: str) -> dict[str, str]:
    return OPENAI_LACKS if path.startswith(OPENAI) else {}


def _param(option: str | None, path: str) -> str | None:
    """The field of a request that an option is; None where it is none."""
    if option is None or option in _lacking(path):
        return None
    return _fields(path).get(option, option)


def _fields(path: str) -> dict[str, str]:
    """What options are called there."""
    if path == TEI:
        return TEI_FIELDS
    if path.startswith(OPENAI):
        return OPENAI_FIELDS
    return LIBRETRANSLATE_FIELDS if _is_libretranslate(path) else FIELDS


def _plain_status(refusal: Refusal) -> int:
    """Both know a bad value as a bad request."""
    return 400 if refusal.status == 422 else refusal.status


def _native(refusal: Refusal, request_id: str) -> dict[str, Any]:
    return {
        "error": {
            "code": refusal.code,
            "message": refusal.message,
            "param": refusal.param,
            "request_id": request_id,
        }
    }


def _openai(refusal: Refusal) -> dict[str, Any]:
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error"
    )
    return {
        "error": {
            "message": refusal.message,
            "type": kind,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def _tei(refusal: Refusal) -> tuple[int, dict[str, Any]]:
    """Its statuses, of which each has one kind of error, where it knows one for this."""
    status = {"wrong_task": 424, "busy": 429, "bad_json": 422}.get(refusal.code, refusal.status)
    kinds = {413: "validation", 422: "tokenizer", 424: "backend", 429: "overloaded"}
    kind = kinds.get(status, "unhealthy" if status >= 500 else "validation")
    return status, {"error": refusal.message, "error_type": kind}
