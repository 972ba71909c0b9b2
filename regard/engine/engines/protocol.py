"""The interface of engines: token ids in, hypotheses out; and a chain of engines that fall back.

Text is handled above, in `engine/translator.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from regard.decode.hypothesis import Hypothesis, loops
from regard.errors import RequestError

NO_REPEAT = 4
"""In a second attempt, no sequence of this many tokens occurs twice."""
NOTHING = Hypothesis(ids=(), token_log_probs=(), score=0.0, finished=True)
"""The output of an empty request."""
Hypotheses = tuple[Hypothesis, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One sequence to decode from."""

    ids: tuple[int, ...]
    """The inputs, without the end token: engines add it."""
    prefix: tuple[int, ...] = ()
    """How the output must begin."""
    phrases: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """What the output must contain: of each phrase, one of its spellings in tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingOptions:
    """How to sample tokens."""

    temperature: float = 1.0
    """Below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = 0
    """Sample from this many of the most likely tokens; 0 for all."""
    top_p: float = 1.0
    """Sample from the most likely tokens that together have this probability."""
    min_p: float = 0.0
    """Sample from tokens at least this fraction as likely as the most likely one."""
    seed: int = 1
    """Seed of the sampling: the same seed gives the same text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search(SamplingOptions):
    """How to search for outputs, or to sample them."""

    beam_size: int = 4
    """Hypotheses kept at each step; 1 is greedy search (6.1)."""
    length_penalty: float = 0.6
    """The paper's alpha: scores are divided by ((5 + length) / 6) ** alpha (6.1)."""
    n_best: int = 1
    """Hypotheses returned, the best first."""
    token_scores: bool = False
    """Whether to return the log-probability of each token, which may take a second run."""
    min_length: int = 0
    """Minimum number of output tokens, without the end token."""
    extra_length: int = 50
    """How many tokens longer than its input an output may be (6.1)."""
    sample: bool = False
    """Sample tokens instead of searching for the most likely ones."""
    shortlist: bool = True
    """Consider only tokens of the model's shortlist, if it has one and nothing constrains outputs."""

    def uses_shortlist(self, request: Request, no_repeat: int = 0) -> bool:
        """Whether a request may be searched with a shortlist: a constraint may require any token."""
        constrained = request.prefix or request.phrases or self.min_length or self.sample or no_repeat
        return self.shortlist and not constrained


class Engine(Protocol):
    """A loaded encoder-decoder model that decodes and scores."""

    name: str
    """As users choose it: torch, ctranslate2."""
    queues: bool
    """Whether batches of several threads wait in a queue of its own, for workers of its own."""

    @property
    def lanes(self) -> int:
        """Number of batches that run side by side."""

    def batch_capacity(self, search: Search) -> int:
        """Best number of input tokens in one batch, padding included."""

    def lane(self) -> Engine:
        """This engine for one of several threads that run a batch each; call it in that thread."""

    def express(self) -> Engine | None:
        """This engine for one thread more, beside all lanes; None if that is impossible.

        Call it in that thread. Short requests then share the cores with the lanes, and wait for none.
        """

    def unsupported(self, search: Search, requests: Sequence[Request]) -> str | None:
        """Why it cannot run these requests; None if it can."""

    def decode(self, requests: Sequence[Request], search: Search) -> list[Hypotheses]:
        """The hypotheses of each request, the best first.

        A result does not depend on the rest of the batch, except for rounding in batches of another shape.
        """

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, given its source, and of the end token."""

    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one output as they are decoded; greedy or sampled.

        The last is the end token, unless the output was cut off at the length limit.
        """


class Decoded(NamedTuple):
    """The hypotheses of one request, and the engine that found them."""

    hypotheses: Hypotheses
    engine: str


@dataclass(frozen=True)
class EngineLoader:
    """Imports the module of an engine and opens it, when the engine is needed."""

    module: str
    arguments: tuple[Any, ...]
    """The descriptions of the models, and their vocabulary."""
    options: Mapping[str, Any]
    records: bool = True
    """Whether recordings reach what the engine runs."""

    def __call__(self) -> Engine:
        """Open the engine."""
        engine: Engine = import_module(self.module).open_engine(*self.arguments, **self.options)
        return engine


