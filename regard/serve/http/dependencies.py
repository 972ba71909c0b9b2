"""What the routes share: the application's state, and who may send a request."""

from __future__ import annotations

import ipaddress
from collections.abc import MutableMapping
from typing import Any

from starlette.requests import Request

from regard.serve.cache import BlobStore
from regard.serve.demonstration import Demonstration
from regard.serve.http.errors import ApiError
from regard.serve.http.keys import Key, KeyRing, RateLimiter
from regard.serve.http.limits import ByteBudget, Limits, Pacing
from regard.serve.http.metrics import Metrics
from regard.serve.inspector import Inspector
from regard.serve.models import ModelRegistry
from regard.serve.work.executor import RequestExecutor

PUBLIC = frozenset(
    {
        "/",
        "/docs",
        "/frontend/settings",
        "/health",
        "/languages",
        "/livez",
        "/metrics",
        "/openapi.json",
        "/readyz",
    }
)
PUBLIC_UNDER = ("/page/", "/download_file/", "/v2/health/", "/v2/models/")
"""Paths that need no key and do no work: other sites may link to them."""
KEY_IN_BODY = frozenset({"/translate", "/translate_file", "/detect"})
"""LibreTranslate's routes: they also read forms, in which the key may be a field."""


class AppState:
    """The state of one server."""

    def __init__(
        self,
        models: ModelRegistry,
        metrics: Metrics,
        *,
        limits: Limits | None = None,
        keys: KeyRing | None = None,
    ) -> None:
        """Make the state; without keys, every client may send requests."""
        self.models, self.metrics, self.limits = models, metrics, limits or Limits()
        self.executor = RequestExecutor(self.limits, metrics)
        self.inspector = Inspector(self.limits, metrics)
        self.files = BlobStore("file", self.limits.files_bytes, self.limits.file_seconds)
        """Translated files."""
        self.in_flight = ByteBudget(self.limits.bytes_in_flight, self.limits.bytes_in_flight_per_client)
        without_key = self.limits.bytes_without_key
        self.without_key = ByteBudget(without_key, without_key // 4)
        """Bodies that may have a key as a field."""
        self.pacing = Pacing(self.limits.errors_a_second)
        self.keys, self._rates, self._wrong = keys, RateLimiter(), RateLimiter()
        self.n_followers = 0
        """Number of clients that follow runs."""
        self.demonstration = Demonstration(self.limits.training_s)

    def authorize(self, secret: object, address: str) -> Key | None:
        """Check the key of a request, and count the request; None if the server has no keys.

        Raises:
            ApiError: a key is needed and missing or unknown, or its rate limit is reached.
        """
        if self.keys is None:
            return None
        if not secret or not isinstance(secret, str):
            message = "This server needs a key: send the header `Authorization: Bearer KEY`."
            raise ApiError(401, message, code="no_key")
        key = self.keys.find(secret)
        if key is None:
            self.keys.refused(address)
            self._wrong.take(address, self.limits.wrong_keys_a_minute, "unknown keys")
            raise ApiError(403, "The key is unknown.", code="wrong_key")
        self.keys.used(key, address)
        self._rates.take(key.name, key.requests_a_minute or self.limits.requests_a_minute, "requests")
        return key

    def close(self, seconds: float) -> bool:
        """Stop the threads; returns whether all of them ended within some seconds."""
        self.demonstration.close()
        ended = self.models.close(seconds)
        if self.keys is not None:
            self.keys.close()
        return ended and not self.executor.is_busy and not self.inspector.is_busy


def is_public(path: str) -> bool:
    """Whether a path needs no key and does no work."""
    return path in PUBLIC or path.startswith(PUBLIC_UNDER)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def state_of(request: Request) -> AppState:
    """The state of the application that handles a request."""
    state: AppState = request.app.state.regard
    return state


def bearer(authorization: str) -> str | None:
    """The key in an Authorization header."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


def check_key_in_body(request: Request, secret: object) -> None:
    """Check the key in the body of a request whose headers have none.

    Raises:
        ApiError: it is missing or unknown, or its rate limit is reached.
    """
    known = request.scope["state"]
    if known["key"] is None and (key := state_of(request).authorize(secret, known["address"])):
        remember_key(known, key)


def remember_key(state: MutableMapping[str, Any], key: Key) -> None:
    """Store who sent a request in its state."""
    state["key"], state["client"] = key.name, f"key {key.name}"
