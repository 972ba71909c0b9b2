"""The methods by which influence is measured, and what they say side by side. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Method = Literal[
    "attention",
    "norms",
    "rollout",
    "gradient-x-input",
    "integrated-gradients",
    "value-zeroing",
    "leave-one-out",
]
"""Where the row looked, in the mean over blocks and heads; the same by the length of what that carried;
attention followed through all layers; gradients of two kinds; a token without its values, or masked."""
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True, eq=False, slots=True)
class Measures:
    """All measures of the influence on one token: of the inputs, then of what was written before."""

    values: dict[Method, np.ndarray]
    """A number for each token; those that came later have 0."""
    masked: tuple[int, ...]
    """How many tokens are masked at each point of a curve."""
    curves: dict[Method, np.ndarray]
    """The log-probability as tokens are masked, in the order that the measure says."""
    agreement: np.ndarray
    """(methods, methods): how far each two put the tokens in the same order, -1 to 1."""
