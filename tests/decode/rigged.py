"""Steps that need no model: what comes next is a function of the source and the tokens so far."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from regard.decode.constraints import Constraints

BOS, EOS = 1, 0
Rig = Callable[[int, tuple[int, ...]], list[float]]
"""`rig(source, ids)`: log-probabilities of what comes next."""


@dataclass(frozen=True)
class Rows:
    """The state: source and tokens of each row; None before it has started."""

    rows: tuple[tuple[int, tuple[int, ...] | None], ...]
    beams: int = 1

    def reorder(self, rows_R):
        taken = tuple(self.rows[row] for row in rows_R.tolist())
        assert [source for source, _ in taken] == [source for source, _ in self.rows], "rows changed source"
        return Rows(taken, self.beams)

    def keep(self, sources_B):
        rows = [source * self.beams + beam for source in sources_B.tolist() for beam in range(self.beams)]
        return Rows(tuple(self.rows[row] for row in rows), self.beams)


def start(n_sources: int, beams: int = 1) -> Rows:
    return Rows(tuple((source, None) for source in range(n_sources) for _ in range(beams)), beams)


def stepping(rig: Rig):
    """The step of a rig; the token that starts a row is not among its tokens."""

    def step(last_R, state: Rows):
        pairs = zip(state.rows, last_R.tolist(), strict=True)
        grown = [(source, None if ids is None else (*ids, token)) for (source, ids), token in pairs]
        rows = tuple((source, () if ids is None else ids) for source, ids in grown)
        return torch.tensor([rig(*row) for row in rows], dtype=torch.float64), Rows(rows, state.beams)

    return step


def random_rig(seed: int, n_tokens: int, sharpness: float = 2.0) -> Rig:
    """Another distribution after every history; the same each time it is asked."""

    def rig(source: int, ids: tuple[int, ...]) -> list[float]:
        told = hashlib.blake2b(repr((seed, source, ids)).encode(), digest_size=8).digest()
        logits = sharpness * np.random.default_rng(int.from_bytes(told, "big")).normal(size=n_tokens)
        return (logits - np.logaddexp.reduce(logits)).tolist()

    return rig


def table_rig(table: dict[int, list[float]]) -> Rig:
    """Probabilities by the token before, the one that starts an output included."""
    return lambda _source, ids: [log(p) for p in table[ids[-1] if ids else BOS]]


def log(p: float) -> float:
    return math.log(p) if p else -math.inf


def constraints(*limits: int, **others) -> Constraints:
    return Constraints(bos=BOS, eos=EOS, limits=limits, **others)
