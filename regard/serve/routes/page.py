"""The page: hand-written modules of the package, as they are, read once and kept."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from regard.serve.http.errors import not_found
from regard.serve.service import service_of

router = APIRouter(include_in_schema=False)

START = "index.html"
KINDS = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
}


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
    """Every file of the page by its name: a client names one of these, and never a file."""
    found: dict[str, Part] = {}

    def collect(folder: Traversable, before: str) -> None:
        for entry in folder.iterdir():
            kind = KINDS.get(entry.name.rpartition(".")[2])
            if entry.is_dir():
                collect(entry, f"{before}{entry.name}/")
            elif kind:
                content = entry.read_bytes()
                tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
                found[before + entry.name] = Part(content, kind, tag)

    root = files("regard").joinpath("page")
    if root.is_dir():
        collect(root, "")
    return found
