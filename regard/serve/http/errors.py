"""What the server answers instead of a result: a status, a code for programs and a sentence for people."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from regard.errors import BundleError, RegardError, RequestError, TooLongError

log = logging.getLogger("regard.serve")


class Refusal(RequestError):  # noqa: N818 - an answer, which is raised
    """A request that gets no result."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status, self.code, self.message = status, code, message
        self.param = param
        """The field that is wrong, where one is."""
        self.retry_after = retry_after
        """Seconds after which it may go better, where waiting helps."""
        super().__init__(status, code, message)

    def __str__(self) -> str:
        return self.message

    @property
    def headers(self) -> dict[str, str]:
        """What the answer's headers say of it."""
        found = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return found | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


def refusal_of(error: RegardError) -> Refusal:
    """What is answered where the library refuses something."""
    if isinstance(error, Refusal):
        return error
    message = f"{str(error).rstrip('.')}."
    if isinstance(error, BundleError):
        log.error("a model cannot be read: %s", error)
        told = "The model's files cannot be read any more. Whoever runs this server finds why in its log."
        return Refusal(500, "model_unreadable", told)
    return too_large(message) if isinstance(error, TooLongError) else bad_value(message)


def bad_value(message: str, param: str | None = None) -> Refusal:
    """A field holds what it cannot hold."""
    return Refusal(422, "bad_value", message, param=param)


def unclear_language(message: str, param: str) -> Refusal:
    """A text does not tell which language it is in; the field that would say it."""
    return Refusal(422, "unclear_language", message, param=param)


def validation_refusal(problems: Sequence[Any]) -> Refusal:
    """What pydantic found wrong with a request, the first of it in a sentence."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return Refusal(400, "bad_json", "The body is no JSON.")
    # Behind the field pydantic names its own types, which say nothing to a client.
    place = next((str(part) for part in first["loc"] if part not in ("body", "query", "path")), None)
    return bad_value(f"{place or 'the body'}: {first['msg']}.", place)


def not_found(what: str, param: str | None = None) -> Refusal:
    """There is no such thing."""
    return Refusal(404, "not_found", what, param=param)


def too_large(message: str, param: str | None = None) -> Refusal:
    """More than is taken at once."""
    return Refusal(413, "too_large", message, param=param)


def busy(message: str) -> Refusal:
    """As many are waiting as may wait."""
    return Refusal(503, "busy", message, retry_after=1)


def draining() -> Refusal:
    """The server is on its way out."""
    return Refusal(503, "shutting_down", "The server is shutting down and takes no more work.", retry_after=5)


def too_late(seconds: float) -> Refusal:
    """The deadline has passed."""
    return Refusal(504, "deadline", f"There was no result within {seconds:g} s. Ask for less, or later.")


def gone() -> Refusal:
    """The client has left; nobody reads this."""
    return Refusal(499, "client_gone", "The client left before the answer.")
