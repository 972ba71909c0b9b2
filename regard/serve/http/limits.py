"""What the server takes on, at most. The docstrings are the reference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Everything that has a bound."""

    body_bytes: int = 2 << 20
    """A request's body."""
    characters: int = 100_000
    """All texts of a request together."""
    items: int = 256
    """Texts of a request."""
    waiting: int = 256
    """Requests that are being worked on or wait for it."""
    deadline_s: float = 60.0
    """How long a request may take; it can ask for less by `deadline_ms`."""
    beam: int = 16
    """Hypotheses kept at each step, and translations of one text."""
    requests_a_minute: int = 600
    """Of one key, unless its line in the file says otherwise."""
    looks_waiting: int = 16
    """Requests of the inspector that wait."""
    trace_tokens: int = 512
    """Tokens of either side of a trace."""
    traces_bytes: int = 256 << 20
    """All traces that are kept; the one that was not looked at for longest goes first."""
    trace_seconds: float = 900.0
    """How long a trace is kept after it was last looked at."""
    remembered: int = 256
    """Outputs of intact models that are remembered, for as long as a trace is kept."""
    files_bytes: int = 64 << 20
    """All translated files that are kept."""
    file_seconds: float = 900.0
    """How long a translated file can be fetched."""
    interventions: int = 512
    """Interventions of a request, in all its lists."""
    followers: int = 64
    """Clients that follow runs."""
    drain_s: float = 30.0
    """How long work that was taken on may take after the signal to stop."""