class Engines:
    """The engines of one model, the preferred one first; an engine is loaded when it is first needed.

    A request that one engine does not support goes to the next. While the model is recorded, engines that
    cannot be recorded support nothing.
    """

    def __init__(
        self, loaders: Sequence[Callable[[], Engine]], is_recorded: Callable[[], bool] = lambda: False
    ) -> None:
        self._loaders, self._is_recorded = loaders, is_recorded
        self._loaded: dict[int, Engine] = {}
        self._loading = threading.Lock()

    def decode(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """Decode each request with the first engine that supports it; results are in the same order.

        Raises:
            RequestError: no engine supports a request.
        """
        groups: dict[str, list[int]] = {}
        chosen = [self.choose(request, search) for request in requests]
        for i, engine in enumerate(chosen):
            groups.setdefault(engine.name, []).append(i)
        decoded: dict[int, Decoded] = {}
        for name, places in groups.items():
            hypotheses = chosen[places[0]].decode([requests[i] for i in places], search)
            decoded |= {i: Decoded(each, name) for i, each in zip(places, hypotheses, strict=True)}
        return [decoded[i] for i in range(len(requests))]

    def choose(self, request: Request, search: Search) -> Engine:
        """The first engine that supports a request.

        Raises:
            RequestError: none does.
        """
        reason = None
        for place in self._usable():
            engine = self._engine(place)
            reason = engine.unsupported(search, [request])
            if reason is None:
                return engine
        raise RequestError(reason or "there is no engine", code="unsupported_request")

    @property
    def first(self) -> Engine:
        """The preferred engine, which also scores.

        Raises:
            RequestError: the model is recorded, and no engine can be.
        """
        return self._engine(self._usable()[0])

    def lane(self) -> Engines:
        """The same engines for one of several threads that run a batch each; call it in that thread."""
        return Engines([partial(self._lane, i) for i in range(len(self._loaders))])

    def express(self) -> Engines | None:
        """The same engines for one thread more, beside all lanes; None if that is impossible."""
        first = self.first.express()
        if first is None:
            return None
        return Engines([lambda: first, *(partial(self._lane, i) for i in range(1, len(self._loaders)))])

    def _lane(self, place: int) -> Engine:
        return self._engine(place).lane()

    def _engine(self, place: int) -> Engine:
        with self._loading:
            if place not in self._loaded:
                self._loaded[place] = self._loaders[place]()
        return self._loaded[place]

    def _usable(self) -> Sequence[int]:
        """The places of the engines that may run now."""
        places = range(len(self._loaders))
        if not self._is_recorded():
            return places
        if usable := [i for i in places if getattr(self._loaders[i], "records", True)]:
            return usable
        raise RequestError(
            "the model is recorded, which CTranslate2 cannot be; load it with `engine='torch'`",
            code="unrecordable_engine",
        )


def with_second_attempt(
    requests: Sequence[Request],
    outputs: Sequence[Hypotheses],
    again: Callable[[list[Request]], Sequence[Hypotheses]],
) -> list[Hypotheses]:
    """The outputs, with those that end in a loop replaced by a second attempt, or flagged.

    Args:
        requests: what was decoded.
        outputs: the hypotheses of each request.
        again: decodes requests without repeating `NO_REPEAT` tokens.
    """
    kept = list(outputs)
    looping = [i for i, best in enumerate(kept) if best and has_new_loop(requests[i], best[0].ids)]
    if not looping:
        return kept
    for i, best in zip(looping, again([requests[i] for i in looping]), strict=True):
        # Required phrases may leave no output without a loop.
        kept[i] = best if best and not loops(best[0].ids) else _flagged(best or kept[i])
    return kept


def has_new_loop(request: Request, output: tuple[int, ...]) -> bool:
    """Whether an output ends in a loop that its input does not have."""
    return loops(output) and not loops(request.ids)


def _flagged(best: Hypotheses) -> Hypotheses:
    return tuple(replace(one, repetitive=loops(one.ids)) for one in best)
