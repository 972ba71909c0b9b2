"""The application: routes, error handlers and middleware."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from regard.errors import RegardError
from regard.serve.http.bodies import JSON, media_type
from regard.serve.http.dependencies import AppState
from regard.serve.http.errors import ApiError, api_error, error_response, validation_error
from regard.serve.http.middleware import RequestMiddleware, request_id
from regard.serve.routes import libretranslate, look, native, openai, operations, page, runs, tei
from regard.version import __version__

LOCAL = frozenset({"localhost"})
"""Names that are always allowed. So are IP addresses: only a name can be made to point elsewhere."""


def create_app(state: AppState, *, hosts: Sequence[str] = (), cors_origins: Sequence[str] = ()) -> ASGIApp:
    """The whole server as one ASGI application.

    Args:
        state: the models, limits and keys.
        hosts: names of the server, in addition to localhost.
        cors_origins: origins whose pages may read responses.
    """
    app = FastAPI(title="regard", version=__version__, docs_url=None, redoc_url=None)
    app.state.regard = state
    for module in (native, look, runs, libretranslate, openai, tei, operations, page):
        app.include_router(module.router)
    page.page_files()  # read and compressed once, before the first request
    app.add_exception_handler(Exception, _internal_error)
    app.add_exception_handler(RegardError, _regard_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    if cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["X-Dtype", "X-Request-Id", "X-Scale", "X-Shape", "Retry-After"],
        )
    return RequestMiddleware(
        app,
        state,
        hosts=LOCAL | {name.lower() for name in hosts},
        origins=cors_origins,
    )


async def _regard_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegardError)
    return error_response(api_error(error), request.url.path, request_id(request))


async def _internal_error(request: Request, _error: Exception) -> Response:
    """A bug; the middleware logs it."""
    message = f"Internal error; see the server log, request ID {request_id(request)}."
    return error_response(ApiError(500, message, code="internal"), request.url.path, request_id(request))


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(validation_error(error.errors()), request.url.path, request_id(request))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known: dict[int, Any] = {
        404: ("not_found", "There is nothing at this path; /docs lists all routes."),
        405: ("wrong_method", "This path has other methods; /docs lists them."),
    }
    if media_type(request.headers.get("content-type", "")) == JSON:  # but it cannot be parsed
        known[400] = ("bad_json", "The body is not valid JSON.")
    code, message = known.get(error.status_code, ("bad_request", str(error.detail)))
    response = error_response(
        ApiError(error.status_code, message, code=code), request.url.path, request_id(request)
    )
    response.headers.update(error.headers or {})
    return response
