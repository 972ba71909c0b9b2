"""Cancellation of long computations: a caller sets a check, which they call between their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=lambda: None)


@contextmanager
def cancellable(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` between the steps of what is computed inside; it raises an error to cancel it."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def raise_if_cancelled() -> None:
    """Raise the error of the caller that has cancelled this computation, if one has."""
    _check.get()()
