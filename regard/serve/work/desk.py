"""Where requests are taken on: only so many, each until its deadline, and no longer than its client stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request

from regard.serve.http.errors import Refusal, busy, draining, gone, too_late
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.work.job import Job

T = TypeVar("T")
_END = object()


class Desk:
    """Does work in threads on behalf of clients, who wait for it in the event loop."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._pool = ThreadPoolExecutor(limits.waiting, "request")
        self._jobs: set[Job] = set()
        self.draining = False
        """Whether nothing more is taken on."""
        metrics.watch("regard_requests_in_work", "Requests that were taken on.", self.__len__)

    def __len__(self) -> int:
        return len(self._jobs)

    async def do(self, request: Request, work: Callable[[Job], T], deadline_ms: int | None = None) -> T:
        """What comes of some work.

        Raises:
            Refusal: too many are waiting, the deadline has passed, the client has left, or the server closes.
            RegardError: what the work raises.
        """
        left = asyncio.ensure_future(_left(request))
        try:
            await asyncio.sleep(0)
            if left.done():  # before it was taken on
                raise gone()
            return await self._done(work, left, self._seconds(deadline_ms))
        finally:
            left.cancel()

    async def _done(self, work: Callable[[Job], T], left: asyncio.Future[None], seconds: float) -> T:
        """What comes of some work, unless its time is up or the client gone before."""
        job = self._take()
        done = self._start(job, partial(work, job))
        both: set[asyncio.Future[Any]] = {done, left}
        try:
            finished, _ = await asyncio.wait(both, timeout=seconds, return_when="FIRST_COMPLETED")
            if done in finished:
                return done.result()
            why = gone() if left in finished else too_late(seconds)
            self._give_up(job, why)
            raise why
        finally:
            if not done.done():  # as when the server ends without waiting
                job.end(gone())

    async def stream(
        self, work: Callable[[Job], Iterator[T]], deadline_ms: int | None = None
    ) -> AsyncGenerator[T]:
        """What some work yields, as it comes. Whoever stops listening ends the job.

        What is yielded waits for a slow reader, and never the other way round.
        """
        job, seconds = self._take(), self._seconds(deadline_ms)
        loop, heard = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def listen() -> None:
            for each in work(job):
                loop.call_soon_threadsafe(heard.put_nowait, each)

        done = self._start(job, listen)
        done.add_done_callback(lambda _: heard.put_nowait(_END))
        until = loop.time() + seconds
        try:
            while (each := await asyncio.wait_for(heard.get(), until - loop.time())) is not _END:
                yield each
            done.result()
        except TimeoutError:
            raise too_late(seconds) from None
        finally:
            if not done.done():
                self._give_up(job, gone())

    async def drain(self) -> None:
        """Take nothing more on, and wait for what was; what is not done in time is refused in words."""
        self.draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.drain_s):
                while self._jobs:
                    await asyncio.sleep(0.02)
        for job in list(self._jobs):
            job.end(draining())

    def check(self) -> None:
        """Refuse what cannot be taken on now: for those who stream, before their answer has begun.

        Raises:
            Refusal: too many are waiting, or the server closes.
        """
        if self.draining:
            raise draining()
        if len(self._jobs) >= self._limits.waiting:
            raise busy(f"{self._limits.waiting:,} requests are waiting already. Ask again in a moment.")

    def _take(self) -> Job:
        self.check()
        job = Job()
        self._jobs.add(job)
        return job

    def _start(self, job: Job, work: Callable[[], T]) -> asyncio.Future[T]:
        done = asyncio.get_running_loop().run_in_executor(self._pool, work)

        def put_away(future: asyncio.Future[T]) -> None:
            self._jobs.discard(job)
            if not future.cancelled():
                future.exception()  # of a job that was given up nobody else asks

        done.add_done_callback(put_away)
        return done

    def _give_up(self, job: Job, why: Refusal) -> None:
        self._metrics.cancelled(why.code)
        job.end(why)

    def _seconds(self, deadline_ms: int | None) -> float:
        most = self._limits.deadline_s
        return most if deadline_ms is None else min(most, deadline_ms / 1000)


async def _left(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
