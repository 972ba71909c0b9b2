"""Integrated gradients (Sundararajan et al., 2017): the gradient, averaged on the path from zero embeddings.

The gradient jumps along the path, as a ReLU's does, so that rules of a high order do not help; trapezoids are
used. But the change of the log-probability over each interval between two points is known, and so is the
error of its trapezoids, all tokens together. It decides three things: which intervals are halved, when the
path is fine enough, and what is missing at the end, which is distributed over the tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regard.errors import RequestError
from regard.look.influence import MOST_STEPS
from regard.look.influence.copies import Prediction
from regard.look.influence.methods import Convergence, Influence

FIRST_STEPS = 17
"""Points before intervals are halved."""
GROWTH = 1 / 3
"""New points in a round, as a share of those that there are."""
ROUGH = 0.07
"""Intervals are halved until their absolute errors sum to at most this share of all absolute changes."""
SPREAD = 0.2
"""Weight of the changes of the tokens' gradients in the choice of intervals, beside the error of all tokens
together, in which errors may cancel."""


class _Path(NamedTuple):
    """Gradients times embeddings, (points, tokens), and log-probabilities along the path."""

    roots: np.ndarray
    """Square roots of the shares of the embeddings: norms make small embeddings large again, so that most
    happens near 0."""
    slopes: np.ndarray
    log_probs: np.ndarray

    @classmethod
    def at(cls, prediction: Prediction, roots: np.ndarray) -> _Path:
        """These points, computed."""
        return cls(roots, *prediction.along(roots**2))

    def with_points(self, other: _Path) -> _Path:
        """The points of both, in their order."""
        roots, slopes, log_probs = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        order = np.argsort(roots, kind="stable")
        return _Path(roots[order], slopes[order], log_probs[order])


def integrate(prediction: Prediction, steps: int) -> Influence:
    """The integrated gradients of a prediction; they add up to the change due to the embeddings.

    The error of an interval is distributed in proportion to how much each token's gradient changes within it,
    which bounds the token's own error if its gradient only rises or falls there.

    Raises:
        RequestError: steps are out of range.
    """
    if not 2 <= steps <= MOST_STEPS:
        raise RequestError(f"steps = {steps} must be from 2 to {MOST_STEPS:,}", code="bad_option")
    path = _Path.at(prediction, np.linspace(0, 1, min(FIRST_STEPS, steps)))
    while True:
        widths, changes = np.diff(path.roots**2), np.diff(path.log_probs)
        values = widths[:, None] * (path.slopes[:-1] + path.slopes[1:]) / 2
        spreads = widths[:, None] * np.abs(np.diff(path.slopes, axis=0))
        errors = values.sum(-1) - changes
        room = min(max(1, int(len(path.roots) * GROWTH)), steps - len(path.roots))
        if np.abs(errors).sum() <= ROUGH * np.abs(changes).sum() or not room:
            break
        worst = np.argsort(-(np.abs(errors) + SPREAD * spreads.sum(-1)), kind="stable")[:room]
        middles = (path.roots[worst] + path.roots[worst + 1]) / 2
        path = path.with_points(_Path.at(prediction, middles))
    of_tokens = spreads.sum(-1, keepdims=True)
    corrected = values - errors[:, None] * np.divide(
        spreads, of_tokens, out=np.zeros_like(spreads), where=of_tokens > 0
    )
    total, change = corrected.sum(0), float(changes.sum())
    convergence = Convergence(
        steps=len(path.roots),
        change=change,
        delta=float(total.sum()) - change,
        distributed=float(np.abs(errors).sum()),
        trapezoids=float(errors.sum()),
    )
    return Influence.of(total, convergence)
