"""One scheduler a model: what many clients ask at once is run in batches, on all the lanes of its engine.

A lane that is free takes what waits at once, and no more than its engine likes as one batch; where other
lanes are free too, no more than its share. While others are at work, a batch that is not full waits a moment
for more: those who were just answered ask again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from regard.engine.engines.protocol import Engines
from regard.serve.http.errors import draining
from regard.serve.work.job import Job, Parts
from regard.serve.work.tasks import Task
from regard.serve.work.waiting import Item, Waiting

LINGER = 0.004
"""Seconds that a batch which is not full waits for more, while other lanes are at work."""


class Ran(NamedTuple):
    """What is told of a batch."""

    waited: list[float]
    """Seconds that each of its tasks waited."""
    tokens: int
    cells: int
    """Tokens with padding."""


class Scheduler:
    """Runs the tasks of many jobs."""

    def __init__(self, engines: Engines, hear: Callable[[Ran], None] = lambda _: None) -> None:
        """Start the lanes; the most wanted engine is loaded first.

        Args:
            engines: what runs.
            hear: is told of every batch.
        """
        self._engines, self._hear = engines, hear
        self._room = engines.first.batch_capacity
        self._waiting = Waiting()
        self._busy, self._taken, self._closed = 0, 0.0, False
        self._change = threading.Condition()
        lanes = engines.first.lanes
        self._lanes = [threading.Thread(target=self._run, daemon=True, name="lane") for _ in range(lanes)]
        for lane in self._lanes:
            lane.start()

    def submit(self, job: Job, tasks: Sequence[Task]) -> Parts:
        """Let some tasks of a job wait for a lane.

        Raises:
            Refusal: the job is over, or the scheduler closed.
        """
        parts = job.expect(len(tasks))
        with self._change:
            if self._closed:
                raise draining()
            self._waiting.put(job, tasks, parts, time.monotonic())
            self._change.notify_all()
        return parts

    def __len__(self) -> int:
        with self._change:
            return len(self._waiting)

    def wait_until_quiet(self, seconds: float) -> None:
        """Wait until nothing waits for a lane, and no longer than this."""
        with self._change:
            self._change.wait_for(lambda: self._closed or self._waiting.first() is None, seconds)

    def close(self) -> None:
        """Finish what waits, take nothing more, and stop the lanes."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        for lane in self._lanes:
            lane.join()

    # --- lanes ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        engines = self._engines.lane()
        while batch := self._next():
            try:
                self._answer(engines, batch)
            except Exception as error:  # a mistake of ours must not cost a lane, nor leave anybody waiting
                for item in batch:
                    item.parts.failed(error)
            finally:
                with self._change:
                    self._busy -= 1

    def _next(self) -> list[Item]:
        """The next batch; nothing once the scheduler is closed and all is done."""
        with self._change:
            while True:
                first = self._waiting.first()
                if first is None:
                    if self._closed:
                        return []
                    self._change.wait()
                    continue
                room = self._room(first.task.search)
                if (moment := self._moment(first, room)) > 0:
                    self._change.wait(moment)
                    continue
                if (free := len(self._lanes) - self._busy) > 1:
                    room = min(room, -(-self._waiting.tokens // free))
                batch = self._waiting.take(first, room)
                self._busy += 1
                self._taken = time.monotonic()
                self._change.notify_all()
                return batch

    def _moment(self, first: Item, room: int) -> float:
        """Seconds for which a batch should wait for more."""
        left_by_another_lane = first.arrived <= self._taken
        if not self._busy or left_by_another_lane or self._closed or self._waiting.tokens >= room:
            return 0.0
        return first.arrived + LINGER - time.monotonic()

    def _answer(self, engines: Engines, batch: list[Item]) -> None:
        started, lengths = time.monotonic(), [item.task.length for item in batch]
        self._hear(Ran([started - item.arrived for item in batch], sum(lengths), len(batch) * max(lengths)))
        try:
            results = batch[0].task.run(engines, [item.task for item in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0].parts.failed(error)
                return
            # Whoever is to blame, the others get their results.
            for item in batch:
                self._answer(engines, [item])
            return
        for item, result in zip(batch, results, strict=True):
            item.parts.arrived(item.place, result)
