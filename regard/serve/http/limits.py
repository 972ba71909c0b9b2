"""The limits of the server. The docstrings are the reference; `docs/serve.md` has them as a table."""

from __future__ import annotations

import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import ClassVar

from regard.config.checking import did_you_mean, merged, not_positive, refuse_problems, types_of
from regard.errors import ConfigError
from regard.serve.http.errors import ApiError, busy

MB = 1 << 20
LITTLE = 256
"""A client that takes less than this share of a budget is always served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Everything that has a maximum; a client is a key, or an address if there are no keys."""

    SECTION: ClassVar[str] = "limits"

    # --- connections: checked before anything is parsed

    connections: int = 1024
    """Open connections."""
    connections_per_address: int = 512
    """Open connections of one address."""
    head_bytes: int = 64 << 10
    """Size of a request's line and headers."""
    headers: int = 100
    """Headers of a request."""
    head_s: float = 30.0
    """Seconds for the head of a request to arrive."""
    write_s: float = 30.0
    """Seconds in which a client must read 256 KiB of a response, or the rest of it."""

    # --- requests: checked before they are parsed

    body_bytes: int = 2 * MB
    """Size of a request's body."""
    body_s: float = 30.0
    """Seconds for the body of a request to arrive."""
    json_values: int = 20_000
    """Values in a JSON body, those inside of lists and objects included."""
    json_depth: int = 32
    """Lists and objects inside each other in a JSON body."""
    bytes_in_flight: int = 256 * MB
    """Bodies and large responses of all requests, until the response is read."""
    bytes_in_flight_per_client: int = 128 * MB
    """Bodies and large responses of one client."""
    bytes_without_key: int = 16 * MB
    """Bodies that arrive without a header that has a key, where keys are needed."""
    requests_a_minute: int = 600
    """Requests per minute and key, unless the key has its own limit."""
    wrong_keys_a_minute: int = 20
    """Unknown keys per minute and address."""
    errors_a_second: int = 10
    """Error responses per second and client that are sent at once; more of them wait for up to 2 seconds."""

    # --- work: checked before it starts

    characters: int = 100_000
    """Characters of all texts of a request together."""
    items: int = 256
    """Texts per request."""
    beam: int = 16
    """Beam size, and translations per text."""
    glossary_entries: int = 1000
    """Entries of a request's glossary, and texts to keep."""
    glossary_characters: int = 50_000
    """Characters of a request's glossary and texts to keep."""
    waiting: int = 256
    """Requests that are processed or queued at a time; the last quarter is for clients with few."""
    waiting_per_client: int = 128
    """Requests of one client that are processed or queued at a time."""
    deadline_s: float = 60.0
    """Seconds that a request may take; `deadline_ms` can shorten it."""
    looks_waiting: int = 16
    """Requests to look inside a model that are queued at a time."""
    trace_tokens: int = 256
    """Tokens on each side of a trace."""
    interventions: int = 512
    """Interventions per request, over all its lists."""
    intervention_texts: int = 16
    """Texts that the interventions of a request may refer to."""
    followers: int = 64
    """Clients that follow runs at a time."""
    training_s: float = 120.0
    """Seconds that the training which the page can start may take; one runs at a time."""
    drain_s: float = 30.0
    """Seconds for requests to finish after the signal to stop."""

    # --- memory: the oldest is dropped

    traces_bytes: int = 128 * MB
    """Size of all stored traces; those not read for longest are dropped first."""
    trace_seconds: float = 900.0
    """Seconds that a trace is kept after it was last read."""
    remembered: int = 256
    """Cached outputs of unchanged models; each is kept as long as a trace."""
    files_bytes: int = 64 * MB
    """Size of all stored translated files."""
    file_seconds: float = 900.0
    """Seconds that a translated file is kept."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """The limits that are not positive."""
        return not_positive(self, *(field.name for field in fields(self)))


def read_limits(settings: Sequence[str]) -> Limits:
    """The limits with single settings such as `body_bytes=4000000`.

    Raises:
        ConfigError: with every problem at once.
    """
    values: dict[str, object] = {}
    errors: list[ConfigError] = []
    for name, _, text in (each.partition("=") for each in settings):
        kind = types_of(Limits).get(name)
        if kind is None:
            hint = did_you_mean(name, list(types_of(Limits)))
            errors.append(ConfigError(f"there is no limit {name!r}{hint}", code="unknown_setting"))
            continue
        values[name] = text
        with suppress(ValueError):
            values[name] = kind(text)
    if errors:
        raise merged(errors, "--limit")
    return Limits(**values)  # type: ignore[arg-type]


class ByteBudget:
    """Bytes that all clients together, and each of them, may occupy at a time."""

    def __init__(self, total: int, per_client: int) -> None:
        self._total, self._per_client = total, per_client
        self._taken: Counter[str] = Counter()

    def take(self, client: str, n: int) -> None:
        """Take bytes for a client.

        Raises:
            ApiError: there are no more; nothing is taken.
        """
        if self._taken[client] + n > self._per_client:
            message = "This client has too much data in transit. Retry when other requests have ended."
            raise ApiError(429, message, code="busy", retry_after=1)
        # A client with little is served although others take as much as they may.
        if self.taken + n > self._total and self._taken[client] + n > self._total // LITTLE:
            raise busy("The server has too much data in transit. Retry in a moment.")
        self._taken[client] += n

    def release(self, client: str, n: int) -> None:
        """Give bytes back."""
        self._taken[client] -= n
        if not self._taken[client]:
            del self._taken[client]

    @property
    def taken(self) -> int:
        """Bytes that are taken."""
        return self._taken.total()


class Pacing:
    """Delays of error responses, by client.

    An error costs little work and can be had again at once: a few hundred connections that do so keep the
    event loop busy, and other clients wait. A client that waits for its errors cannot.
    """

    BURST_S = 1.0
    """Seconds whose responses may come at once."""
    LONGEST_S = 2.0
    """Longest delay: it bounds what is in memory, and how long a client waits in vain."""
    CLIENTS = 10_000
    """Clients that are remembered."""

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval, self._clock = 1 / per_second, clock
        self._due: OrderedDict[str, float] = OrderedDict()
        """When the next response to each client is due."""

    def delay(self, client: str) -> float:
        """Seconds until the next error response may be sent to a client; counts it as sent."""
        now = self._clock()
        due = max(self._due.pop(client, 0.0), now - self.BURST_S) + self._interval
        if due > now + self.LONGEST_S:  # not all of them at the same time
            due = now + random.uniform(self.LONGEST_S / 2, self.LONGEST_S)
        self._due[client] = due
        if len(self._due) > self.CLIENTS:
            self._due.popitem(last=False)
        return max(0.0, due - now)
