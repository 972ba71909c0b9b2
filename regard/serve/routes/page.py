"""The page: hand-written modules of the package, as they are, read once and kept."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from regard import page as files
from regard.serve.http.errors import not_found
from regard.serve.service import service_of

router = APIRouter(include_in_schema=False)

START = "index.html"


class Part(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str
    """Changes with the content."""


@router.get("/")
async def start(request: Request) -> Response:
    """The page itself; as long as there is none, what there is instead. Whoever opens it may look inside."""
    service = service_of(request)
    service.inspector.expect(service.catalogue)
    return _answer(request, START) if START in page() else RedirectResponse("/docs")


@router.get("/page/{name:path}")
async def part(request: Request, name: str) -> Response:
    """A module, a style sheet or a catalogue of it."""
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    if name not in page():
        raise not_found("The page has no such part.")
    content, kind, tag = page()[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)


@cache
def page() -> dict[str, Part]:
    """Every file of the page by its path: a client can request these and no others."""
    found = {}
    for name in files.names():
        content = files.read(name).encode()
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        found[name] = Part(content, files.TYPES[name.rpartition(".")[2]], tag)
    return found
