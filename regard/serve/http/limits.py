"""The limits of the server. The docstrings are the reference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Everything that has a maximum."""

    body_bytes: int = 2 << 20
    """Size of a request's body."""
    characters: int = 100_000
    """Characters of all texts of a request together."""
    items: int = 256
    """Texts per request."""
    waiting: int = 256
    """Requests that are processed or queued at a time."""
    deadline_s: float = 60.0
    """Seconds that a request may take; `deadline_ms` can shorten it."""
    beam: int = 16
    """Beam size, and translations per text."""
    requests_a_minute: int = 600
    """Requests per minute and key, unless the key has its own limit."""
    looks_waiting: int = 16
    """Requests to look inside a model that are queued at a time."""
    trace_tokens: int = 512
    """Tokens on each side of a trace."""
    traces_bytes: int = 256 << 20
    """Size of all stored traces; those not read for longest are dropped first."""
    trace_seconds: float = 900.0
    """Seconds that a trace is kept after it was last read."""
    remembered: int = 256
    """Cached outputs of unchanged models; each is kept as long as a trace."""
    files_bytes: int = 64 << 20
    """Size of all stored translated files."""
    file_seconds: float = 900.0
    """Seconds that a translated file is kept."""
    interventions: int = 512
    """Interventions per request, over all its lists."""
    intervention_texts: int = 16
    """Texts that the interventions of a request may refer to."""
    followers: int = 64
    """Clients that follow runs at a time."""
    drain_s: float = 30.0
    """Seconds for requests to finish after the signal to stop."""
