"""Routes of the web page: `/`, and its files under an address that changes with their content."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from regard import page
from regard.serve.http.dependencies import state_of
from regard.serve.http.errors import not_found

router = APIRouter(include_in_schema=False)

START = "index.html"
CHECK_EACH_TIME = "no-cache"
KEEP = "public, max-age=31536000, immutable"
"""Browsers keep the files, so a reload takes one request instead of one per module."""


class PageFile(NamedTuple):
    """A file of the page as it is sent."""

    content: bytes
    media_type: str
    etag: str


@router.get("/")
async def start(request: Request) -> Response:
    """Send the page, and prepare the models for traces: the user may want to look inside."""
    state = state_of(request)
    state.inspector.preload(state.models)
    return _respond(request, START, CHECK_EACH_TIME)


@router.get("/page/{version}/{name:path}")
async def page_file(request: Request, version: str, name: str) -> Response:
    """Send a file of the page; an address of another version gets the current file, uncached."""
    return _respond(request, name, KEEP if version == page_version() else CHECK_EACH_TIME)


def _respond(request: Request, name: str, caching: str) -> Response:
    if name not in page_files():
        raise not_found("The page has no such file.")
    content, media_type, etag = page_files()[name]
    headers = {"ETag": etag, "Cache-Control": caching}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


@cache
def page_files() -> dict[str, PageFile]:
    """Return every file of the page by its path; clients can request these and no others."""
    found = {}
    for name in page.names():
        content = page.read(name).encode()
        if name == START:
            content = content.replace(b'"/page/', f'"/page/{page_version()}/'.encode())
        etag = f'"{sha256(content).hexdigest()[:16]}"'
        found[name] = PageFile(content, page.TYPES[name.rpartition(".")[2]], etag)
    return found


@cache
def page_version() -> str:
    """Return a hash of all files of the page."""
    return sha256("".join(map(page.read, page.names())).encode()).hexdigest()[:16]
