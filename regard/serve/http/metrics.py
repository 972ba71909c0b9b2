"""Prometheus metrics. Labels come from bounded sets (routes, statuses, models), never from clients."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from regard.serve.work.scheduler import BatchStats

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ["route", "code"]
        self._requests = self._counter("regard_requests", "Requests answered.", labels)
        self._request = self._histogram(
            "regard_request_seconds", "From request to answer.", _SECONDS, ["route"]
        )
        self._queue = self._histogram("regard_queue_seconds", "Waiting for a lane.", _SECONDS, ["model"])
        self._tokens = self._histogram("regard_batch_tokens", "Input tokens of a batch.", _TOKENS, ["model"])
        self._padding = self._histogram(
            "regard_padding_ratio", "Share of padding in a batch.", (0.05, 0.1, 0.2, 0.3, 0.5, 0.7), ["model"]
        )
        self._cancelled = self._counter("regard_cancelled", "Requests given up.", ["reason"])
        self._gauges: dict[str, Gauge] = {}
        self.watch("regard_memory_bytes", "Memory in use by this process.", resident_bytes)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a response."""
        self._requests.labels(route, str(status)).inc()
        self._request.labels(route).observe(seconds)

    def cancelled(self, reason: str) -> None:
        """Count a cancelled request."""
        self._cancelled.labels(reason).inc()

    def batch_observer(self, model: str) -> Callable[[BatchStats], None]:
        """A function that records the batches of a model."""
        queue, tokens, padding = (each.labels(model) for each in (self._queue, self._tokens, self._padding))

        def observe(batch: BatchStats) -> None:
            for seconds in batch.waited:
                queue.observe(seconds)
            tokens.observe(batch.tokens)
            padding.observe(1 - batch.tokens / batch.cells)

        return observe

    def watch(self, name: str, about: str, value: Callable[[], float], model: str | None = None) -> None:
        """Add a gauge that calls a function; of one model, or of the server."""
        if name not in self._gauges:
            labels = [] if model is None else ["model"]
            self._gauges[name] = Gauge(name, about, labels, registry=self._registry)
        gauge = self._gauges[name]
        (gauge if model is None else gauge.labels(model)).set_function(value)

    def page(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _counter(self, name: str, about: str, labels: list[str]) -> Counter:
        return Counter(name, about, labels, registry=self._registry)

    def _histogram(self, name: str, about: str, steps: tuple[float, ...], labels: list[str]) -> Histogram:
        return Histogram(name, about, labels, buckets=steps, registry=self._registry)


def resident_bytes() -> float:
    """Memory of this process; on systems without /proc, its peak; NaN where the system does not say."""
    status = Path("/proc/self/statm")
    if status.exists() and hasattr(os, "sysconf"):
        return float(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:  # Windows
        return math.nan

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
