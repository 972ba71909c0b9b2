"""Errors in the shape that each family of routes has for them."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from regard.serve.refusals import Refusal

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


def refused(refusal: Refusal, path: str, request_id: str) -> JSONResponse:
    """The answer to a request that is refused."""
    # What it quotes may hold half a character, which no answer can.
    refusal.message = refusal.message.encode("utf-8", "replace").decode()
    status, body = refusal.status, _native(refusal, request_id)
    if path in LIBRETRANSLATE or path.startswith(DOWNLOADS):
        status, body = _plain_status(refusal), {"error": refusal.message}
    elif path.startswith(OPENAI):
        status, body = _plain_status(refusal), _openai(refusal)
    return JSONResponse(body, status, refusal.headers)


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
