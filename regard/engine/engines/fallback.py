"""The engines of one model, the most wanted first; each is loaded when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from regard.decode.hypothesis import Hypothesis
from regard.engine.engines.protocol import Engine, Request, Search
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
        self._loading = threading.Lock()

    def decode(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """For each request, in order, what the first engine that can do it found.

        Raises:
            RequestError: not even the last one can.
        """
        groups: dict[str, list[int]] = {}
        chosen = [self.choose(request, search) for request in requests]
        for i, engine in enumerate(chosen):
            groups.setdefault(engine.name, []).append(i)
        found: dict[int, Decoded] = {}
        for name, places in groups.items():
            hypotheses = chosen[places[0]].decode([requests[i] for i in places], search)
            found |= {i: Decoded(each, name) for i, each in zip(places, hypotheses, strict=True)}
        return [found[i] for i in range(len(requests))]

    def choose(self, request: Request, search: Search) -> Engine:
        """The first engine that can do this.

        Raises:
            RequestError: not even the last one can.
        """
        reason = None
        for engine in self._each():
            reason = engine.refusal(search, [request])
            if reason is None:
                return engine
        raise RequestError((reason or "there is no engine").removeprefix("request 0: "))

    @property
    def first(self) -> Engine:
        """The most wanted, which scores."""
        return next(self._each())

    def lane(self) -> Engines:
        """The same engines for one of several threads that bring a batch each; call it in that thread."""
        return Engines([partial(self._lane, i) for i in range(len(self._loaders))])

    def _lane(self, place: int) -> Engine:
        return self._engine(place).lane()

    def _each(self) -> Iterator[Engine]:
        yield from map(self._engine, range(len(self._loaders)))

    def _engine(self, place: int) -> Engine:
        with self._loading:
            while len(self._loaded) <= place:
                self._loaded.append(self._loaders[len(self._loaded)]())
        return self._loaded[place]
