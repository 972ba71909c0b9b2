"""Influence as a trace keeps it, where somebody measured it: for views, and for files. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import RequestError
from regard.look.influence.methods import METHODS
from regard.look.trace.candidates import said_steps

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

_ROW, _OF = "influences.row", "influences."


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """The influence on one token of all that were there, by some methods."""

    on: str
    """The token, or the label."""
    methods: tuple[str, ...]
    tokens: tuple[str, ...]
    """Those of the inputs, then those that had been written."""
    values: np.ndarray
    """(methods, tokens)."""

    @property
    def shares(self) -> np.ndarray:
        """The same, each method by its own largest number."""
        most = np.abs(self.values).max(axis=1, keepdims=True)
        shares: np.ndarray = self.values / np.where(most, most, 1.0)
        return shares


def with_measured(trace: Trace, row: int, values: Mapping[str, np.ndarray]) -> Trace:
    """The trace, with the influence on the token of a row by each method."""
    kept = {name: each for name, each in trace.arrays.items() if not name.startswith(_OF)}
    named = {f"{_OF}{method}": np.asarray(each) for method, each in values.items()}
    return replace(trace, arrays={**kept, **named, _ROW: np.array([row])})


def measured_of(trace: Trace) -> Measured:
    """What was measured.

    Raises:
        RequestError: nothing was: that takes the model.
    """
    if _ROW not in trace.arrays:
        raise RequestError("nobody measured influence for this trace: LoadedModel.with_influences does so")
    row = int(trace.arrays[_ROW][0])
    methods = tuple(method for method in METHODS if f"{_OF}{method}" in trace.arrays)
    sides = [([] if side is None else side.texts) for side in (trace.inputs, trace.outputs)]
    tokens = (*sides[0], *sides[1][: row + 1])
    step = said_steps(trace)[row]
    return Measured(
        on=next(each.text for each in step.candidates if each.id == step.came),
        methods=methods,
        tokens=tokens,
        values=np.stack([trace.arrays[f"{_OF}{method}"][: len(tokens)] for method in methods]),
    )
