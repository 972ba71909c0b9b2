"""Names of the methods that measure influence, and their results. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
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
_CONVERGENCE = ".convergence"
"""Suffix of the array that holds the convergence of stored integrated gradients."""


@dataclass(frozen=True, slots=True)
class Convergence:
    """How far integrated gradients add up to the change that they explain."""

    steps: int
    """Points at which the gradient was evaluated."""
    change: float
    """Log-probability with the actual embeddings minus that with zero embeddings."""
    delta: float
    """Sum of the values minus this change: 0 up to rounding, since what is missing is distributed."""
    distributed: float = 0.0
    """Sum of the absolute errors of all intervals, each of which was distributed over the tokens: the measure
    of accuracy. 0 in traces of earlier versions, where nothing was distributed."""
    trapezoids: float = 0.0
    """The delta before anything was distributed, in which errors of opposite signs cancel."""

    @property
    def relative(self) -> float:
        """|delta| / |change|; infinite if the change is 0 and the delta is not."""
        return abs(self.delta) / abs(self.change) if self.change else (np.inf if self.delta else 0.0)

    @property
    def rough(self) -> float:
        """What was distributed / |change|; infinite if the change is 0 and the other is not."""
        return self.distributed / abs(self.change) if self.change else (np.inf if self.distributed else 0.0)

    def __str__(self) -> str:
        if self.distributed:
            errors = f"errors of {self.distributed:.2g} distributed ({self.rough:.1%})"
            return f"{self.steps} steps, change {self.change:+.4g}, {errors}"
        return f"{self.steps} steps, delta {self.delta:+.2g} of {self.change:+.4g} ({self.relative:.2%})"

    def to_json(self) -> dict[str, float | int | None]:
        """The fields of a response; null is a share that is not finite."""
        shares = {"relative": self.relative, "rough": self.rough}
        finite = {name: share if np.isfinite(share) else None for name, share in shares.items()}
        fields = ("steps", "change", "delta", "distributed", "trapezoids")
        return {name: getattr(self, name) for name in fields} | finite


class Influence(np.ndarray):
    """One number per token; of integrated gradients with their `convergence`, otherwise None.

    Arrays computed from it, such as slices, have no convergence: they add up to something else.
    """

    convergence: Convergence | None

    @staticmethod
    def of(values: np.ndarray, convergence: Convergence | None = None) -> Influence:
        """An array of values with their convergence."""
        array = np.asarray(values).view(Influence)
        array.convergence = convergence
        return array

    def __array_finalize__(self, base: object) -> None:
        self.convergence = None


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
    convergence: Convergence
    """Of the integrated gradients."""


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
    convergence: Convergence | None
    """Of the integrated gradients, if they are stored."""

    @property
    def shares(self) -> np.ndarray:
        """The values, each method divided by its largest."""
        most = np.abs(self.values).max(axis=1, keepdims=True)
        shares: np.ndarray = self.values / np.where(most, most, 1.0)
        return shares


def store_influence(trace: AnyTrace, row: int, values: Mapping[str, np.ndarray]) -> AnyTrace:
    """A copy of the trace with the influence on the prediction of a row, by method."""
    kept = {name: each for name, each in trace.arrays.items() if not name.startswith(_PREFIX)}
    for method, each in values.items():
        kept |= arrays_of(f"{_PREFIX}{method}", each)
    return replace(trace, arrays={**kept, _ROW: np.array([row])})


def arrays_of(name: str, influence: np.ndarray) -> dict[str, np.ndarray]:
    """Influence as arrays of a trace: the values, and the convergence if there is one."""
    arrays = {name: np.asarray(influence)}
    if (found := getattr(influence, "convergence", None)) is not None:
        arrays[name + _CONVERGENCE] = np.array(astuple(found))
    return arrays


def stored_convergence(trace: TraceData, name: str) -> Convergence | None:
    """The convergence that was stored with an array of influence; None if there is none."""
    if (stored := trace.arrays.get(name + _CONVERGENCE)) is None:
        return None
    steps, *others = stored.tolist()
    return Convergence(int(steps), *others)


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
        convergence=stored_convergence(trace, f"{_PREFIX}integrated-gradients"),
    )
