"""The work items of translators, generators and classifiers, and engines that submit them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from regard.engine.engines.protocol import Decoded, Engine, Engines, Request, Search
from regard.engine.options import ClassifyOptions, GenerateOptions
from regard.engine.results import Aligner, Classification, Continuation, Ids, WordLink
from regard.serve.work.jobs import RequestJob
from regard.serve.work.scheduler import PAUSED, Paused, Scheduler

if TYPE_CHECKING:
    from regard.engine.classifier import ClassifierEnsemble, TextClassifier
    from regard.engine.generator import Generator
    from regard.engine.streams import TextStream

T = TypeVar("T")
SECONDS_PER_TOKEN = 0.00025
"""About the time that a lane needs for a token of one hypothesis, from which costs are estimated."""
QUANTUM_S = 0.25
"""Seconds after which a text that is generated lets another one go first."""
LABEL_TOKENS = 8192
"""Maximum number of tokens in a batch of a classifier."""
GREEDY = Search(beam_size=1)
MANY = 256
"""Tokens of a continuation without a limit, for its cost."""


# --- translators: a lane has the engines ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DecodeItem:
    """Hypotheses for one request."""

    request: Request
    search: Search
    capacity: int

    @property
    def key(self) -> Hashable:
        """The search, and whether there are prefixes or phrases, which engines run separately."""
        return self.search, bool(self.request.prefix), bool(self.request.phrases)

    @property
    def length(self) -> int:
        """Its input and the end token."""
        return len(self.request.ids) + 1

    @property
    def cost(self) -> float:
        """Estimated seconds of a lane: by its length and the width of the search."""
        return SECONDS_PER_TOKEN * self.length * self.search.beam_size

    def run(self, lane: Engines, batch: Sequence[DecodeItem]) -> list[Decoded]:
        """The hypotheses of every item."""
        return lane.decode([item.request for item in batch], self.search)


@dataclass(frozen=True, slots=True)
class _PairItem:
    """Work on a source and its target."""

    source: Ids
    target: Ids
    capacity: int

    @property
    def key(self) -> Hashable:
        """All items of one class may share a batch."""
        return type(self).__name__

    @property
    def length(self) -> int:
        """The longer side and the end token."""
        return max(len(self.source), len(self.target)) + 1

    @property
    def cost(self) -> float:
        """Estimated seconds of a lane."""
        return SECONDS_PER_TOKEN * self.length


@dataclass(frozen=True, slots=True)
class ScoreItem(_PairItem):
    """The log-probabilities of one given output."""

    def run(self, lane: Engines, batch: Sequence[ScoreItem]) -> list[tuple[float, ...]]:
        """The log-probability of each token."""
        return lane.first.score([item.source for item in batch], [item.target for item in batch])


@dataclass(frozen=True, slots=True)
class AlignItem(_PairItem):
    """The word links of one pair."""

    aligner: Aligner

    def run(self, _lane: Engines, batch: Sequence[AlignItem]) -> list[tuple[WordLink, ...]]:
        """The links of every pair."""
        return self.aligner([(tuple(item.source), tuple(item.target)) for item in batch])


class ScheduledEngines(Engines):
    """The engines of a model for one job: every call waits for its turn at the scheduler."""

    def __init__(self, scheduler: Scheduler, job: RequestJob, engines: Engines) -> None:
        super().__init__([])
        self._scheduler, self._job, self._engines = scheduler, job, engines

    def decode(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """Decode each request when its turn comes."""
        capacity = self._engines.first.batch_capacity(search)
        return self._scheduler.run(self._job, [DecodeItem(each, search, capacity) for each in requests])

    def choose(self, request: Request, search: Search) -> Engine:
        """An engine that waits for its turn, with the name of the one that will run."""
        return self._scheduled(self._engines.choose(request, search).name)

    @property
    def first(self) -> Engine:
        """An engine that waits for its turn."""
        return self._scheduled(self._engines.first.name)

    def _scheduled(self, name: str) -> Engine:
        return _ScheduledEngine(self._scheduler, self._job, self._engines, self, name)


class _ScheduledEngine:
    """An engine for one job: every call waits for its turn at the scheduler."""

    lanes = 1
    queues = True

    def __init__(
        self,
        scheduler: Scheduler,
        job: RequestJob,
        engines: Engines,
        scheduled: ScheduledEngines,
        name: str,
    ) -> None:
        self._scheduler, self._job, self._engines = scheduler, job, engines
        self._scheduled, self.name = scheduled, name

    def batch_capacity(self, search: Search) -> int:
        """That of the preferred engine."""
        return self._engines.first.batch_capacity(search)

    def lane(self) -> _ScheduledEngine:
        """Itself: the scheduler has the lanes."""
        return self

    def express(self) -> None:
        """None: the scheduler has a lane for urgent items."""

    def unsupported(self, _search: Search, _requests: Sequence[Request]) -> str | None:
        """None: the lane's engines decide when the turn comes."""
        return None

    def decode(self, requests: Sequence[Request], search: Search) -> list[Any]:
        """The hypotheses of each request."""
        return [decoded.hypotheses for decoded in self._scheduled.decode(requests, search)]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, and of the end token."""
        capacity = self.batch_capacity(GREEDY)
        pairs = zip(sources, targets, strict=True)
        items = [ScoreItem(source, target, capacity) for source, target in pairs]
        return self._scheduler.run(self._job, items)

    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one output as they are decoded; closing the iterator stops the search."""

        def tokens(lane: Engines) -> Iterator[int]:
            return lane.choose(request, search).stream(request, search)

        return streamed(self._scheduler, self._job, tokens, len(request.ids) + 1)


