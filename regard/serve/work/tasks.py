"""What a lane is asked to do. Tasks of equal keys may share a batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from regard.engine.engines.protocol import Engines, Request, Search
from regard.engine.results import Aligner


class Task(Protocol):
    """A sentence's worth of work."""

    @property
    def key(self) -> Hashable:
        """What it has in common with those that it may share a batch with."""

    @property
    def length(self) -> int:
        """Tokens that it takes in a batch."""

    @property
    def search(self) -> Search:
        """How it is searched for, which decides how much fits into a batch."""

    def run(self, engines: Engines, batch: Sequence[Any]) -> list[Any]:
        """The results of a whole batch of its like, itself among them, in order."""


@dataclass(frozen=True, slots=True)
class Decode:
    """Hypotheses for one request."""

    request: Request
    search: Search

    @property
    def key(self) -> Hashable:
        """The search; and prefixes and phrases, which engines keep to themselves."""
        return self.search, bool(self.request.prefix), bool(self.request.phrases)

    @property
    def length(self) -> int:
        """Its input, and the token that ends it."""
        return len(self.request.ids) + 1

    def run(self, engines: Engines, batch: Sequence[Decode]) -> list[Any]:
        """What the first engine that can do it finds for each."""
        return engines.decode([each.request for each in batch], self.search)


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is done with both sides of a pair."""

    source: Sequence[int]
    target: Sequence[int]

    @property
    def key(self) -> Hashable:
        """All of one kind are alike."""
        return type(self).__name__

    @property
    def search(self) -> Search:
        """Nothing is searched for: one row each."""
        return Search(beam_size=1)

    @property
    def length(self) -> int:
        """The longer side, and the token that ends it."""
        return max(len(self.source), len(self.target)) + 1


@dataclass(frozen=True, slots=True)
class Score(_Pair):
    """The log-probabilities of one given output."""

    def run(self, engines: Engines, batch: Sequence[Score]) -> list[Any]:
        """The log-probability of each token."""
        return list(engines.first.score([each.source for each in batch], [each.target for each in batch]))


@dataclass(frozen=True, slots=True)
class Align(_Pair):
    """The links between the words of one pair."""

    aligner: Aligner

    def run(self, _engines: Engines, batch: Sequence[Align]) -> list[Any]:
        """The links of each."""
        return list(self.aligner([(tuple(each.source), tuple(each.target)) for each in batch]))


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The tokens of one output, as they are found."""

    request: Request
    search: Search
    hear: Callable[[int], bool]
    """Takes each token, and says whether the next is still wanted."""

    @property
    def key(self) -> Hashable:
        """Nothing shares its batch."""
        return self

    @property
    def length(self) -> int:
        """Its input, and the token that ends it."""
        return len(self.request.ids) + 1

    def run(self, engines: Engines, batch: Sequence[Stream]) -> list[Any]:
        """Nothing more than what was heard."""
        assert len(batch) == 1, "a stream runs alone"
        for token in engines.choose(self.request, self.search).stream(self.request, self.search):
            if not self.hear(token):
                break
        return [None]
