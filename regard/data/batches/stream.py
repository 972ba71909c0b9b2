"""The stream of batches: endless, shuffled by a seed, and resumable at any batch.

An epoch goes through the store in windows of a hundred batches or more. A window loads blocks of adjacent
examples from all over the store into memory, shuffles their examples, and packs them: a store larger than
memory is read in large pieces, and no list has an entry per example. A store that fits into one window is
shuffled as a whole. Batches of free size, for CPUs, have examples of similar length.

Which batches come, and in which order, depends on store, seed and budget alone, never on the number of
processes: each of several reads the same stream and takes its share of every batch (`Division`). They agree
on every step without communication, and what a step learns does not depend on how it is divided, apart from
rounding and the random numbers of dropout.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from regard.data.batches import BLOCK, Budget, Plan, deal, group_by_length, plan_batches
from regard.data.batches.examples import Batch
from regard.data.store import Store
from regard.errors import ConfigError, CorpusError

T = TypeVar("T")

BLOCK_TOKENS = 1 << 14
"""Approximate number of tokens in a block of adjacent examples."""
WINDOW_BATCHES = 128
"""Approximate number of batches in a window, within the limits below."""
WINDOW_TOKENS = (1 << 22, 1 << 26)
"""Approximate minimum and maximum number of tokens of a window on one side."""
POOL_BATCHES = 16
"""Batches of free size whose examples are sorted by length together. Attention on CPUs pads, and pads less if
lengths are similar: with the model of `benchmarks/train_step.py`, mixed lengths were 7% slower."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """A position between two batches of the stream."""

    epoch: int = 0
    window: int = 0
    """Windows of this epoch before it."""
    batch: int = 0
    """Batches of this window before it."""
    example: int = 0
    """Examples of this epoch before it."""


@dataclass(frozen=True, eq=False)
class BatchOrder:
    """The batches of all epochs in order, as indices of examples."""

    store: Store
    budget: Budget
    seed: int

    @cached_property
    def examples_per_batch(self) -> float:
        """Approximate number of examples in a batch."""
        return min(most / self._mean_length(side) for side, most in self.budget.limits.items())

    @cached_property
    def block(self) -> int:
        """Number of examples in a block."""
        return max(1, int(BLOCK_TOKENS / max(map(self._mean_length, self.budget.limits))))

    @cached_property
    def n_windows(self) -> int:
        """Number of windows in an epoch."""
        fewest, most = WINDOW_TOKENS
        longest = max(map(self._mean_length, self.budget.limits))
        window = min(most, max(fewest, WINDOW_BATCHES * self.examples_per_batch * longest))
        n_blocks = -(-len(self.store) // self.block)
        return max(1, min(n_blocks, round(len(self.store) * longest / window)))

    def _mean_length(self, side: int) -> float:
        return self.store.facts.sides[side].n_tokens / len(self.store) + self.budget.extra[side]

    def origin(self) -> dict[str, Any]:
        """Everything that determines the order, for JSON."""
        return {
            "data": self.store.facts.key,
            "examples": len(self.store),
            "seed": self.seed,
            "budget": list(self.budget.tokens),
            "extra tokens": list(self.budget.extra),
            "fixed size": self.budget.fixed,
            "examples a block": self.block,
            "windows": self.n_windows,
            "batches a pool": 0 if self.budget.fixed else POOL_BATCHES,
        }

    def ranges(self, epoch: int, window: int) -> list[tuple[int, int]]:
        """The blocks of one window, as ranges `(first, stop)` of examples."""
        n_blocks = -(-len(self.store) // self.block)
        first, stop = (n_blocks * i // self.n_windows for i in (window, window + 1))
        blocks = np.sort(_shuffle(n_blocks, self.seed, epoch, 0)[first:stop]) * self.block
        return [(start, min(start + self.block, len(self.store))) for start in blocks.tolist()]

    def window(self, epoch: int, window: int) -> tuple[Store, Plan]:
        """The examples of one window, and its batches."""
        part = self.store.part(self.ranges(epoch, window))
        order = _shuffle(len(part), self.seed, epoch, 1 + window)
        if self.budget.fixed:
            return part, plan_batches(part, order, self.budget)
        n_pools = max(1, round(len(order) / (POOL_BATCHES * self.examples_per_batch)))
        order = group_by_length(part, order, self.budget, n_pools)
        plan = plan_batches(part, order, self.budget)
        return part, plan.reordered(_shuffle(len(plan), self.seed, epoch, 1 + window, 0))

    def batches_from(self, start: Position) -> Iterator[tuple[Store, np.ndarray, Position]]:
        """Every batch from a position on: a part of the store, indices into it, the position after it."""
        position = start
        while True:
            epoch, window = position.epoch, position.window
            part, plan = self.window(epoch, window)
            following = (epoch, window + 1) if window + 1 < self.n_windows else (epoch + 1, 0)
            self.store.expect(self.ranges(*following))
            for i in range(position.batch, len(plan)):
                example = position.example + len(plan[i])
                if i + 1 < len(plan):
                    position = Position(epoch=epoch, window=window, batch=i + 1, example=example)
                else:
                    example = example if following[0] == epoch else 0
                    position = Position(epoch=following[0], window=following[1], example=example)
                yield part, plan[i], position

    @cached_property
    def batches_per_epoch(self) -> float:
        """Number of batches in an epoch; approximate if there are several windows."""
        _, plan = self.window(0, 0)
        return len(plan) * len(self.store) / len(plan.order)


def _shuffle(n: int, seed: int, *use: int) -> np.ndarray:
    """A permutation of the numbers below `n`, from a seed and its use, the same in every version of numpy."""
    random = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=use))
    return np.argsort(random.random_raw(n), kind="stable")


class BatchStream(Generic[T]):
    """An endless stream of the results of `make(store, indices)`; a thread prepares a few batches in advance.

    `make` gets a part of the store, and indices into that part. Close the stream, or use it in a `with`
    statement, to end the thread.
    """

    def __init__(
        self,
        store: Store,
        make: Callable[[Store, np.ndarray], T],
        *,
        budget: Budget,
        seed: int,
        state: Mapping[str, Any] | None = None,
        prefetch: int = 8,
    ) -> None:
        """Start at the beginning, or at the position of `state`; with `prefetch=0`, without a thread."""
        budget.check(store)
        self.order = BatchOrder(store, budget, seed)
        self.position = Position() if state is None else self._resumed(state)
        batches = self.order.batches_from(self.position)
        items = ((make(part, indices), after) for part, indices, after in batches)
        self._ahead = Prefetch(items, prefetch) if prefetch else None
        self._items = items if self._ahead is None else self._ahead

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        batch, self.position = next(self._items)
        return batch

    def __enter__(self) -> BatchStream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self) -> dict[str, Any]:
        """The state after the batches yielded so far, for JSON."""
        return {**asdict(self.position), "origin": self.order.origin()}

    @property
    def epochs(self) -> float:
        """Epochs completed, as a fraction."""
        return self.position.epoch + self.position.example / len(self.order.store)

    def close(self) -> None:
        """End the thread and the stream."""
        if self._ahead is not None:
            self._ahead.close()

    def _resumed(self, state: Mapping[str, Any]) -> Position:
        """The position of a state, which must be of the same order."""
        before, now = state["origin"], self.order.origin()
        changes = {name: (before.get(name), now[name]) for name in now if before.get(name) != now[name]}
        if "data" in changes or "examples" in changes:
            was, is_ = (f"{origin['examples']:,} examples, key {origin['data']}" for origin in (before, now))
            problem = f"the data has changed since the checkpoint: it was {was}; it is {is_}"
            raise CorpusError(problem, code="data_changed")
        if changes:
            problems = [f"{name} was {was}, and is {is_}" for name, (was, is_) in changes.items()]
            raise ConfigError(problems, code="setting_changed")
        return Position(**{name: state[name] for name in asdict(Position())})


class BatchMaker(Protocol):
    """What makes batches of examples: a `Lesson`."""

    def batch(self, store: Store, indices: np.ndarray, fill_to: Sequence[int | None] | None = None) -> Batch:
        """Examples as a batch, filled up to `fill_to` tokens on each side."""

    def n_targets(self, store: Store, indices: np.ndarray) -> int:
        """The number of targets of these examples."""


@dataclass(frozen=True, eq=False)
class StepBatches:
    """What one process does in one step."""

    store: Store
    indices: np.ndarray
    """The examples of the whole step, of all processes, to divide them again."""
    batches: Sequence[Batch]
    """This process's parts."""
    n_targets: int
    """Targets of the whole step, of all processes: what the mean is taken over."""
    wanted_parts: int
    """The number of parts that was wanted; a small share has fewer."""


