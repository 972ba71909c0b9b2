"""The engine of a model of one stack: it gives a scheduler its lane, and translates nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from regard.decode.hypothesis import Hypothesis
from regard.engine.engines.protocol import Request, Search
from regard.errors import RequestError

ROOM = 8192
"""Tokens that are read together."""


class LoneEngine:
    """What a generator or a classifier has in an engine's place. Its tasks know their model themselves."""

    name, lanes = "torch", 1

    def batch_capacity(self, _search: Search) -> int:
        """Tokens of a batch."""
        return ROOM

    def lane(self) -> LoneEngine:
        """There is one lane."""
        return self

    def unsupported(self, _search: Search, _requests: Sequence[Request]) -> str:
        """Why nothing is translated."""
        return "a model of one stack alone does not translate"

    def decode(self, _requests: Sequence[Request], _search: Search) -> list[tuple[Hypothesis, ...]]:
        """Nothing is."""
        self._refuse()

    def score(
        self, _sources: Sequence[Sequence[int]], _targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Nothing is."""
        self._refuse()

    def stream(self, _request: Request, _search: Search) -> Iterator[int]:
        """Nothing is."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RequestError("a model of one stack alone does not translate")
