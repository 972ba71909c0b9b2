"""Workers with an engine each. Who dies is replaced, and its shard is done again by another.

A worker has one shard at a time, so that it is known which one it died of.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from regard.engine.line_by_line import LineByLine, Written
from regard.errors import ConfigError, RegardError
from regard.scale.order import Order
from regard.scale.shards import Shard, Ticket
from regard.scale.shipping import Parcel, unpacked
from regard.text.files.lines import InputLine
from regard.version import __version__

TRIES = 3
"""Workers that may die of one shard, or in a row before they begin, until it is given up."""


class Worker:
    """One process of the cluster, with an engine of its own."""

    def __init__(self, order: Order, parcels: Sequence[Parcel]) -> None:
        self._order, self._parcels = order, parcels
        self._writer: LineByLine | None = None

    def begin(self) -> str:
        """Say which version this is."""
        return __version__

    def write(self, lines: Sequence[InputLine]) -> list[Written]:
        """What becomes of each line."""
        if self._writer is None:
            self._writer = self._order.writer([unpacked(parcel) for parcel in self._parcels])
        return self._writer(lines)


class Crew:
    """Workers who do shards."""

    def __init__(self, order: Order, parcels: Sequence[Parcel], n_workers: int) -> None:
        self._order, self._parcels, self._n_workers = order, parcels, n_workers
        self._busy: dict[Any, tuple[Any, Shard | None]] = {}
        """What is awaited: of which worker, and which shard; None while it begins."""
        self._deaths: Counter[str] = Counter()
        self._failed_starts = 0
        self.lost: list[Ticket] = []
        """Shards that were given up."""

    def done(self, shards: Iterator[Shard]) -> Iterator[tuple[Shard, list[Written]]]:
        """What becomes of each shard, in the order in which they are done.

        Raises:
            RegardError: what is asked for cannot be done, or workers cannot begin.
        """
        idle = deque[Any]()
        waiting = deque(islice(shards, self._n_workers))
        for _ in waiting:
            self._hire()
        try:
            while self._busy:
                (ended,), _ = ray.wait(list(self._busy), num_returns=1)
                worker, shard = self._busy.pop(ended)
                result = self._result(ended, worker, shard)
                if result is not None:
                    idle.append(worker)
                elif shard is not None and shard.ticket not in self.lost:
                    waiting.appendleft(shard)
                waiting.extend(islice(shards, not waiting))
                if result is None and waiting:
                    self._hire()
                while idle and waiting:
                    self._give(idle.popleft(), waiting.popleft())
                    waiting.extend(islice(shards, not waiting))
                if result is not None and shard is not None:
                    yield shard, result
        finally:
            for worker in [*idle, *(worker for worker, _ in self._busy.values())]:
                ray.kill(worker)

    def _hire(self) -> None:
        wants = {"num_gpus": 1} if self._order.device == "cuda" else {"num_cpus": self._order.threads}
        worker: Any = ray.remote(Worker).options(**wants).remote(self._order, self._parcels)
        self._busy[worker.begin.remote()] = worker, None

    def _give(self, worker: Any, shard: Shard) -> None:
        self._busy[worker.write.remote(shard.lines)] = worker, shard

    def _result(self, ended: Any, worker: Any, shard: Shard | None) -> list[Written] | None:
        """What a worker brings, after whose death there is nothing."""
        try:
            brought = ray.get(ended)
        except RayTaskError as error:
            if isinstance(error.cause, RegardError):
                raise error.cause from None
            raise
        except RayError as error:
            ray.kill(worker)  # Ray may only have lost sight of it
            self._mourn(shard, str(error))
            return None
        if shard is not None:
            return list(brought)
        self._failed_starts = 0
        if brought != __version__:
            raise ConfigError(f"a machine of the cluster has regard {brought}, and this is {__version__}")
        return []

    def _mourn(self, shard: Shard | None, why: str) -> None:
        if shard is None:
            self._failed_starts += 1
            if self._failed_starts >= TRIES:
                needed = f"regard {__version__} must be installed on every machine of the cluster"
                raise ConfigError(f"{TRIES} workers ended before they began; {needed}. Ray says: {why}")
            return
        self._deaths[shard.ticket.name] += 1
        if self._deaths[shard.ticket.name] >= TRIES:
            self.lost.append(shard.ticket)
