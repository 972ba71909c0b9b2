"""The engines of one model, the most wanted first; each is loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from regard.decode.hypothesis import Hypothesis
from regard.engine.engine import Engine, Request, Search
from regard.errors import RequestError


class Decoded(NamedTuple):
    """What was found for a request."""

    hypotheses: tuple[Hypothesis, ...]
    engine: str


class Engines:
    """Engines that stand in for each other: what one refuses, the next is asked for."""

    def __init__(self, loaders: Sequence[Callable[[], Engine]]) -> None:
        self._loaders = loaders
        self._loaded: list[Engine] = []

    def decode(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """For each request, in order, what the first engine that can found.

        Raises:
            RequestError: no engine can do it; the reasons are told.
        """
        found: dict[int, Decoded] = {}
        waiting = list(range(len(requests)))
        reasons = []
        for engine in self._each() if requests else ():
            refusals = {i: engine.refusal(search, [requests[i]]) for i in waiting}
            mine = [i for i in waiting if refusals[i] is None]
            hypotheses = engine.decode([requests[i] for i in mine], search) if mine else []
            found |= {i: Decoded(each, engine.name) for i, each in zip(mine, hypotheses, strict=True)}
            waiting = [i for i in waiting if i not in found]
            if not waiting:
                return [found[i] for i in range(len(requests))]
            reasons.append(refusals[waiting[0]] or "")
        if waiting:
            raise RequestError("; ".join(reasons))
        return []

    def choose(self, request: Request, search: Search) -> Engine:
        """The first engine that can do this; RequestError where none can."""
        reasons = []
        for engine in self._each():
            reason = engine.refusal(search, [request])
            if reason is None:
                return engine
            reasons.append(reason)
        raise RequestError("; ".join(reasons))

    @property
    def first(self) -> Engine:
        """The most wanted, which scores."""
        return next(self._each())

    def _each(self) -> Iterator[Engine]:
        for i, load in enumerate(self._loaders):
            if i == len(self._loaded):
                self._loaded.append(load())
            yield self._loaded[i]
