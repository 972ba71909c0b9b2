"""The measures of influence by name, one at a time or side by side, so that one sees whether they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np

from regard.errors import RequestError
from regard.look.influence.influence import (
    agreement,
    deletion_curve,
    gradient_times_input,
    integrated_gradients,
    leave_one_out,
    read_of,
    seen_of,
    value_zeroing,
)
from regard.look.influence.methods import METHODS, Measures
from regard.look.influence.rollout import Mixing, heads_on, mean_attention, norm_weighted, rollout
from regard.look.trace.blocks import Kind, layers_of

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.trace import Trace

POINTS = 16
"""Of a deletion curve, behind its first: a long text is masked several tokens at a time."""


def measures(model: Model, trace: Trace, row: int) -> Measures:
    """Every measure of what was read, what was written before included.

    Raises:
        RequestError: there is no such row, or the trace cannot have come from this model.
    """
    values = {method: influence_by(method, model, trace, row, prefix=True) for method in METHODS}
    seen = seen_of(trace, row, prefix=True)
    most = int(seen.sum()) - len(read_of(trace, prefix=True))  # the last one of each side stays
    masked = tuple(np.unique(np.linspace(0, most, min(most, POINTS) + 1).round().astype(int)).tolist())
    curves = {
        method: deletion_curve(model, trace, row, each, prefix=True, counts=masked)
        for method, each in values.items()
    }
    found = [each[seen] for each in values.values()]
    return Measures(
        values, masked, curves, np.array([[agreement(one, other) for other in found] for one in found])
    )


def influence_by(method: str, model: Model, trace: Trace, row: int, *, prefix: bool = False) -> np.ndarray:
    """The influence of each token by one measure; with `prefix`, of what a translator had written as well.

    Raises:
        RequestError: there is no such measure or row, or the trace cannot have come from this model.
    """
    name = next((each for each in METHODS if each == method), None)
    if name is None:
        raise RequestError(f"there is no measure {method!r} of influence; there are {', '.join(METHODS)}")
    match name:
        case "attention":
            return _looked(trace, row, mean_attention(trace), prefix=prefix)
        case "norms":
            return _looked(trace, row, norm_weighted(model, trace), prefix=prefix)
        case "rollout":
            return _rolled_out(trace, row, prefix=prefix)
        case "gradient-x-input":
            return gradient_times_input(model, trace, row, prefix=prefix)
        case "integrated-gradients":
            return integrated_gradients(model, trace, row, prefix=prefix)
        case "value-zeroing":
            return value_zeroing(model, trace, row, prefix=prefix)
        case "leave-one-out":
            return leave_one_out(model, trace, row, prefix=prefix)
        case other:
            assert_never(other)


def _looked(trace: Trace, row: int, mixing: Mixing, *, prefix: bool) -> np.ndarray:
    """What a row took from each token, in the mean over the blocks in which it looks at them: shares of 1."""
    seen_of(trace, row)  # which refuses a row that there is not
    kinds: dict[str, Kind] = {"input": "encoder" if trace.outputs is None else "cross", "output": "decoder"}
    sides = read_of(trace, prefix=prefix)
    found = []
    for name, side in sides.items():
        layers = [i for i in range(layers_of(trace.config, kinds[name])) if heads_on(trace, kinds[name], i)]
        rows = [mixing(kinds[name], layer)[row] for layer in layers]
        found.append(np.mean(rows, axis=0) if rows else np.zeros(len(side)))
    return np.concatenate(found) / len(sides)


def _rolled_out(trace: Trace, row: int, *, prefix: bool) -> np.ndarray:
    seen_of(trace, row)
    of_inputs, of_outputs = rollout(trace)
    of_side = {"input": of_inputs, "output": of_outputs}
    shares = [of_side[name] for name in read_of(trace, prefix=prefix)]
    return np.concatenate([each[row] for each in shares if each is not None])
