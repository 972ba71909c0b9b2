"""Greedy search: the likeliest token, again and again, until each row has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

State = TypeVar("State")
Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""One more token in every row: log-probabilities of the next, (R, V), and the state after it."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An output, finished or cut off at the limit."""

    ids: tuple[int, ...]
    """Without the token that starts it and the one that ends it."""
    log_prob: float
    """Of all its tokens together, the one that ends it included."""
    finished: bool
    """Whether it ended by itself."""


def greedy(
    step: Step[State],
    state: State,
    n_rows: int,
    *,
    bos: int,
    eos: int,
    limits: list[int],
    keep: Callable[[State, Tensor], State] | None = None,
    device: torch.device | str = "cpu",
) -> list[Hypothesis]:
    """The likeliest token at each step, row by row.

    `limits` gives the most tokens of each row. With `keep(state, places)`, rows that have ended leave the
    batch, and the rest goes on without them.
    """
    ids: list[list[int]] = [[] for _ in range(n_rows)]
    scores, finished = [0.0] * n_rows, [False] * n_rows
    rows = list(range(n_rows))  # which row each place of the batch holds
    last_R = torch.full((n_rows,), bos, dtype=torch.int64, device=device)
    going = set(rows)
    while going:
        log_probs_RV, state = step(last_R, state)
        log_probs_R, last_R = log_probs_RV.max(dim=-1)
        for row, log_prob, token in zip(rows, log_probs_R.tolist(), last_R.tolist(), strict=True):
            if row not in going:
                continue
            scores[row] += log_prob
            finished[row] = token == eos
            if not finished[row]:
                ids[row].append(token)
            if finished[row] or len(ids[row]) >= limits[row]:
                going.remove(row)
        if keep is not None and 0 < len(going) < len(rows):
            places = [place for place, row in enumerate(rows) if row in going]
            kept = torch.tensor(places, device=device)
            state, last_R, rows = keep(state, kept), last_R.index_select(0, kept), [rows[i] for i in places]
    found = zip(ids, scores, finished, strict=True)
    return [Hypothesis(tuple(row), score, ended) for row, score, ended in found]
