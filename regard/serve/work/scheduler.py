"""The scheduler of a model: runs the work items of many jobs in batches, on several lanes (threads).

A free lane takes what is queued, at most one full batch; if other lanes are free too, at most its share.
While other lanes are busy, a batch that is not full waits a moment for more: clients that were just answered
often send the next request.

Clients share the lanes by cost, not by requests: next is the client whose items have cost least so far,
counted from when it began to wait. Its items run in the order of arrival, but the later items of a long job
count as having arrived later, so that a document does not block a sentence. An item's place never changes, so
none starves.

An item that is long and wide can occupy a lane for seconds. While all lanes are busy, the express lane takes
short items in small batches, one thread more than there are cores, which the system prefers to the lanes.
Clients that no lane serves go first there, so that one with thousands of short items does not fill it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from heapq import heappop, heappush
from math import inf, log2
from typing import Any, Literal, NamedTuple, Protocol

from regard.host import step_back
from regard.serve.http.errors import shutting_down
from regard.serve.work.jobs import ItemResults, RequestJob

LINGER = 0.004
"""Seconds that a batch which is not full waits for more, while other lanes are busy."""
SHORT_S = 0.1
"""Cost of an item up to which the express lane takes it."""
EXPRESS_SHARE = 4
"""A batch of the express lane is this many times smaller, so that the next one soon begins …"""
SERVED_SHARE = 32
"""… and this many times, if its clients are served by lanes, too."""
IDLE_CLIENTS = 1000
"""Clients without items whose costs are remembered: the last ones."""


class Pause(Enum):
    """The result of an item that has to run again to go on."""

    PAUSED = 0


PAUSED = Pause.PAUSED
Paused = Literal[Pause.PAUSED]


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

    @property
    def cost(self) -> float:
        """Estimated seconds that a lane needs for it."""

    def run(self, lane: Any, batch: Sequence[Any]) -> Sequence[Any]:
        """The results of a batch of items with this key, in order; `lane` is the state of the lane.

        `PAUSED` instead of a result: the item is to run again, after others.
        """


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


class ClientItems:
    """The queued items of one client, by key and length."""

    def __init__(self, spent: float) -> None:
        self.spent = spent
        """Cost of its items that have run, on a clock that all clients share."""
        self.heaps: defaultdict[Hashable, dict[int, list[QueuedItem]]] = defaultdict(dict)

    def first(self, most_cost: float) -> QueuedItem | None:
        """The item that is due next, among those that cost at most so much."""
        heaps = (heap for by_size in self.heaps.values() for heap in by_size.values())
        return min((heap[0] for heap in heaps if heap[0].item.cost <= most_cost), default=None)


class WorkQueue:
    """Queued items, by client, key and length."""

    def __init__(self) -> None:
        self._clients: dict[str, ClientItems] = {}
        self._spent: dict[str, float] = {}
        """What clients without items have spent."""
        self._now = 0.0
        """What the client whose turn was last had spent by then: newcomers begin there."""
        self._n_added, self._n_taken = 0, 0
        self.tokens = 0
        """Input tokens of all queued items."""

    def __len__(self) -> int:
        return self._n_added - self._n_taken

    def put(self, job: RequestJob, items: Sequence[WorkItem], results: ItemResults, now: float) -> None:
        """Add the items of a job."""
        for place, item in enumerate(items):
            self.put_back(QueuedItem(now + job.cost, self._n_added, now, item, job, results, place))
            job.cost += item.cost

    def put_back(self, queued: QueuedItem) -> None:
        """Add an item, perhaps one that has paused."""
        client = queued.job.client
        if client not in self._clients:
            self._clients[client] = ClientItems(max(self._now, self._spent.pop(client, 0.0)))
        heaps = self._clients[client].heaps[queued.item.key]
        heappush(heaps.setdefault(_size(queued.item.length), []), queued)
        self._n_added += 1
        self.tokens += queued.item.length

    def first(self, most_cost: float = inf, without: Collection[str] = ()) -> QueuedItem | None:
        """The item that is due next, among those that cost at most so much; None if there is none.

        The items of clients in `without` do not count.
        """
        self._drop_cancelled()
        clients = [client for name, client in self._clients.items() if name not in without]
        for client in sorted(clients, key=lambda each: each.spent):
            if (found := client.first(most_cost)) is not None:
                return found
        return None

    def take(
        self,
        first: QueuedItem,
        capacity: float,
        most_cost: float = inf,
        without: Collection[str] = (),
    ) -> list[QueuedItem]:
        """A batch of at most `capacity` tokens: this item, and others with its key, similar lengths first."""
        key, size, longest = first.item.key, _size(first.item.length), 0
        self._now = self._clients[first.job.client].spent
        batch: list[QueuedItem] = []
        sizes = {other for client in self._clients.values() for other in client.heaps.get(key, ())}
        for near in sorted(sizes, key=lambda other: (abs(other - size), -other)):
            while (owner := self._next_client(key, near, most_cost, without)) is not None:
                head = self._clients[owner].heaps[key][near][0]
                longest = max(longest, head.item.length)
                if batch and (len(batch) + 1) * longest > capacity:
                    return batch
                batch.append(self._pop(owner, key, near))
                self._charge(owner, head.item.cost)
        return batch

    def _next_client(
        self, key: Hashable, size: int, most_cost: float, without: Collection[str]
    ) -> str | None:
        """The client that has spent least, among those with an item of this key and size."""
        waiting = [
            (client.spent, heap[0], name)
            for name, client in self._clients.items()
            if name not in without
            and (heap := client.heaps.get(key, {}).get(size))
            and heap[0].item.cost <= most_cost
        ]
        return min(waiting)[2] if waiting else None

    def _charge(self, name: str, cost: float) -> None:
        """Charge a client; one without further items is remembered."""
        client = self._clients[name]
        client.spent += cost
        if not client.heaps:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._spent.pop(name, None)
        self._spent[name] = self._clients.pop(name).spent
        if len(self._spent) > IDLE_CLIENTS:
            del self._spent[next(iter(self._spent))]

    def _drop_cancelled(self) -> None:
        """Drop items of cancelled jobs that are due next in their heap."""
        for name, client in list(self._clients.items()):
            for key, heaps in list(client.heaps.items()):
                for size in list(heaps):
                    while heaps.get(size) and heaps[size][0].job.cancelled is not None:
                        self._pop(name, key, size)
            if not client.heaps:
                self._forget(name)

    def _pop(self, name: str, key: Hashable, size: int) -> QueuedItem:
        heaps = self._clients[name].heaps
        queued = heappop(heaps[key][size])
        if not heaps[key][size]:
            del heaps[key][size]
        if not heaps[key]:
            del heaps[key]
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
        open_express: Callable[[], Any] = lambda: None,
    ) -> None:
        """Start the lanes.

        Args:
            n_lanes: number of batches that run side by side.
            open_lane: makes the state of a lane, such as its engines; called in the lane's thread.
            on_batch: is called before every batch.
            open_express: the same for the express lane; None if there is to be none.
        """
        self._open_lane, self._on_batch = open_lane, on_batch
        self._queue = WorkQueue()
        self._n_busy, self._last_taken, self._closed = 0, 0.0, False
        self._served: Counter[str] = Counter()
        """Clients whose items lanes run, by number of batches."""
        self._changed = threading.Condition()
        self._n_lanes = n_lanes
        runs: list[Callable[[], None]] = [*[self._run] * n_lanes, partial(self._run_express, open_express)]
        self._lanes = [threading.Thread(target=run, daemon=True, name="lane") for run in runs]
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
        results = self.submit(job, items)
        with job.waiting():
            return list(results.all.result())

    def __len__(self) -> int:
        with self._changed:
            return len(self._queue)

    def is_contended(self) -> bool:
        """Whether an item waits for a lane."""
        with self._changed:
            return self._queue.first() is not None

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until the queue is empty, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._queue.first() is None, seconds)

    def close(self, seconds: float | None = None) -> bool:
        """Finish the queue, accept nothing more, and stop the lanes.

        Returns whether all lanes stopped within some seconds; by default it waits for them.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        until = None if seconds is None else time.monotonic() + seconds
        for lane in self._lanes:
            lane.join(None if until is None else max(0.0, until - time.monotonic()))
        return not any(lane.is_alive() for lane in self._lanes)

    def _run(self) -> None:
        step_back()
        lane = self._open_lane()
        while batch := self._next_batch():
            self._run_safely(lane, batch)
            with self._changed:
                self._n_busy -= 1
                self._served -= Counter({queued.job.client for queued in batch})

    def _run_express(self, open_express: Callable[[], Any]) -> None:
        if (lane := open_express()) is None:
            return
        while batch := self._next_express_batch():
            self._run_safely(lane, batch)

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
                if (n_free := self._n_lanes - self._n_busy) > 1:
                    capacity = min(capacity, -(-self._queue.tokens // n_free))
                batch = self._queue.take(first, capacity)
                self._n_busy += 1
                self._served += Counter({queued.job.client for queued in batch})
                self._last_taken = time.monotonic()
                self._changed.notify_all()
                return batch

    def _next_express_batch(self) -> list[QueuedItem]:
        """The next batch of short items while all lanes are busy; empty once the scheduler is closed."""
        with self._changed:
            while not self._closed:
                for without, share in ((self._served, EXPRESS_SHARE), ((), SERVED_SHARE)):
                    is_needed = self._n_busy == self._n_lanes
                    if is_needed and (first := self._queue.first(SHORT_S, without)) is not None:
                        return self._queue.take(first, first.item.capacity / share, SHORT_S, without)
                self._changed.wait()
            return []

    def _seconds_to_linger(self, first: QueuedItem, capacity: int) -> float:
        """How long a batch should still wait for more items."""
        left_by_another_lane = first.arrived <= self._last_taken
        if not self._n_busy or left_by_another_lane or self._closed or self._queue.tokens >= capacity:
            return 0.0
        return first.arrived + LINGER - time.monotonic()

    def _run_safely(self, lane: Any, batch: list[QueuedItem]) -> None:
        """Run a batch; a bug must neither stop the lane nor leave clients waiting."""
        try:
            self._run_batch(lane, batch)
        except Exception as error:
            for queued in batch:
                queued.results.failed(error)

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
            if result is PAUSED:
                self._put_back(queued)
            else:
                queued.results.arrived(queued.place, result)

    def _put_back(self, queued: QueuedItem) -> None:
        """Queue an item that has paused; it goes on after those that wait now."""
        now = time.monotonic()
        with self._changed:
            self._queue.put_back(replace(queued, due=now, arrived=now))
            self._changed.notify_all()
