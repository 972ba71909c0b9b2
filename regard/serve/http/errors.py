"""Errors over HTTP: a status, a code for programs and a sentence for people, in each API's format."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.responses import JSONResponse

from regard.errors import BundleError, RegardError, RequestError, TooLongError, with_options

log = logging.getLogger("regard.serve")


class ApiError(RequestError):
    """A request that gets an error response."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status, self.message = status, message
        self.param = param
        """The invalid field, if there is one."""
        self.retry_after = retry_after
        """Seconds after which a retry may succeed, if waiting helps."""
        super().__init__(status, message, code=code)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(ApiError, code=self.code, param=self.param, retry_after=self.retry_after)
        return make, (self.status, self.message)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        retry = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return retry | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


def api_error(error: RegardError) -> ApiError:
    """An error of the library as a response."""
    if isinstance(error, ApiError):
        return error
    message = f"{str(error).rstrip('.')}."
    if isinstance(error, BundleError):
        log.error("a model cannot be read: %s", error)
        return ApiError(500, "The model's files cannot be read; see the server log.", code="model_unreadable")
    return too_large(message) if isinstance(error, TooLongError) else bad_value(message)


def bad_value(message: str, param: str | None = None) -> ApiError:
    """A field has an invalid value."""
    return ApiError(422, message, code="bad_value", param=param)


def unclear_language(message: str, param: str) -> ApiError:
    """The language of a text cannot be detected; `param` is the field that would name it."""
    return ApiError(422, message, code="unclear_language", param=param)


def validation_error(problems: Sequence[Any]) -> ApiError:
    """The first problem that pydantic reports, as a sentence."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return ApiError(400, "The body is not valid JSON.", code="bad_json")
    # After the field, pydantic names its own types, which mean nothing to a client.
    place = next((str(part) for part in first["loc"] if part not in ("body", "query", "path")), None)
    return bad_value(f"{place or 'the body'}: {first['msg']}.", place)


def not_found(message: str, param: str | None = None) -> ApiError:
    """There is no such thing."""
    return ApiError(404, message, code="not_found", param=param)


def too_large(message: str, param: str | None = None) -> ApiError:
    """A limit of size is exceeded."""
    return ApiError(413, message, code="too_large", param=param)


def busy(message: str) -> ApiError:
    """The limit of concurrent requests is reached."""
    return ApiError(503, message, code="busy", retry_after=1)


def shutting_down() -> ApiError:
    """The server shuts down."""
    message = "The server is shutting down and accepts no new requests."
    return ApiError(503, message, code="shutting_down", retry_after=5)


def deadline_passed(seconds: float) -> ApiError:
    """The request took too long."""
    message = f"There was no result within {seconds:g} s. Send less, or retry later."
    return ApiError(504, message, code="deadline")


def client_gone() -> ApiError:
    """The client disconnected and will not read this response."""
    return ApiError(499, "The client disconnected before the response.", code="client_gone")


# --- formats ----------------------------------------------------------------------------------------------

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
"""Options whose fields have another name in our API."""
LIBRETRANSLATE_FIELDS = {"n_best": "alternatives"}
TEI_FIELDS = {"too_long": "truncate"}
OPENAI_FIELDS = {"n_best": "n"}
NOT_IN_OPENAI = {"past_length": "/api/v1/generate", "source": "/api/v1/translate"}
"""Options that OpenAI's routes lack, and the routes that have them."""


def error_response(error: ApiError, path: str, request_id: str) -> JSONResponse:
    """The response to a failed request, in the format of the API that the path belongs to."""
    # A quoted text may contain half a surrogate pair, which UTF-8 cannot encode.
    error.message = message_for(error, path).encode("utf-8", "replace").decode()
    error.param = _field(error.param, path)
    status, body = error.status, _native(error, request_id)
    if _is_libretranslate(path):
        status, body = _plain_status(error), {"error": error.message}
    elif path.startswith(OPENAI):
        # OpenAI's clients retry after a conflict.
        status = 400 if error.status == 409 else _plain_status(error)
        body = _openai(error)
    elif path == TEI:
        status, body = _tei(error)
    elif path.startswith(OPEN_INFERENCE):
        body = {"error": error.message}
    return JSONResponse(body, status, error.headers)


def message_for(error: RegardError, path: str) -> str:
    """An error's message, with options named as the fields of that route's requests."""

    def named(option: str, value: str) -> str:
        field = _field(option, path) or option
        if path == TEI and option in TEI_FIELDS:
            value = "true"
        name = f"`{field}: {value}`" if value else f"`{field}`"
        missing = _missing_options(path)
        return f"{name} of {missing[option]}" if option in missing else name

    return with_options(str(error), named)


def stream_error(error: RegardError, path: str) -> dict[str, Any]:
    """The data of the event that ends a stream with an error."""
    error = api_error(error)
    return {"code": error.code, "message": message_for(error, path)}


def _is_libretranslate(path: str) -> bool:
    return path in LIBRETRANSLATE or path.startswith(DOWNLOADS)


def _missing_options(path: str) -> dict[str, str]:
    return NOT_IN_OPENAI if path.startswith(OPENAI) else {}


def _field(option: str | None, path: str) -> str | None:
    """The field of a request for an option; None if there is none."""
    if option is None or option in _missing_options(path):
        return None
    if path == TEI:
        return TEI_FIELDS.get(option, option)
    if path.startswith(OPENAI):
        return OPENAI_FIELDS.get(option, option)
    return (LIBRETRANSLATE_FIELDS if _is_libretranslate(path) else FIELDS).get(option, option)


def _plain_status(error: ApiError) -> int:
    """LibreTranslate and OpenAI use 400 for an invalid value."""
    return 400 if error.status == 422 else error.status


def _native(error: ApiError, request_id: str) -> dict[str, Any]:
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "param": error.param,
            "request_id": request_id,
        }
    }


def _openai(error: ApiError) -> dict[str, Any]:
    kind = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        error.status, "server_error" if error.status >= 500 else "invalid_request_error"
    )
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


def _tei(error: ApiError) -> tuple[int, dict[str, Any]]:
    """text-embeddings-inference has its own statuses, with one type of error each."""
    status = {"wrong_task": 424, "busy": 429, "bad_json": 422}.get(error.code, error.status)
    kinds = {413: "validation", 422: "tokenizer", 424: "backend", 429: "overloaded"}
    kind = kinds.get(status, "unhealthy" if status >= 500 else "validation")
    return status, {"error": error.message, "error_type": kind}
