"""All that the routes share: models, limits, keys, the desk where work is taken on."""

from __future__ import annotations

from starlette.requests import Request

from regard.serve.http.errors import Refusal
from regard.serve.http.keys import KeyRing
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.http.rates import Rates
from regard.serve.served import Catalogue
from regard.serve.shelf import Shelf
from regard.serve.work.desk import Desk
from regard.serve.work.inspector import Inspector


class Service:
    """One server's worth of state."""

    def __init__(
        self,
        catalogue: Catalogue,
        metrics: Metrics,
        *,
        limits: Limits | None = None,
        keys: KeyRing | None = None,
    ) -> None:
        """Keep what the routes need; without keys, anybody may ask."""
        self.catalogue, self.metrics, self.limits = catalogue, metrics, limits or Limits()
        self.desk = Desk(self.limits, metrics)
        self.inspector = Inspector(self.limits, metrics)
        self.files = Shelf("file", self.limits.files_bytes, self.limits.file_seconds)
        """Files that were translated."""
        self.keys, self._rates = keys, Rates()
        self.n_followers = 0
        """Clients that follow runs."""

    def admit(self, secret: str | None) -> None:
        """Let somebody ask, once.

        Raises:
            Refusal: keys are needed and this is none, or it was used too often.
        """
        if self.keys is None:
            return
        if not secret:
            message = "This server needs a key: send the header `Authorization: Bearer KEY`."
            raise Refusal(401, "no_key", message)
        key = self.keys.find(secret)
        if key is None:
            raise Refusal(403, "wrong_key", "This key is not known here.")
        self._rates.take(key.name, key.requests_a_minute or self.limits.requests_a_minute)


def service_of(request: Request) -> Service:
    """The service behind a request."""
    found: Service = request.app.state.service
    return found


def bearer(request: Request) -> str | None:
    """The key that a request shows in its headers."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


async def admitted(request: Request) -> None:
    """What a route depends on that needs a key, where there are keys."""
    service_of(request).admit(bearer(request))
