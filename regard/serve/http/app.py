"""The application: routes, errors, and the gate before them."""

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
from regard.serve.http.error_shapes import refused
from regard.serve.http.errors import Refusal, refusal_of, validation_refusal
from regard.serve.http.middleware import Gate, request_id
from regard.serve.routes import (
    experiments,
    files,
    libretranslate,
    lone,
    look,
    native,
    openai,
    operations,
    page,
    runs,
    tei,
)
from regard.serve.service import Service
from regard.version import __version__

LOCAL = frozenset({"localhost"})
"""Names of this machine for itself. Addresses are always fine: only a name can be made to point elsewhere."""


def create_app(service: Service, *, hosts: Sequence[str] = (), cors_origins: Sequence[str] = ()) -> ASGIApp:
    """The whole server as one application.

    Args:
        service: what it serves.
        hosts: names, beside localhost, under which it may be asked for.
        cors_origins: origins whose pages may read its answers.
    """
    app = FastAPI(title="regard", version=__version__, docs_url=None, redoc_url=None)
    app.state.service = service
    for family in (
        native,
        lone,
        look,
        runs,
        experiments,
        libretranslate,
        files,
        openai,
        tei,
        operations,
        page,
    ):
        app.include_router(family.router)
    app.add_exception_handler(Exception, _own_error)
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
    return Gate(
        app,
        limits=service.limits,
        metrics=service.metrics,
        hosts=LOCAL | {name.lower() for name in hosts},
        shared=bool(cors_origins),
    )


async def _regard_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegardError)
    return refused(refusal_of(error), request.url.path, request_id(request))


async def _own_error(request: Request, _error: Exception) -> Response:
    """A mistake of ours, which the gate writes down."""
    message = f"Something went wrong here, and was written down as {request_id(request)}."
    return refused(Refusal(500, "internal", message), request.url.path, request_id(request))


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    refusal = validation_refusal(error.errors())
    if _is_of_another_kind(request, error):
        message = "The body is not said to be JSON: send the header `Content-Type: application/json`."
        refusal = Refusal(415, "not_json", message)
    return refused(refusal, request.url.path, request_id(request))


def _is_of_another_kind(request: Request, error: RequestValidationError) -> bool:
    """Whether a body was not read as JSON, because its header names something else, or nothing."""
    return isinstance(error.body, bytes) and not _says_json(request)


def _says_json(request: Request) -> bool:
    return "json" in request.headers.get("content-type", "").lower()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known: dict[int, Any] = {
        404: ("not_found", "There is nothing at this path; /docs lists what there is."),
        405: ("wrong_method", "This path takes other methods; /docs lists them."),
    }
    if _says_json(request):  # and yet it could not be read
        known[400] = ("bad_json", "The body is no JSON in UTF-8.")
    code, message = known.get(error.status_code, ("bad_request", str(error.detail)))
    refusal = Refusal(error.status_code, code, message)
    answer = refused(refusal, request.url.path, request_id(request))
    answer.headers.update(error.headers or {})
    return answer
