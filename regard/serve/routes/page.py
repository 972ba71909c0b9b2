"""Routes of the web page: `/`, and its files under an address that changes with their content.

The modules are sent as one script, compressed, so that a first visit takes a few requests however deep the
modules import each other.
"""

from __future__ import annotations

import gzip
import re
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
ENTRY = "server.js"
"""The module that `START` runs, with all that it imports, as `JOINED`."""
JOINED = "joined.js"
CHECK_EACH_TIME = "no-cache"
KEEP = "public, max-age=31536000, immutable"
"""Browsers keep the files, so a reload requests only `START`."""

_CODING = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q=([0-9.]+))?\s*")


class PageFile(NamedTuple):
    """A file of the page as it is sent."""

    content: bytes
    compressed: bytes
    """The content, compressed by gzip."""
    media_type: str
    tag: str
    """A hash of the content."""


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
    file = page_files()[name]
    zipped = accepts_gzip(request.headers.get("accept-encoding", ""))
    etag = f'"{file.tag}-gzip"' if zipped else f'"{file.tag}"'
    headers = {"ETag": etag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    if zipped:
        headers["Content-Encoding"] = "gzip"
    content = file.compressed if zipped else file.content
    return Response(content, headers=headers, media_type=file.media_type)


def accepts_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header allows gzip: by name, or by `*`, with a weight above 0."""
    weights = {}
    for part in accepted.lower().split(","):
        if found := _CODING.fullmatch(part):
            weights[found[1]] = found[2] or "1"
    weight = weights.get("gzip", weights.get("*", "0"))
    return bool(weight.strip("0."))


@cache
def page_files() -> dict[str, PageFile]:
    """Return every file of the page by its path; clients can request these and no others."""
    texts = {name: page.read(name) for name in page.names()}
    texts[START] = texts[START].replace('"/page/', f'"/page/{page_version()}/')
    texts[JOINED] = page.joined(ENTRY)
    return {name: _file(name, text.encode()) for name, text in texts.items()}


def _file(name: str, content: bytes) -> PageFile:
    media_type = page.TYPES[name.rpartition(".")[2]]
    return PageFile(content, gzip.compress(content, mtime=0), media_type, sha256(content).hexdigest()[:16])


@cache
def page_version() -> str:
    """Return a hash of all files of the page."""
    return sha256("".join(map(page.read, page.names())).encode()).hexdigest()[:16]
