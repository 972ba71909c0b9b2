"""What the routes share: the application's state, and the check of API keys."""

from __future__ import annotations

from starlette.requests import Request

from regard.serve.cache import BlobStore
from regard.serve.http.errors import ApiError
from regard.serve.http.keys import KeyRing, RateLimiter
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.inspector import Inspector
from regard.serve.models import ModelRegistry
from regard.serve.work.executor import RequestExecutor


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
        self.keys, self._rate_limiter = keys, RateLimiter()
        self.n_followers = 0
        """Number of clients that follow runs."""

    def authorize(self, secret: str | None) -> None:
        """Check the key of a request, and count the request.

        Raises:
            ApiError: a key is needed and missing or unknown, or its rate limit is reached.
        """
        if self.keys is None:
            return
        if not secret:
            message = "This server needs a key: send the header `Authorization: Bearer KEY`."
            raise ApiError(401, message, code="no_key")
        key = self.keys.find(secret)
        if key is None:
            raise ApiError(403, "The key is unknown.", code="wrong_key")
        self._rate_limiter.take(key.name, key.requests_a_minute or self.limits.requests_a_minute)


def state_of(request: Request) -> AppState:
    """The state of the application that handles a request."""
    state: AppState = request.app.state.regard
    return state


def bearer(request: Request) -> str | None:
    """The key in a request's headers."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


async def require_key(request: Request) -> None:
    """Dependency of routes that need a key, if the server has keys."""
    state_of(request).authorize(bearer(request))
