"""Axes of a plot: scales from values to pixels, round ticks, and lines thinned to what pixels can show."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from regard.look.figures.svg import number

_MANTISSAS = [(1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)]
"""Round numbers in a decade, from few to many."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from `low` to `high` to pixels from `start` to `end`, linearly or logarithmically."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __post_init__(self) -> None:
        assert self.low < self.high, f"an axis from {self.low} to {self.high} has no length"
        assert self.low > 0 or not self.log, f"{self.low} has no logarithm"

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Pixels; values outside are clipped."""
        values = np.clip(values, self.low, self.high)
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(values), np.log(low), np.log(high)
        return self.start + (values - low) / (high - low) * (self.end - self.start)

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return float(self(np.array(value)))

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis, at most `most`."""
        found = _log_ticks(self.low, self.high, most) if self.log else []
        return found if len(found) > 2 else round_ticks(self.low, self.high, most)


def covering(values: np.ndarray, start: float, end: float, *, log: bool = False) -> Scale:
    """The scale that holds all finite values with a margin; a linear one includes 0."""
    values = values[np.isfinite(values) & ((values > 0) if log else True)]
    high = float(values.max()) if values.size else 1.0
    if not log:
        low = min(0.0, float(values.min())) if values.size else 0.0
        return Scale(low, high * 1.05 if high > low else low + 1.0, start, end)
    low = float(values.min()) if values.size else 0.1
    return Scale(low / 1.08, high * 1.08, start, end, log=True)


def round_ticks(low: float, high: float, most: int, *, least_step: float = 0.0) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two values, at most `most`."""
    assert most >= 1, "an axis needs a tick"
    rough = max((high - low) / most, least_step)
    decade = floor(log10(rough))
    for step in (m * 10.0**e for e in (decade, decade + 1) for m in (1, 2, 5)):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if step >= least_step and last - first < most:
            return [float(f"{i * step:.12g}") for i in range(first, last + 1)]
    raise AssertionError(f"no round step for {most} ticks from {low} to {high}")


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    found: list[float] = []
    for mantissas in _MANTISSAS:
        decades = range(floor(log10(low)), ceil(log10(high)) + 1)
        finer = [float(f"{m * 10.0**e:.12g}") for e in decades for m in mantissas]
        finer = [tick for tick in finer if low <= tick <= high]
        if len(finer) > most:
            break
        found = finer
    return found


def thinned(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the points needed to draw a line: four for each column of pixels; `x` increases.

    The first, last, lowest and highest point of a column draw the same picture as all of them.
    """
    column = np.floor(x).astype(np.int64)
    border = np.flatnonzero(np.diff(column)) + 1
    starts, ends = np.r_[0, border], np.r_[border, len(x)] - 1
    by_height = np.lexsort((y, column))
    return np.unique(np.r_[starts, ends, by_height[starts], by_height[ends]])


def line_path(x: np.ndarray, y: np.ndarray) -> str:
    """The `d` of a path through pixels; it is interrupted where a value is not finite."""
    finite = np.isfinite(y)
    piece = np.cumsum(~finite)[finite]
    x, y = x[finite], y[finite]
    if not x.size:
        return ""
    kept = thinned(x, y)
    words, before = [], None
    for i in kept:
        # With round line ends, `h0` shows an isolated point as a dot.
        words.append(f"{'L' if piece[i] == before else 'M'}{number(x[i])} {number(y[i])}")
        if piece[i] != before:
            words.append("h0")
        before = piece[i]
    return "".join(words)


def smoothed(y: np.ndarray, reach: int) -> np.ndarray:
    """The mean over the finite values up to `reach` places to both sides; NaN without any."""
    finite = np.isfinite(y)
    sums = np.r_[0.0, np.cumsum(np.where(finite, y, 0.0))]
    counts = np.r_[0, np.cumsum(finite)]
    places = np.arange(len(y))
    left, right = np.maximum(0, places - reach), np.minimum(len(y), places + reach + 1)
    with np.errstate(invalid="ignore"):
        return np.where(finite, (sums[right] - sums[left]) / (counts[right] - counts[left]), np.nan)


def spread(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Places moved apart to keep a gap between neighbours, within bounds if they fit."""
    order = sorted(range(len(places)), key=places.__getitem__)
    found = list(places)
    for before, this in zip([None, *order], order, strict=False):
        found[this] = max(found[this], low if before is None else found[before] + gap)
    limit = high
    for this in reversed(order):
        found[this] = min(found[this], limit)
        limit = found[this] - gap
    return found
