"""Middleware for every request: its ID, Host check, size limit, response headers, log and metrics.

Plain ASGI, because one wrapper of a framework costs more than all of this together.
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

from regard.serve.http.errors import ApiError, client_gone, error_response, too_large
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


class RequestMiddleware:
    """Wraps the application."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, metrics: Metrics, hosts: frozenset[str], shared: bool = False
    ) -> None:
        """Wrap an application.

        Args:
            app: the application.
            limits: the maximum size of a body, and the time for it to arrive.
            metrics: counts responses.
            hosts: allowed names in the Host header; IP addresses are always allowed.
            shared: whether other origins may read responses, where CORS allows it.
        """
        self._app, self._limits, self._metrics, self._hosts = app, limits, metrics, hosts
        self._headers = HEADERS | ({"Cross-Origin-Resource-Policy": "cross-origin"} if shared else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        # HEAD is handled as GET; uvicorn omits the body.
        routed = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        # A proxy in front, such as Ray Serve, may have set the ID already.
        request_id: str = scope.setdefault("state", {}).setdefault("request_id", secrets.token_hex(8))

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        body: bytes | None = None
        try:
            self._check_host(Headers(scope=scope).get("host", ""))
            body = await self._body(scope, receive)
            await self._app(routed, _replay(body, receive), send_with_headers)
        except ApiError as error:
            response = error_response(error, scope["path"], request_id)
            if body is None and _has_body(scope):
                response.headers["Connection"] = "close"  # the rest is not read, only discarded for a while
            await response(scope, receive, send_with_headers)
        except Exception as error:
            places = "".join(traceback.format_tb(error.__traceback__))
            # The message may quote the request, so only the type is logged.
            log.error("request %s failed with %s\n%s", request_id, type(error).__name__, places)
        finally:
            seconds = time.perf_counter() - started
            route = _route(routed)
            self._metrics.answered(route, status, seconds)
            log.info("%s %s %s %d %.0f ms", request_id, scope["method"], route, status, 1000 * seconds)

    def _check_host(self, host: str) -> None:
        """Reject unknown names, against DNS rebinding."""
        name = re.sub(r":\d+$", "", host).strip("[]").lower()
        if name in self._hosts or _is_address(name):
            return
        message = "The Host header names another server. `regard serve --allow-host NAME` allows a name."
        raise ApiError(421, message, code="bad_host")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body.

        Raises:
            ApiError: it is too large, or too slow.
        """
        most = self._limits.body_bytes
        error = too_large(f"The body of the request exceeds {most:,} bytes.")
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise error
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.deadline_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise client_gone()
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise error
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise ApiError(408, "The request did not arrive in time.", code="slow_request") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Receive the body in one piece, and then further messages."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _route(scope: Scope) -> str:
    """The route's pattern, so that the number of labels is bounded."""
    route = scope.get("route")
    return getattr(route, "path", None) or "other"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def request_id(request: Request) -> str:
    """The ID of a request, as in its response and in the log."""
    found: str = request.state.request_id
    return found
