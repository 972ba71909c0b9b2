"""The record of a run: the numbers in its events, as arrays over steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, TypeGuard

import numpy as np

Unit = Literal["token", "text", "decision"]
"""What the loss of a run is a mean over: tokens, texts that have a label, or labels that a text may have."""
WINDOWS = 120
"""The speed is a mean over so many stretches of a run: that of a single step is mostly noise."""


@dataclass(frozen=True, eq=False, slots=True)
class Series:
    """Values over steps, in the order of the steps; what is not finite is NaN."""

    steps: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def finite(self) -> Series:
        """Without the values that are not."""
        kept = np.isfinite(self.values)
        return Series(self.steps[kept], self.values[kept])


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """What a picture of a run is drawn from."""

    loss: Series
    rate: Series
    speed: Series
    valid_loss: Series
    accuracy: Series
    """Of the validation set."""
    bleu: Series
    averaged: tuple[int, float] | None
    """Of how many checkpoints the last average was made, and its validation loss."""
    test: dict[str, float]
    tokens: int
    seconds: float

    @property
    def last_step(self) -> int:
        """The highest step of which anything is known; 0 if there is none."""
        return int(max((s.steps[-1] for s in (self.loss, self.rate, self.valid_loss) if len(s)), default=0))


def read_record(events: Iterable[dict[str, Any]]) -> Record:
    """Gather the numbers of all events; what is unknown or no number is passed over."""
    rows: dict[str, list[tuple[int, float]]] = {name: [] for name in _GATHERED}
    averaged: tuple[int, float] | None = None
    test: dict[str, float] = {}
    for event in events:
        if isinstance(scores := event.get("test"), dict):
            test = {name: float(value) for name, value in scores.items() if is_number(value)}
        if not isinstance(step := event.get("step"), int):
            continue
        if is_number(event.get("averaged")):
            if is_number(loss := event.get("valid_loss")) and isfinite(loss):
                averaged = int(event["averaged"]), float(loss)
            continue
        for name in _GATHERED:
            if is_number(value := event.get(name)):
                rows[name].append((step, float(value)))
    series = {name: _series(found) for name, found in rows.items()}
    tokens, seconds = series["tokens"].finite.values, series["seconds"].finite.values
    return Record(
        loss=series["loss"],
        rate=series["learning_rate"],
        speed=_speed(series["tokens"], series["seconds"], series["valid_loss"].steps),
        valid_loss=series["valid_loss"],
        accuracy=series["valid_accuracy"],
        bleu=series["valid_bleu"],
        averaged=averaged,
        test=test,
        tokens=int(tokens.sum()),
        seconds=float(seconds.max()) if seconds.size else 0.0,
    )


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value can be drawn: a number, though perhaps not a finite one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_GATHERED = ("loss", "learning_rate", "tokens", "seconds", "valid_loss", "valid_accuracy", "valid_bleu")


def _series(rows: list[tuple[int, float]]) -> Series:
    table = np.array(sorted(rows, key=lambda row: row[0]), dtype=np.float64).reshape(-1, 2)
    return Series(table[:, 0], np.where(np.isfinite(table[:, 1]), table[:, 1], np.nan))


def _speed(tokens: Series, seconds: Series, validated: np.ndarray) -> Series:
    """Tokens a second over stretches of the run, each drawn at its last step, validations left out."""
    steps, here, there = np.intersect1d(tokens.steps, seconds.steps, return_indices=True)
    counts, clock = tokens.values[here], seconds.values[there]
    if steps.size and steps[0] == 1:  # the clock started with the run
        steps, counts, clock = np.r_[0, steps], np.r_[0.0, counts], np.r_[0.0, clock]
    taken = np.diff(clock)
    # The clock of a step that follows a validation has run through it.
    fair = np.isfinite(taken + counts[1:]) & ~np.isin(steps[:-1], validated)
    stretches = np.array_split(np.flatnonzero(fair), min(WINDOWS, max(1, fair.sum())))
    rows = [
        (int(steps[1:][each[-1]]), float(counts[1:][each].sum() / taken[each].sum()))
        for each in stretches
        if each.size and taken[each].sum() > 0
    ]
    return _series(rows)
