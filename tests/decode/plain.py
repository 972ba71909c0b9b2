"""Beam search from its definition, one source at a time, with lists: the oracle of the fast one."""

from __future__ import annotations

import math
from typing import NamedTuple

from tests.decode.rigged import EOS, Rig


class Found(NamedTuple):
    score: float
    ids: tuple[int, ...]
    finished: bool


def penalised(log_prob: float, n_tokens: int, alpha: float) -> float:
    return log_prob / ((5 + n_tokens) / 6) ** alpha


def beam(
    rig: Rig,
    source: int,
    limit: int,
    width: int,
    alpha: float,
    *,
    prefix: tuple[int, ...] = (),
    min_length: int = 0,
    patience: float | None = None,
) -> list[Found]:
    """All that ends on the way to the limit, the best first: without a patience it never stops early."""
    live, ended = [(0.0, ())], []
    for t in range(limit):
        candidates = []
        for log_prob, ids in live:
            for token, more in enumerate(rig(source, ids)):
                forced = t < len(prefix) and token != prefix[t]
                if not forced and not (token == EOS and t < min_length) and more > -math.inf:
                    candidates.append((log_prob + more, (*ids, token)))
        candidates.sort(key=lambda candidate: -candidate[0])
        for log_prob, ids in candidates[:width]:
            if ids[-1] == EOS or t + 1 == limit:
                score = penalised(log_prob, len(ids), alpha)
                finished = ids[-1] == EOS
                ended.append(Found(score, ids[:-1] if finished else ids, finished))
        live = [candidate for candidate in candidates[: 2 * width] if candidate[1][-1] != EOS][:width]
        if patience is not None and len(ended) >= round(patience * width):
            break
    return sorted(ended, key=lambda one: -one.score)


def everything(rig: Rig, source: int, limit: int, n_tokens: int, alpha: float) -> list[Found]:
    """Every output there is, the best first."""
    ended, live = [], [(0.0, ())]
    for t in range(limit):
        grown = [
            (log_prob + more, (*ids, token))
            for log_prob, ids in live
            for token, more in enumerate(rig(source, ids)[:n_tokens])
        ]
        live = [(log_prob, ids) for log_prob, ids in grown if ids[-1] != EOS]
        ended += [
            Found(penalised(log_prob, len(ids), alpha), ids[:-1], True)
            for log_prob, ids in grown
            if ids[-1] == EOS
        ]
        if t + 1 == limit:
            ended += [Found(penalised(log_prob, len(ids), alpha), ids, False) for log_prob, ids in live]
    return sorted(ended, key=lambda one: -one.score)
