"""Engines as one job sees them: whatever it asks waits its turn at the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from typing import Any

from regard.engine.engines.protocol import Decoded, Engine, Engines, Request, Search
from regard.engine.results import Aligner, Ids, WordLink
from regard.serve.work.job import Job
from regard.serve.work.scheduler import Scheduler
from regard.serve.work.tasks import Align, Decode, Score, Stream


class Scheduled(Engines):
    """The engines as one job sees them."""

    def __init__(self, scheduler: Scheduler, job: Job) -> None:
        super().__init__([])
        self._turn = Turn(scheduler, job)

    def decode(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """For each request, in order, what was found when its turn came."""
        return self._turn.decoded(requests, search)

    def choose(self, request: Request, search: Search) -> Engine:  # noqa: ARG002
        """The turn that this job waits for; the lane chooses."""
        return self._turn

    @property
    def first(self) -> Engine:
        """The same."""
        return self._turn


class Turn:
    """An engine that waits for its turn."""

    name, lanes = "scheduled", 1

    def __init__(self, scheduler: Scheduler, job: Job) -> None:
        self._scheduler, self._job = scheduler, job

    def decoded(self, requests: Sequence[Request], search: Search) -> list[Decoded]:
        """What was found for each request, and by which engine."""
        tasks = [Decode(request, search) for request in requests]
        return list(self._scheduler.submit(self._job, tasks).all.result())

    def batch_capacity(self, _search: Search) -> int:
        """The scheduler sees to it."""
        return 1

    def lane(self) -> Turn:
        """A turn is a lane's already."""
        return self

    def unsupported(self, _search: Search, _requests: Sequence[Request]) -> str | None:
        """Whether it can be done is found out when the turn comes."""
        return None

    def decode(self, requests: Sequence[Request], search: Search) -> list[Any]:
        """For each request, in order, its hypotheses."""
        return [each.hypotheses for each in self.decoded(requests, search)]

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Log-probability of each token of each target, and of the one that ends it."""
        tasks = [Score(source, target) for source, target in zip(sources, targets, strict=True)]
        return list(self._scheduler.submit(self._job, tasks).all.result())

    def stream(self, request: Request, search: Search) -> Iterator[int]:
        """Tokens of one output as they are found; whoever stops listening stops the search."""
        heard: SimpleQueue[int | None] = SimpleQueue()
        listening = True

        def hear(token: int) -> bool:
            heard.put(token)
            return listening and self._job.over is None

        parts = self._scheduler.submit(self._job, [Stream(request, search, hear)])
        parts.all.add_done_callback(lambda _: heard.put(None))
        try:
            while (token := heard.get()) is not None:
                yield token
            parts.all.result()
        finally:
            listening = False


class AlignsInTurn:
    """Aligns words when its turn comes."""

    def __init__(self, scheduler: Scheduler, job: Job, aligner: Aligner) -> None:
        self._scheduler, self._job, self._aligner = scheduler, job, aligner
        self.about = aligner.about

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair."""
        tasks = [Align(source, target, self._aligner) for source, target in pairs]
        return list(self._scheduler.submit(self._job, tasks).all.result())
