"""Middleware for every request: who may send it, how large it may be, response headers, log and metrics.

The checks are in the order of their cost: the head, then the key, then the body as it arrives. Plain ASGI,
because one wrapper of a framework costs more than all of this together.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import secrets
import time
import traceback
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.http.bodies import JSON, check_json, check_media_type, media_type
from regard.serve.http.connections import AUTHORITY
from regard.serve.http.dependencies import HEALTH, KEY_IN_BODY, AppState, bearer, is_public, remember_key
from regard.serve.http.errors import ApiError, client_gone, error_response, too_large
from regard.serve.http.limits import ByteBudget
from regard.serve.work.process import CallError
from regard.serve.work.turns import Turnstile

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
PIECE = 64 << 10
"""Bytes of a response that are sent at once; the next piece waits until the client has read."""
FAILURES_A_MINUTE = 10
"""Internal errors that are logged with their traceback; others are counted."""


class RequestMiddleware:
    """Wraps the application."""

    def __init__(
        self, app: ASGIApp, state: AppState, *, hosts: frozenset[str], origins: Sequence[str] = ()
    ) -> None:
        """Wrap an application.

        Args:
            app: the application.
            state: the limits, keys and metrics.
            hosts: allowed names in the Host header; IP addresses are always allowed.
            origins: origins whose pages may send requests and read responses, where CORS allows it.
        """
        self._app, self._state, self._hosts, self._origins = app, state, hosts, frozenset(origins)
        self._limits = state.limits
        self._headers = HEADERS | ({"Cross-Origin-Resource-Policy": "cross-origin"} if origins else {})
        self._failures, self._turnstile = FailureLog(), Turnstile()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        address: str = scope["client"][0] if scope.get("client") else ""
        known = scope.setdefault("state", {})
        known |= {"address": address, "client": address, "key": None, "size": 0}
        # A proxy in front, such as Ray Serve, may have set the ID already.
        request_id: str = known.setdefault("request_id", secrets.token_hex(8))
        # HEAD is handled as GET; uvicorn omits the body.
        routed = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        response = _Response(self._state, scope, receive, send, self._headers)
        body: _Body | None = None
        try:
            headers = Headers(scope=scope)
            self._check_head(scope, headers)
            if scope["path"] not in HEALTH:
                await self._turnstile.enter(address)
            body = self._admitted(scope, headers)
            content = await body.read(receive)
            response.body, known["size"] = body, len(content)
            if media_type(headers.get("content-type", "")) == JSON:
                check_json(content, self._limits)
            await self._app(routed, _replay(content, receive), response.send)
        except ApiError as error:
            refusal = error_response(error, scope["path"], request_id)
            if (body is None or not body.is_read) and _has_body(scope):
                refusal.headers["Connection"] = "close"  # the rest is not read, only discarded for a while
            await refusal(scope, receive, response.send)
        except Exception as error:
            self._failures.log(request_id, error)
        finally:
            if body is not None:
                body.release()
            if _has_body(scope):
                self._state.executor.has_worked = True  # its memory is free only now, perhaps after a delay
            response.release()
            seconds, route = time.perf_counter() - started, _route(routed)
            self._state.metrics.answered(route, response.status, seconds)
            who = f" key={known['key']!r}" if known["key"] else ""
            line = "%s %s %s %d %.0f ms%s"
            log.info(line, request_id, scope["method"], route, response.status, 1000 * seconds, who)

    def _admitted(self, scope: Scope, headers: Headers) -> _Body:
        """The body of a request that may be read.

        Raises:
            ApiError: the request comes from another site, or without a valid key, or is of a wrong type.
        """
        state, path, known = self._state, scope["path"], scope["state"]
        budget = state.in_flight
        if not is_public(path) and not self._is_preflight(scope, headers):
            self._check_origin(headers)
            secret = bearer(headers.get("authorization", ""))
            if state.keys is not None and secret is None and path in KEY_IN_BODY:
                budget = state.without_key
            elif key := state.authorize(secret, known["address"]):
                remember_key(known, key)
            if _has_body(scope) and scope["method"] in ("POST", "PUT", "PATCH"):
                check_media_type(headers.get("content-type", ""), forms=path in KEY_IN_BODY)
        length = headers.get("content-length", "0")
        return _Body(budget, known["client"], self._limits.body_bytes, self._limits.body_s, length)

    def _check_head(self, scope: Scope, headers: Headers) -> None:
        """Check the size of the head, and that the request is for this server, against DNS rebinding."""
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        size += len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if len(headers) > self._limits.headers or size > self._limits.head_bytes:
            most = f"{self._limits.headers} headers and {self._limits.head_bytes:,} bytes"
            raise ApiError(431, f"The head of a request may have {most}.", code="too_large")
        hosts = headers.getlist("host") or [""]
        if len(hosts) > 1:
            raise ApiError(400, "The request has several Host headers.", code="bad_host")
        if authority := scope["state"].get(AUTHORITY):
            hosts.append(authority)
        for host in hosts:
            name = re.sub(r":\d+$", "", host).strip("[]").lower()
            if name not in self._hosts and not _is_address(name):
                message = (
                    "The Host header names another server. `regard serve --allow-host NAME` allows a name."
                )
                raise ApiError(421, message, code="bad_host")

    def _check_origin(self, headers: Headers) -> None:
        """Reject requests from pages of other sites, whose users do not know of them."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._origins or (origin and "*" in self._origins):
            return
        # A browser states the relation itself, except to plain HTTP on another machine.
        own = origin is None or _without_port(urlsplit(origin).netloc) == _without_port(headers["host"])
        if own if site is None else site in ("same-origin", "none"):
            return
        message = (
            "Pages of other sites may not use this server. `regard serve --cors-origin ORIGIN` allows one."
        )
        raise ApiError(403, message, code="foreign_origin")

    def _is_preflight(self, scope: Scope, headers: Headers) -> bool:
        """Whether a browser asks if another site may send a request; the application answers."""
        is_one = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        return bool(self._origins) and is_one