@dataclass(kw_only=True)
class Division:
    """Divides the batch of a step: takes this process's share, in `n_parts` parts."""

    lesson: BatchMaker
    budget: Budget
    """Of a whole step, all processes together."""
    longest: tuple[int, ...]
    """Tokens of the longest example on each side."""
    n_parts: int = 1
    """Parts of a process's share; may grow while the stream runs."""
    rank: int = 0
    world_size: int = 1

    def __call__(self, store: Store, indices: np.ndarray) -> StepBatches:
        """This process's share of a step, in at most `n_parts` parts, and in at least one."""
        n_parts = self.n_parts
        shares = deal(store, indices, self.world_size)
        n_targets = self.lesson.n_targets(store, indices)
        # Sharded processes run their parts in step, so all have as many as the largest share needs.
        parts = deal(store, shares[self.rank], min(n_parts, max(map(len, shares))))
        sizes = self.sizes(n_parts)
        # A process without examples computes along with one that counts for nothing.
        batches = [
            self._batch(store, part, sizes) if len(part) else self._batch(store, indices[:1], sizes).idle()
            for part in parts
        ]
        return StepBatches(store, indices, batches, n_targets, n_parts)

    def sizes(self, n_parts: int) -> tuple[int | None, ...]:
        """Tokens that each part is filled up to, on each side; None for no filling."""
        if not self.budget.fixed:
            return tuple(None for _ in self.budget.tokens)
        pieces = n_parts * self.world_size
        # Shares differ by some sentences: room for two of the longest, above an even share, suffices.
        slack = [0 if pieces == 1 else 2 * (longest + 1) for longest in self.longest]
        shares = [(most or 0) / pieces + more for most, more in zip(self.budget.tokens, slack, strict=True)]
        return tuple(-(-int(np.ceil(share)) // BLOCK) * BLOCK for share in shares)

    def _batch(self, store: Store, indices: np.ndarray, sizes: tuple[int | None, ...]) -> Batch:
        if not self.budget.fixed:
            return self.lesson.batch(store, indices)
        extra = self.budget.extra
        lengths = [
            int(store.lengths(side, indices).sum()) + extra[side] * len(indices) for side in range(len(sizes))
        ]
        # A part that is too large is compiled for its own size: slow once, but right.
        fill = [max(size or 0, -(-(n + 1) // BLOCK) * BLOCK) for size, n in zip(sizes, lengths, strict=True)]
        return self.lesson.batch(store, indices, fill)


class Prefetch(Generic[T]):
    """An iterator whose items a thread prepares in advance, at most `size` of them.

    An error in the thread is raised in place of the item.
    """

    def __init__(self, items: Iterator[T], size: int) -> None:
        self._ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(size)
        self._failure: BaseException | None = None
        stop = threading.Event()
        # The thread references the queue but not this object, so that a stream that is not closed ends, too.
        thread = threading.Thread(target=_fill, args=(items, self._ready, stop), name="prefetch", daemon=True)
        thread.start()
        self._end = weakref.finalize(self, _end, thread, stop)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        assert self._end.alive, "the stream is closed"
        if self._failure is None:
            item, self._failure = self._ready.get()
        if self._failure is not None:
            raise self._failure
        return item  # type: ignore[return-value]

    def close(self) -> None:
        """End the thread and wait for it."""
        self._end()


def _fill(
    items: Iterator[T], ready: queue.Queue[tuple[T | None, BaseException | None]], stop: threading.Event
) -> None:
    def put(item: T | None, error: BaseException | None) -> None:
        while not stop.is_set():
            try:
                ready.put((item, error), timeout=0.1)
                return
            except queue.Full:
                continue

    try:
        for item in items:
            put(item, None)
            if stop.is_set():
                return
        put(None, StopIteration())
    except BaseException as error:
        put(None, error)


def _end(thread: threading.Thread, stop: threading.Event) -> None:
    stop.set()
    if thread is not threading.current_thread():
        thread.join()
