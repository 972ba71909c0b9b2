"""Names of the methods that measure influence, and their results. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import numpy as np

from regard.errors import RequestError
from regard.look.trace.data import TraceData

AnyTrace = TypeVar("AnyTrace", bound=TraceData)
Method = Literal[
    "attention",
    "norms",
    "rollout",
    "gradient-x-input",
    "integrated-gradients",
    "value-zeroing",
    "leave-one-out",
]
"""Attention, averaged over blocks and heads; weighted by the norm of what it carries; followed through all
layers; two kinds of gradients; a token without its values; a token masked."""
METHODS: tuple[Method, ...] = get_args(Method)
_ROW, _PREFIX = "influences.row", "influences."


@dataclass(frozen=True, eq=False, slots=True)
class InfluenceMeasures:
    """The influence of all tokens on one prediction, by every method: of the inputs, then of the outputs."""

    values: dict[Method, np.ndarray]
    """One number per token; 0 for tokens that come later."""
    masked: tuple[int, ...]
    """Number of tokens masked at each point of a curve."""
    curves: dict[Method, np.ndarray]
    """Log-probability as tokens are masked, in the order of the method."""
    agreement: np.ndarray
    """(methods, methods): rank correlation of each two, -1 to 1."""


@dataclass(frozen=True, eq=False, slots=True)
class StoredInfluence:
    """The influence of all tokens on one prediction, by some methods, as a trace stores it."""

    on: str
    """The predicted token, or the label."""
    methods: tuple[str, ...]
    tokens: tuple[str, ...]
    """Those of the inputs, then those already written."""
    values: np.ndarray
    """(methods, tokens)."""

    @property
    def shares(self) -> np.ndarray:
        """The values, each method divided by its largest."""
        most = np.abs(self.values).max(axis=1, keepdims=True)
        shares: np.ndarray = self.values / np.where(most, most, 1.0)
        return shares


def store_influence(trace: AnyTrace, row: int, values: Mapping[str, np.ndarray]) -> AnyTrace:
    """A copy of the trace with the influence on the prediction of a row, by method."""
    kept = {name: each for name, each in trace.arrays.items() if not name.startswith(_PREFIX)}
    named = {f"{_PREFIX}{method}": np.asarray(each) for method, each in values.items()}
    return replace(trace, arrays={**kept, **named, _ROW: np.array([row])})


def stored_influence(trace: TraceData) -> StoredInfluence:
    """The influence stored in a trace.

    Raises:
        RequestError: none is stored.
    """
    if _ROW not in trace.arrays:
        what = "this trace stores no influence: call LoadedModel.with_influences first"
        raise RequestError(what, code="nothing_to_show")
    row = int(trace.arrays[_ROW][0])
    methods = tuple(method for method in METHODS if f"{_PREFIX}{method}" in trace.arrays)
    sides = [([] if side is None else side.texts) for side in (trace.inputs, trace.outputs)]
    tokens = (*sides[0], *sides[1][: row + 1])
    step = trace.predictions()[row]
    return StoredInfluence(
        on=next(each.text for each in step.candidates if each.id == step.actual),
        methods=methods,
        tokens=tokens,
        values=np.stack([trace.arrays[f"{_PREFIX}{method}"][: len(tokens)] for method in methods]),
    )
