"""Runs the work of requests in threads: a limited number, until their deadline or until the client leaves.

Work that calculates much before or after it waits for a scheduler runs in a process of its own: a large text,
or a part of a trace, would hold the interpreter that the event loop and all small requests need.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request

from regard.cancellation import cancellable
from regard.host import return_freed_memory
from regard.serve.cache import BlobStore
from regard.serve.http.errors import ApiError, busy, client_gone, deadline_passed, shutting_down
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import ModelRegistry, models_apart
from regard.serve.work.apart import Answers
from regard.serve.work.jobs import RequestJob
from regard.serve.work.pool import Pool
from regard.serve.work.process import WorkProcess
from regard.serve.work.turns import Turns

T = TypeVar("T")
_END, _STOPPED = object(), object()
LARGE = 4096
"""Bytes of a request's body from which on its texts are prepared in the process for large work."""
TURN_S = 0.1
"""Seconds after which a small request does not keep others waiting."""
FEW = 16
"""A client with a sixteenth of all places, or more, gets none of the last quarter of places."""


class RequestExecutor:
    """Runs blocking work in threads, while its client is served by the event loop."""

    def __init__(self, models: ModelRegistry, traces: BlobStore, limits: Limits, metrics: Metrics) -> None:
        self._models, self._traces, self._limits, self._metrics = models, traces, limits, metrics
        self._threads, self._turns = Pool(limits.waiting, "request"), Turns(TURN_S)
        self._process = WorkProcess(partial(models_apart, [(each.id, each.path) for each in models]))
        self._jobs: dict[RequestJob, Callable[[], object]] = {}
        """What ends the wait for a job, whether its thread ends or not."""
        self._n_jobs: Counter[str] = Counter()
        self.has_worked = False
        """Whether there was work, or a body, since memory was last returned."""
        self.draining = False
        """Whether new work is rejected."""
        metrics.watch("regard_requests_in_work", "Requests that were taken on.", self.__len__)

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self) -> None:
        """Start the process for large work, which the first large request would wait for."""
        self._process.start()

    def close(self) -> None:
        """End the process for large work at once."""
        self._process.close()

    async def run(
        self, request: Request, work: Callable[[RequestJob], T], deadline_ms: int | None = None
    ) -> T:
        """The result of `work(job)` in a thread; jobs have their turns by client while they do not wait.

        Raises:
            ApiError: too many requests, the deadline passed, the client left, or the server shuts down.
            RegardError: what the work raises.
        """

        def in_turn(job: RequestJob) -> T:
            with cancellable(job.check), job.in_turn():
                return work(job)

        return await self._unless_left(request, in_turn, deadline_ms)

    async def process(
        self,
        request: Request,
        work: Callable[..., T],
        *arguments: Any,
        apart: bool | None = None,
        deadline_ms: int | None = None,
    ) -> T:
        """The result of `work(models, job, *arguments)`, which can be pickled with its arguments; see `run`.

        It runs in the process for large work if it is to be `apart`; by default if the request is large.
        """
        if _is_apart(request, apart):
            return await self._unless_left(request, partial(self._apart, work, arguments), deadline_ms)
        return await self.run(request, lambda job: work(self._models, job, *arguments), deadline_ms)

    def _apart(self, work: Callable[..., T], arguments: Any, job: RequestJob) -> T:
        answers = Answers(self._models, self._traces, job)
        result: T = self._process.run(job, answers, work, *arguments)
        return result

    async def _unless_left(
        self, request: Request, work: Callable[[RequestJob], T], deadline_ms: int | None
    ) -> T:
        seconds = self._seconds(deadline_ms)
        left = asyncio.ensure_future(_client_left(request))
        try:
            await asyncio.sleep(0)
            if left.done():
                raise client_gone()
            job = self._new_job(client_of(request), left.cancel)
            done = self._start(job, partial(work, job))
            both: set[asyncio.Future[Any]] = {done, left}
            try:
                finished, _ = await asyncio.wait(both, timeout=seconds, return_when="FIRST_COMPLETED")
                if done in finished:
                    return done.result()
                reason = client_gone() if left in finished else deadline_passed(seconds)
                reason = shutting_down() if left.cancelled() else reason
                self._cancel(job, reason)
                raise reason
            finally:
                if not done.done():  # as when the server stops without waiting
                    job.cancel(client_gone())
        finally:
            left.cancel()

    async def stream(
        self,
        request: Request,
        work: Callable[..., Iterable[T]],
        *arguments: Any,
        apart: bool | None = None,
        deadline_ms: int | None = None,
    ) -> AsyncGenerator[T]:
        """What `work(models, job, *arguments)` yields, as it comes; closing the generator cancels the job.

        It runs where `process` runs it. A slow reader does not slow the work down: pieces are buffered.
        """
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Any]()
        job = self._new_job(client_of(request), lambda: pieces.put_nowait(_STOPPED))
        seconds = self._seconds(deadline_ms)
        is_apart = _is_apart(request, apart)

        def yielded() -> Iterator[T]:
            if is_apart:
                yield from self._process.stream(
                    job, Answers(self._models, self._traces, job), work, *arguments
                )
            else:
                with cancellable(job.check), job.in_turn():
                    yield from work(self._models, job, *arguments)

        def forward() -> None:
            for piece in yielded():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        done = self._start(job, forward)
        done.add_done_callback(lambda _: pieces.put_nowait(_END))
        until = loop.time() + seconds
        try:
            while (piece := await asyncio.wait_for(pieces.get(), until - loop.time())) is not _END:
                if piece is _STOPPED:
                    raise shutting_down()
                yield piece
            done.result()
        except TimeoutError:
            raise deadline_passed(seconds) from None
        finally:
            if not done.done():
                self._cancel(job, client_gone())

    async def drain(self) -> None:
        """Reject new work and wait for the rest; what is not done in time gets an error."""
        self.draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.drain_s):
                while any(job.cancelled is None for job in self._jobs):
                    await asyncio.sleep(0.02)
        for job, stop_waiting in list(self._jobs.items()):
            job.cancel(shutting_down())
            stop_waiting()

    def check(self, client: str) -> None:
        """Check that work can be taken on for a client; for streams, before the response starts.

        Raises:
            ApiError: too many requests, or the server shuts down.
        """
        if self.draining:
            raise shutting_down()
        # A client with few requests finds a place although others send as many as they may.
        most, few = self._limits.waiting, max(1, self._limits.waiting // FEW)
        if len(self._jobs) >= most - most // 4 * min(self._n_jobs[client], few) // few:
            raise busy(f"{most:,} requests are being processed. Retry in a moment.")
        if self._n_jobs[client] >= (most := self._limits.waiting_per_client):
            message = f"{most:,} requests of this client are being processed. Retry when some have ended."
            raise ApiError(429, message, code="busy", retry_after=1)

    def return_memory(self) -> None:
        """Return freed memory to the system, if there was work since the last time and there is none now."""
        if self.has_worked and not self._jobs:
            self.has_worked = False
            self._threads.submit(return_freed_memory)

    @property
    def is_busy(self) -> bool:
        """Whether a thread still works, perhaps for a request that was cancelled."""
        return self._threads.is_busy

    def _new_job(self, client: str, stop_waiting: Callable[[], object]) -> RequestJob:
        self.check(client)
        job = RequestJob(client, self._turns)
        self._jobs[job] = stop_waiting
        self.has_worked = True
        self._n_jobs[client] += 1
        return job

    def _start(self, job: RequestJob, work: Callable[[], T]) -> asyncio.Future[T]:
        done = asyncio.wrap_future(self._threads.submit(work))

        def forget(future: asyncio.Future[T]) -> None:
            self._jobs.pop(job, None)
            self._n_jobs[job.client] -= 1
            if not self._n_jobs[job.client]:
                del self._n_jobs[job.client]
            if not future.cancelled():
                future.exception()  # retrieved, because nothing else awaits a cancelled job

        done.add_done_callback(forget)
        return done

    def _cancel(self, job: RequestJob, reason: ApiError) -> None:
        self._metrics.cancelled(reason.code)
        job.cancel(reason)

    def _seconds(self, deadline_ms: int | None) -> float:
        longest = self._limits.deadline_s
        return longest if deadline_ms is None else min(longest, deadline_ms / 1000)


def _is_apart(request: Request, apart: bool | None) -> bool:
    size: int = request.state.size
    return size >= LARGE if apart is None else apart


def client_of(request: Request) -> str:
    """Who sent a request: a key's name or an address, among which the work is shared."""
    client: str = request.state.client
    return client


async def _client_left(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
