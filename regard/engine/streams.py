"""Texts that arrive in pieces: a stream with its result, and the end at a stop string. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from regard.errors import RequestError

R = TypeVar("R")


class TextStream(Generic[R]):
    """An iterator over the pieces of a text; after the last one, `result` says how the text ended."""

    def __init__(self, pieces: Iterator[str], result: Callable[[str], R]) -> None:
        """Take pieces as they come, and a function that makes the result from the whole text."""
        self._pieces, self._make_result = pieces, result
        self._given: list[str] = []
        self._result: tuple[R] | None = None

    def __iter__(self) -> TextStream[R]:
        return self

    def __next__(self) -> str:
        try:
            piece = next(self._pieces)
        except StopIteration:
            if self._result is None:
                self._result = (self._make_result("".join(self._given)),)
            raise
        self._given.append(piece)
        return piece

    def close(self) -> None:
        """Stop before the end, and release what makes the pieces."""
        if close := getattr(self._pieces, "close", None):
            close()

    @property
    def result(self) -> R:
        """The result, as of a call without a stream.

        Raises:
            RequestError: the stream has not ended.
        """
        if self._result is None:
            raise RequestError("a stream has a result after its last piece: read it first", code="not_ended")
        return self._result[0]


class UntilStop:
    """Passes a text through up to a stop string, and holds back what might become one."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop, self._held = tuple(stop), ""
        self.stopped = False
        """Whether a stop string has come."""

    def add(self, piece: str) -> str:
        """What is certainly before a stop string, with one more piece of the text."""
        if self.stopped:
            return ""
        self._held += piece
        places = [place for stop in self._stop if (place := self._held.find(stop)) >= 0]
        self.stopped = bool(places)
        return self._release(min(places) if places else len(self._held) - self._n_undecided())

    def end(self) -> str:
        """What was held back, at the end of the text."""
        return "" if self.stopped else self._release(len(self._held))

    def _release(self, n: int) -> str:
        released, self._held = self._held[:n], self._held[n:]
        return released

    def _n_undecided(self) -> int:
        """Number of characters at the end that might begin a stop string."""
        beginnings = (stop[:n] for stop in self._stop for n in range(1, len(stop)))
        return max((len(start) for start in beginnings if self._held.endswith(start)), default=0)