class ScheduledAligner:
    """Aligns words when its turn comes."""

    def __init__(self, scheduler: Scheduler, job: RequestJob, aligner: Aligner, capacity: int) -> None:
        self._scheduler, self._job, self._aligner, self._capacity = scheduler, job, aligner, capacity
        self.about = aligner.about

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair."""
        items = [AlignItem(source, target, self._capacity, self._aligner) for source, target in pairs]
        return self._scheduler.run(self._job, items)


# --- generators and classifiers: a lane has no state ------------------------------------------------------


@dataclass(slots=True, eq=False)
class ContinueItem:
    """The continuation of one text; it stops when its job is cancelled, and pauses when others wait."""

    generator: Generator
    prompt: str
    options: GenerateOptions
    job: RequestJob
    is_contended: Callable[[], bool]
    """Whether other items wait for a lane."""
    capacity: int = 1
    _stream: TextStream[Continuation] | None = None

    @property
    def key(self) -> Hashable:
        """Itself: it runs alone."""
        return self

    @property
    def length(self) -> int:
        """Its prompt and the start token."""
        return len(self.generator.subwords.encode_one(self.prompt)) + 1

    @property
    def cost(self) -> float:
        """Estimated seconds of a lane; if it takes longer, it pauses."""
        return min(QUANTUM_S, SECONDS_PER_TOKEN * (self.length + (self.options.max_tokens or MANY)))

    def run(self, _lane: None, batch: Sequence[ContinueItem]) -> list[Continuation | Paused]:
        """The continuation, or a pause in it."""
        assert len(batch) == 1, "a text is continued alone"
        if self._stream is None:
            wanted = lambda: self.job.cancelled is None  # noqa: E731
            self._stream = self.generator.stream(self.prompt, self.options, wanted)
        until = time.monotonic() + QUANTUM_S
        for _ in self._stream:
            if time.monotonic() > until and self.is_contended():
                return [PAUSED]
        return [self._stream.result]


@dataclass(frozen=True, slots=True, eq=False)
class LabelItem:
    """The label of one text."""

    classifier: TextClassifier | ClassifierEnsemble
    text: str
    options: ClassifyOptions
    capacity: int = LABEL_TOKENS

    @property
    def key(self) -> Hashable:
        """Items with the same options may share a batch."""
        return type(self), self.options

    @property
    def length(self) -> int:
        """Its tokens, including [CLS]."""
        return self.classifier.n_tokens(self.text)

    @property
    def cost(self) -> float:
        """Estimated seconds of a lane."""
        return SECONDS_PER_TOKEN * self.length

    def run(self, _lane: None, batch: Sequence[LabelItem]) -> Sequence[Classification | dict[str, float]]:
        """The label of every text."""
        return self.classifier.classify([item.text for item in batch], self.options)


class LogitsItem(LabelItem):
    """The logits of the labels of one text."""

    def run(self, _lane: None, batch: Sequence[LabelItem]) -> Sequence[Classification | dict[str, float]]:
        """The logits of every text."""
        return self.classifier.raw_scores([item.text for item in batch], self.options)


# --- streams ----------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class StreamItem:
    """Pieces of one output, sent as they are produced."""

    produce: Callable[[Any], Iterator[Any]]
    """Starts the output in a lane."""
    length: int
    send: Callable[[Any], bool]
    """Takes a piece; returns whether the next one is wanted."""
    is_contended: Callable[[], bool] | None
    """Whether other items wait for a lane, for which it then pauses; None for one that cannot pause."""
    capacity: int = 1
    _pieces: Iterator[Any] | None = None

    @property
    def key(self) -> Hashable:
        """Itself: it runs alone."""
        return self

    @property
    def cost(self) -> float:
        """Estimated seconds of a lane: an output is about as long as its input."""
        return min(QUANTUM_S, 2 * SECONDS_PER_TOKEN * self.length)

    def run(self, lane: Any, batch: Sequence[StreamItem]) -> list[Paused | None]:
        """Nothing but what was sent."""
        assert len(batch) == 1, "a stream runs alone"
        pieces = self._pieces or self.produce(lane)
        self._pieces = None
        until = time.monotonic() + QUANTUM_S
        for piece in pieces:
            if not self.send(piece):
                break
            if self.is_contended and time.monotonic() > until and self.is_contended():
                self._pieces = pieces
                return [PAUSED]
        return [None]


def streamed(
    scheduler: Scheduler,
    job: RequestJob,
    produce: Callable[[Any], Iterator[T]],
    length: int,
    *,
    pauses: bool = False,
) -> Iterator[T]:
    """What `produce` yields in a lane, as it is produced; closing the iterator stops it.

    If it `pauses`, other items may run in the lane meanwhile, and it may go on in another lane.

    Raises:
        ApiError: the job was cancelled, or the scheduler closed.
    """
    pieces: SimpleQueue[Any] = SimpleQueue()
    end = object()
    wanted = True

    def send(piece: T) -> bool:
        pieces.put(piece)
        return wanted and job.cancelled is None

    item = StreamItem(produce, length, send, scheduler.is_contended if pauses else None)
    results = scheduler.submit(job, [item])
    results.all.add_done_callback(lambda _: pieces.put(end))
    try:
        while (piece := pieces.get()) is not end:
            yield piece
        results.all.result()
    finally:
        wanted = False
