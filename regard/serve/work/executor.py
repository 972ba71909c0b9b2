"""Runs the work of requests in threads: a limited number, until their deadline or until the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request

from regard.serve.http.errors import ApiError, busy, client_gone, deadline_passed, shutting_down
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.work.jobs import RequestJob

T = TypeVar("T")
_END = object()


class RequestExecutor:
    """Runs blocking work in threads, while its client is served by the event loop."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._pool = ThreadPoolExecutor(limits.waiting, "request")
        self._jobs: set[RequestJob] = set()
        self.draining = False
        """Whether new work is rejected."""
        metrics.watch("regard_requests_in_work", "Requests that were taken on.", self.__len__)

    def __len__(self) -> int:
        return len(self._jobs)

    async def run(
        self, request: Request, work: Callable[[RequestJob], T], deadline_ms: int | None = None
    ) -> T:
        """The result of some work.

        Raises:
            ApiError: too many requests, the deadline passed, the client left, or the server shuts down.
            RegardError: what the work raises.
        """
        left = asyncio.ensure_future(_client_left(request))
        try:
            await asyncio.sleep(0)
            if left.done():
                raise client_gone()
            return await self._run(work, left, self._seconds(deadline_ms))
        finally:
            left.cancel()

    async def _run(self, work: Callable[[RequestJob], T], left: asyncio.Future[None], seconds: float) -> T:
        job = self._new_job()
        done = self._start(job, partial(work, job))
        both: set[asyncio.Future[Any]] = {done, left}
        try:
            finished, _ = await asyncio.wait(both, timeout=seconds, return_when="FIRST_COMPLETED")
            if done in finished:
                return done.result()
            reason = client_gone() if left in finished else deadline_passed(seconds)
            self._cancel(job, reason)
            raise reason
        finally:
            if not done.done():  # as when the server stops without waiting
                job.cancel(client_gone())

    async def stream(
        self, work: Callable[[RequestJob], Iterator[T]], deadline_ms: int | None = None
    ) -> AsyncGenerator[T]:
        """What some work yields, as it comes; closing the generator cancels the job.

        A slow reader does not slow the work down: pieces are buffered.
        """
        job, seconds = self._new_job(), self._seconds(deadline_ms)
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def forward() -> None:
            for piece in work(job):
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        done = self._start(job, forward)
        done.add_done_callback(lambda _: pieces.put_nowait(_END))
        until = loop.time() + seconds
        try:
            while (piece := await asyncio.wait_for(pieces.get(), until - loop.time())) is not _END:
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
                while self._jobs:
                    await asyncio.sleep(0.02)
        for job in list(self._jobs):
            job.cancel(shutting_down())

    def check(self) -> None:
        """Check that work can be taken on; for streams, before the response starts.

        Raises:
            ApiError: too many requests, or the server shuts down.
        """
        if self.draining:
            raise shutting_down()
        if len(self._jobs) >= self._limits.waiting:
            raise busy(f"{self._limits.waiting:,} requests are being processed. Retry in a moment.")

    def _new_job(self) -> RequestJob:
        self.check()
        job = RequestJob()
        self._jobs.add(job)
        return job

    def _start(self, job: RequestJob, work: Callable[[], T]) -> asyncio.Future[T]:
        done = asyncio.get_running_loop().run_in_executor(self._pool, work)

        def forget(future: asyncio.Future[T]) -> None:
            self._jobs.discard(job)
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


async def _client_left(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
