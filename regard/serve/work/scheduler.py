"""The scheduler of a model: runs the work items of many jobs in batches, on several lanes (threads).

A free lane takes what is queued, at most one full batch; if other lanes are free too, at most its share.
While other lanes are busy, a batch that is not full waits a moment for more: clients that were just answered
often send the next request.

Items run in the order of arrival, but the later items of a long job count as having arrived later, so that a
document does not block a sentence. An item's place never changes, so none starves.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import log2
from typing import Any, NamedTuple, Protocol

from regard.serve.http.errors import shutting_down
from regard.serve.work.jobs import ItemResults, RequestJob

LINGER = 0.004
"""Seconds that a batch which is not full waits for more, while other lanes are busy."""
SECONDS_PER_TOKEN = 0.001
"""Delay that each input token of a job adds to its later items: about the time that a lane needs for it."""


class WorkItem(Protocol):
    """A unit of work, such as one sentence."""

    @property
    def key(self) -> Hashable:
        """Items with equal keys may share a batch."""

    @property
    def length(self) -> int:
        """Number of tokens in a batch."""

    @property
    def capacity(self) -> int:
        """Maximum number of tokens in a batch of such items, padding included."""

    def run(self, lane: Any, batch: Sequence[Any]) -> Sequence[Any]:
        """The results of a batch of items with this key, in order; `lane` is the state of the lane."""


class BatchStats(NamedTuple):
    """Numbers of a batch, for metrics."""

    waited: list[float]
    """Seconds in the queue, per item."""
    tokens: int
    cells: int
    """Tokens and padding."""


@dataclass(order=True, slots=True)
class QueuedItem:
    """An item in the queue."""

    due: float
    number: int
    arrived: float = field(compare=False)
    item: WorkItem = field(compare=False)
    job: RequestJob = field(compare=False)
    results: ItemResults = field(compare=False)
    place: int = field(compare=False)
    """Its index in the results."""


class WorkQueue:
    """Queued items, by key and length."""

    def __init__(self) -> None:
        self._heaps: defaultdict[Hashable, dict[int, list[QueuedItem]]] = defaultdict(dict)
        self._n_added, self._n_taken = 0, 0
        self.tokens = 0
        """Input tokens of all queued items."""

    def __len__(self) -> int:
        return self._n_added - self._n_taken

    def put(self, job: RequestJob, items: Sequence[WorkItem], results: ItemResults, now: float) -> None:
        """Add the items of a job."""
        for place, item in enumerate(items):
            due = now + SECONDS_PER_TOKEN * job.tokens
            queued = QueuedItem(due, self._n_added, now, item, job, results, place)
            heappush(self._heaps[item.key].setdefault(_size(item.length), []), queued)
            self._n_added += 1
            self.tokens += item.length
            job.tokens += item.length

    def first(self) -> QueuedItem | None:
        """The item that is due next; None if the queue is empty."""
        return min(self._heads(), default=None)

    def take(self, first: QueuedItem, capacity: int) -> list[QueuedItem]:
        """A batch of at most `capacity` tokens: this item, and others with its key, similar lengths first."""
        heaps = self._heaps[first.item.key]
        size, longest = _size(first.item.length), 0
        batch: list[QueuedItem] = []
        for near in sorted(heaps, key=lambda other: (abs(other - size), -other)):
            while (head := self._head(heaps, near)) is not None:
                longest = max(longest, head.item.length)
                if batch and (len(batch) + 1) * longest > capacity:
                    return batch
                batch.append(self._pop(heaps[near]))
        return batch

    def _heads(self) -> Iterator[QueuedItem]:
        for key, heaps in list(self._heaps.items()):
            for size in list(heaps):
                if (head := self._head(heaps, size)) is not None:
                    yield head
            if not heaps:
                del self._heaps[key]

    def _head(self, heaps: dict[int, list[QueuedItem]], size: int) -> QueuedItem | None:
        """The first item of a heap; items of cancelled jobs are dropped."""
        heap = heaps.get(size, [])
        while heap and heap[0].job.cancelled is not None:
            self._pop(heap)
        if not heap:
            heaps.pop(size, None)
            return None
        return heap[0]

    def _pop(self, heap: list[QueuedItem]) -> QueuedItem:
        queued = heappop(heap)
        self._n_taken += 1
        self.tokens -= queued.item.length
        return queued


def _size(length: int) -> int:
    """A length class: four per doubling."""
    return round(4 * log2(max(8, length)))


class Scheduler:
    """Runs the work items of many jobs."""

    def __init__(
        self,
        n_lanes: int = 1,
        open_lane: Callable[[], Any] = lambda: None,
        on_batch: Callable[[BatchStats], None] = lambda _: None,
    ) -> None:
        """Start the lanes.

        Args:
            n_lanes: number of batches that run side by side.
            open_lane: makes the state of a lane, such as its engines; called in the lane's thread.
            on_batch: is called before every batch.
        """
        self._open_lane, self._on_batch = open_lane, on_batch
        self._queue = WorkQueue()
        self._n_busy, self._last_taken, self._closed = 0, 0.0, False
        self._changed = threading.Condition()
        self._lanes = [threading.Thread(target=self._run, daemon=True, name="lane") for _ in range(n_lanes)]
        for lane in self._lanes:
            lane.start()

    def submit(self, job: RequestJob, items: Sequence[WorkItem]) -> ItemResults:
        """Queue items of a job.

        Raises:
            ApiError: the job was cancelled, or the scheduler closed.
        """
        results = job.expect(len(items))
        with self._changed:
            if self._closed:
                raise shutting_down()
            self._queue.put(job, items, results, time.monotonic())
            self._changed.notify_all()
        return results

    def run(self, job: RequestJob, items: Sequence[WorkItem]) -> list[Any]:
        """Queue items of a job and wait for their results.

        Raises:
            ApiError: the job was cancelled, or the scheduler closed.
        """
        return list(self.submit(job, items).all.result())

    def __len__(self) -> int:
        with self._changed:
            return len(self._queue)

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until the queue is empty, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._queue.first() is None, seconds)

    def close(self) -> None:
        """Finish the queue, accept nothing more, and stop the lanes."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.join()

    def _run(self) -> None:
        lane = self._open_lane()
        while batch := self._next_batch():
            try:
                self._run_batch(lane, batch)
            except Exception as error:  # a bug must neither stop the lane nor leave clients waiting
                for queued in batch:
                    queued.results.failed(error)
            finally:
                with self._changed:
                    self._n_busy -= 1

    def _next_batch(self) -> list[QueuedItem]:
        """The next batch; empty once the scheduler is closed and the queue is empty."""
        with self._changed:
            while True:
                first = self._queue.first()
                if first is None:
                    if self._closed:
                        return []
                    self._changed.wait()
                    continue
                capacity = first.item.capacity
                if (seconds := self._seconds_to_linger(first, capacity)) > 0:
                    self._changed.wait(seconds)
                    continue
                if (n_free := len(self._lanes) - self._n_busy) > 1:
                    capacity = min(capacity, -(-self._queue.tokens // n_free))
                batch = self._queue.take(first, capacity)
                self._n_busy += 1
                self._last_taken = time.monotonic()
                self._changed.notify_all()
                return batch

    def _seconds_to_linger(self, first: QueuedItem, capacity: int) -> float:
        """How long a batch should still wait for more items."""
        left_by_another_lane = first.arrived <= self._last_taken
        if not self._n_busy or left_by_another_lane or self._closed or self._queue.tokens >= capacity:
            return 0.0
        return first.arrived + LINGER - time.monotonic()

    def _run_batch(self, lane: Any, batch: list[QueuedItem]) -> None:
        started, lengths = time.monotonic(), [queued.item.length for queued in batch]
        waited = [started - queued.arrived for queued in batch]
        self._on_batch(BatchStats(waited, sum(lengths), len(batch) * max(lengths)))
        try:
            results = batch[0].item.run(lane, [queued.item for queued in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0].results.failed(error)
                return
            # One item caused it: run them one by one, so that the others get their results.
            for queued in batch:
                self._run_batch(lane, [queued])
            return
        for queued, result in zip(batch, results, strict=True):
            queued.results.arrived(queued.place, result)