class _Body:
    """The body of a request, which is counted while it is in memory."""

    def __init__(self, budget: ByteBudget, client: str, most: int, seconds: float, length: str) -> None:
        self._budget, self._client, self._most, self._seconds = budget, client, most, seconds
        self._declared = int(length) if length.isdecimal() and len(length) < 19 else 1 << 60
        self._size = 0
        self.is_read = False

    async def read(self, receive: Receive) -> bytes:
        """The whole body.

        Raises:
            ApiError: it is too large or too slow, or there are too many bodies.
        """
        if self._declared > self._most:
            raise self._too_large()
        parts = []
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise client_gone()
                    part = message.get("body", b"")
                    self._budget.take(self._client, len(part))
                    self._size += len(part)
                    parts.append(part)
                    self.is_read = not message.get("more_body")
                    if self._size > self._most:
                        raise self._too_large()
                    if self.is_read:
                        return b"".join(parts)
        except TimeoutError:
            raise ApiError(408, "The request did not arrive in time.", code="slow_request") from None

    def _too_large(self) -> ApiError:
        # Not a variable of `read`, whose traceback would keep the parts in memory until cycles are collected.
        return too_large(f"The body of the request exceeds {self._most:,} bytes.")

    def release(self) -> None:
        """Forget it."""
        self._budget.release(self._client, self._size)
        self._size = 0


class _Response:
    """A response, with the headers that every one has; a large one is sent as fast as it is read."""

    def __init__(
        self, state: AppState, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]
    ) -> None:
        self._state, self._scope, self._receive, self._send = state, scope, receive, send
        self._headers, self._size, self._is_replaced = headers, 0, False
        self.status = 0
        self.body: _Body | None = None
        """The body of the request, which an error response need not keep."""

    async def send(self, message: Message) -> None:
        """Send a message of the application."""
        if self._is_replaced:
            return
        if message["type"] == "http.response.start":
            length = int(MutableHeaders(scope=message).get("content-length", "0"))
            try:
                self._take(length)
            except ApiError as error:
                request_id = self._scope["state"]["request_id"]
                refusal = error_response(error, self._scope["path"], request_id)
                await refusal(self._scope, self._receive, self.send)
                self._is_replaced = True
                return
            await self._pace(message["status"])
            self._start(message)
        body, more = message.get("body", b""), message.get("more_body", False)
        for end in range(PIECE, len(body), PIECE):
            await self._send({**message, "body": body[end - PIECE : end], "more_body": True})
        if len(body) > PIECE:
            rest = (len(body) - 1) % PIECE + 1
            message = {**message, "body": body[-rest:], "more_body": more}
        await self._send(message)

    async def _pace(self, status: int) -> None:
        """Wait before an error response if the client has had many."""
        if status < 400 or self._state.executor.draining:
            return
        if seconds := self._state.pacing.delay(self._scope["state"]["client"]):
            if self.body is not None:
                self.body.release()
            await asyncio.sleep(seconds)

    def release(self) -> None:
        """Forget it: it was sent."""
        self._state.in_flight.release(self._scope["state"]["client"], self._size)
        self._size = 0

    def _take(self, length: int) -> None:
        if length > PIECE:
            self._state.in_flight.take(self._scope["state"]["client"], length)
            self._size = length

    def _start(self, message: Message) -> None:
        self.status = message["status"]
        headers = MutableHeaders(scope=message)
        headers["X-Request-Id"] = self._scope["state"]["request_id"]
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        if self._state.executor.draining:
            headers["Connection"] = "close"


class FailureLog:
    """Logs internal errors with their places, but no more than a few per minute."""

    def __init__(self) -> None:
        self._minute, self._n_logged, self._n_omitted = 0, 0, 0

    def log(self, request_id: str, error: Exception) -> None:
        """Log an error. Its message may quote the request, so only the type is logged."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._n_logged = minute, 0
        self._n_logged += 1
        if self._n_logged > FAILURES_A_MINUTE:
            self._n_omitted += 1
            return
        name, places = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
        if isinstance(error, CallError):
            name, places = error.name, error.places
        omitted = f" ({self._n_omitted:,} others were not logged)" if self._n_omitted else ""
        self._n_omitted = 0
        log.error("request %s failed with %s%s\n%s", request_id, name, omitted, places)


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


def _without_port(host: str) -> str:
    """A host without the port that its scheme implies."""
    return re.sub(r":(80|443)$", "", host.lower())


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
