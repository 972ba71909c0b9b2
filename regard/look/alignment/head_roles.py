"""What heads do, measured over some texts: how much of a head's attention goes where a role would send it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from regard.errors import RequestError
from regard.look.trace.blocks import Kind, layers_of

if TYPE_CHECKING:
    from regard.look.trace.data import TraceData

Role = Literal["itself", "previous", "next", "first", "last", "special", "focus"]
"""Attention to the token itself, the one before or after it, the first or the last one that it may look at,
to special tokens; and focus: 1 where all goes to one token, 0 where it is spread evenly."""

ROLES: tuple[Role, ...] = get_args(Role)


def head_roles(traces: Sequence[TraceData], kind: Kind) -> dict[Role, np.ndarray]:
    """For each role (layers, heads): the mean share of attention, over all tokens of all texts that have one.

    Raises:
        RequestError: there is no trace to measure.
    """
    if not traces:
        raise RequestError("there is no trace to measure roles on")
    shape = (layers_of(traces[0].config, kind), traces[0].config.n_heads)
    return {role: _mean_share(traces, kind, role, shape) for role in ROLES}


def _mean_share(traces: Sequence[TraceData], kind: Kind, role: Role, shape: tuple[int, int]) -> np.ndarray:
    found = np.zeros(shape)
    for layer, head in np.ndindex(shape):
        rows = [_shares(trace, trace.attention(kind, layer, head), kind, role) for trace in traces]
        together = np.concatenate(rows)
        found[layer, head] = together.mean() if together.size else np.nan
    return found


def _shares(trace: TraceData, weights_LM: np.ndarray, kind: Kind, role: Role) -> np.ndarray:
    """One number for each query that the role can be played at."""
    may_attend_LM = trace.may_attend(kind)
    if role == "focus":
        return _focus(weights_LM, may_attend_LM)
    n_queries, n_keys = weights_LM.shape
    query, n_seen = np.arange(n_queries), may_attend_LM.sum(axis=1)
    if role == "special":
        special = np.array([token.special for token in trace.keys(kind).tokens])
        return weights_LM[:, special].sum(axis=1)
    last = n_keys - 1 - may_attend_LM[:, ::-1].argmax(axis=1)
    goal = {
        "itself": query, "previous": query - 1, "next": query + 1,
        "first": may_attend_LM.argmax(axis=1), "last": last,
    }[role]  # fmt: skip
    # Where there is but one token to look at, looking at it means nothing.
    fair = (goal >= 0) & (goal < n_keys) & (n_seen > 1)
    fair[fair] &= may_attend_LM[query[fair], goal[fair]]
    return weights_LM[query[fair], goal[fair]]


def _focus(weights_LM: np.ndarray, may_attend_LM: np.ndarray) -> np.ndarray:
    """1 - entropy over its most, of the rows that have a choice."""
    n_seen = may_attend_LM.sum(axis=1)
    logs_LM = np.log(np.where(weights_LM > 0, weights_LM, 1.0))
    entropy = -(weights_LM * logs_LM).sum(axis=1)
    return 1 - entropy[n_seen > 1] / np.log(n_seen[n_seen > 1])
