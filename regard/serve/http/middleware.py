"""What every request passes: a number of its own, its Host header, its size, headers, log, metrics.

Plain ASGI, because each wrapper of a framework costs more than all of this together.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import secrets
import time
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.http.error_shapes import refused
from regard.serve.http.errors import Refusal, too_large
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics

log = logging.getLogger("regard.serve")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Gate:
    """Stands before the application."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, metrics: Metrics, hosts: frozenset[str], shared: bool = False
    ) -> None:
        """Let requests through to an application.

        Args:
            app: what answers.
            limits: how large a body may be.
            metrics: hears of every answer.
            hosts: names under which the server may be asked for; addresses always may.
            shared: whether other origins may read answers, where CORS lets them.
        """
        self._app, self._limits, self._metrics, self._hosts = app, limits, metrics, hosts
        self._headers = HEADERS | ({"Cross-Origin-Resource-Policy": "cross-origin"} if shared else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        # Who asks for the head of an answer gets that of GET: the server below leaves out the body.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        # Who stands before us, as Ray Serve may, has given it a number already.
        request_id: str = scope.setdefault("state", {}).setdefault("request_id", secrets.token_hex(8))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check_host(Headers(scope=scope).get("host", ""))
            body = await self._body(scope, receive)
            await self._app(asked, _once(body, receive), answer)
        except Refusal as refusal:
            await refused(refusal, scope["path"], request_id)(scope, receive, answer)
        except Exception as error:
            places = "".join(traceback.format_tb(error.__traceback__))
            # What an exception says may quote the request, so only its kind is told.
            log.error("request %s failed with %s\n%s", request_id, type(error).__name__, places)
        finally:
            seconds = time.perf_counter() - started
            route = _route(asked)
            self._metrics.answered(route, status, seconds)
            log.info("%s %s %s %d %.0f ms", request_id, scope["method"], route, status, 1000 * seconds)

    def _check_host(self, host: str) -> None:
        """Refuse a name that is not ours: somebody's page may have it point here."""
        name = re.sub(r":\d+$", "", host).strip("[]").lower()
        if name in self._hosts or _is_address(name):
            return
        message = "The Host header names another server. `regard serve --allow-host NAME` allows a name."
        raise Refusal(421, "bad_host", message)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body.

        Raises:
            Refusal: it is too large, or too slow to come.
        """
        most = self._limits.body_bytes
        refusal = too_large(f"A request may have {most:,} bytes, and this one has more.")
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise refusal
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.deadline_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(499, "client_gone", "The client left before its request was whole.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise refusal
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise Refusal(408, "slow_request", "The request did not come whole in time.") from None


def _once(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, and then whatever else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _route(scope: Scope) -> str:
    """The route as it is written in the code, so that there are only so many."""
    route = scope.get("route")
    return getattr(route, "path", None) or "other"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def request_id(request: Request) -> str:
    """The number of a request, which its answer and the log have too."""
    found: str = request.state.request_id
    return found
