"""Tasks that wait for a lane, and which of them go next, together.

Whoever came first goes first; but the later parts of a long job count as having come later, so that a
document does not stand in the way of a sentence. Nobody is overtaken for ever: each task's place is fixed
when it comes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import log2

from regard.serve.work.job import Job, Parts
from regard.serve.work.tasks import Task

SECONDS_A_TOKEN = 0.001
"""By how much each input token of a job puts the rest of the job back: a lane takes about so long for one."""


@dataclass(order=True, slots=True)
class Item:
    """A task in its place."""

    due: float
    number: int
    arrived: float = field(compare=False)
    task: Task = field(compare=False)
    job: Job = field(compare=False)
    parts: Parts = field(compare=False)
    place: int = field(compare=False)
    """Which of the parts it is."""


class Waiting:
    """The tasks, by what they have in common and by length."""

    def __init__(self) -> None:
        self._heaps: defaultdict[Hashable, dict[int, list[Item]]] = defaultdict(dict)
        self._count, self._left = 0, 0
        self.tokens = 0
        """Input tokens of all that wait."""

    def __len__(self) -> int:
        return self._count - self._left

    def put(self, job: Job, tasks: Sequence[Task], parts: Parts, now: float) -> None:
        """Let the tasks of a job wait."""
        for place, task in enumerate(tasks):
            due = now + SECONDS_A_TOKEN * job.tokens
            item = Item(due, self._count, now, task, job, parts, place)
            heappush(self._heaps[task.key].setdefault(_size(task.length), []), item)
            self._count += 1
            self.tokens += task.length
            job.tokens += task.length

    def first(self) -> Item | None:
        """The one that goes next; None where nobody waits."""
        return min(self._heads(), default=None)

    def take(self, first: Item, room: int) -> list[Item]:
        """That one, and others of its kind, those of like length first, as many as there is room for."""
        heaps = self._heaps[first.task.key]
        size, longest = _size(first.task.length), 0
        batch: list[Item] = []
        for near in sorted(heaps, key=lambda other: (abs(other - size), -other)):
            while (head := self._head(heaps, near)) is not None:
                longest = max(longest, head.task.length)
                if batch and (len(batch) + 1) * longest > room:
                    return batch
                batch.append(self._pop(heaps[near]))
        return batch

    def _heads(self) -> Iterator[Item]:
        for key, heaps in list(self._heaps.items()):
            for size in list(heaps):
                if (head := self._head(heaps, size)) is not None:
                    yield head
            if not heaps:
                del self._heaps[key]

    def _head(self, heaps: dict[int, list[Item]], size: int) -> Item | None:
        """The first of a heap that is still wanted; those of jobs that are over are dropped on the way."""
        heap = heaps.get(size, [])
        while heap and heap[0].job.over is not None:
            self._pop(heap)
        if not heap:
            heaps.pop(size, None)
            return None
        return heap[0]

    def _pop(self, heap: list[Item]) -> Item:
        item = heappop(heap)
        self._left += 1
        self.tokens -= item.task.length
        return item


def _size(length: int) -> int:
    """Equal for like lengths: four sizes for each doubling."""
    return round(4 * log2(max(8, length)))
