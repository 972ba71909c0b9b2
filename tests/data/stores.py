"""Token stores for tests."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from regard.data.store import Example, Store
from regard.data.store.writing import write_store

SIDES = ("inputs", "outputs")
PAIRS = [([5, 6, 7], [8, 9]), ([], [10]), ([4], [3, 2, 1, 0]), ([12], [])]


def as_example(lists: Iterable[Sequence[int]]) -> Example:
    return tuple(np.array(one, dtype=np.int64) for one in lists)


def write(folder: Path, examples: Iterable[Sequence[Sequence[int]]] = PAIRS, **other) -> Store:
    options = {"sides": SIDES, "key": "a key", "vocab_size": 13} | other
    return write_store(folder, map(as_example, examples), **options)


def as_lists(store: Store) -> list[tuple[list[int], ...]]:
    return [tuple(side.tolist() for side in store[i]) for i in range(len(store))]


def numbered(folder: Path, n_examples: int, *, longest: int = 7, seed: int = 0) -> Store:
    """Pairs of random length whose ids tell which example it is; none is empty."""
    lengths = np.random.default_rng(seed).integers(1, longest + 1, (n_examples, 2))
    examples = ([[i] * a, [i] * b] for i, (a, b) in enumerate(lengths.tolist()))
    return write(folder, examples, vocab_size=n_examples)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
