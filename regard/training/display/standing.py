"""The state of a run, collected from its events, for a display."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, isfinite
from typing import Any

from regard.look.figures.curves import Unit, is_number
from regard.look.trace.tokens import visible

SMOOTHING = 0.98
"""Weight of the past in the smoothed loss, per step."""
OUTPUTS = 4
"""Sample outputs that are shown."""
STRETCHES = 256
"""Most points of a curve; at least half as many remain, however long the run."""
OTHERS = {"valid_bits_per_byte": ("bits a byte", ".3f"), "valid_macro_f1": ("macro-F1", ".1%")}
"""More results of validations, with names and formats."""
WINDOW = 64
"""Steps over which the speed is measured."""


class Curve:
    """A long curve in little memory: means over equal stretches, which double when there are too many."""

    def __init__(self) -> None:
        self.means: list[float] = []
        self._stretch, self._sum, self._count = 1, 0.0, 0

    def add(self, value: float) -> None:
        """One more value."""
        self._sum += value
        self._count += 1
        if self._count < self._stretch:
            return
        self.means.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self.means) == STRETCHES:
            pairs = list(pairwise(self.means))[::2]
            self.means = [(first + second) / 2 for first, second in pairs]
            self._stretch *= 2


class Recent:
    """An exponential mean of values."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, value: float) -> None:
        """One more value."""
        self._sum = SMOOTHING * self._sum + value
        self._weight = SMOOTHING * self._weight + 1.0

    @property
    def mean(self) -> float | None:
        """None while there is no value."""
        return self._sum / self._weight if self._weight else None


@dataclass(slots=True)
class Latest:
    """A measure of the validation set: its last value, and its best with the step of it."""

    better: Callable[[float, float], bool]
    last: float | None = None
    best: float | None = None
    best_step: int = 0

    def hear(self, value: float, step: int) -> None:
        """One more validation."""
        self.last = value
        if isfinite(value) and (self.best is None or self.better(value, self.best)):
            self.best, self.best_step = value, step


@dataclass(slots=True)
class Sample:
    """A sentence that is translated at every validation, and what became of it."""

    source: str = ""
    reference: str = ""
    outputs: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=OUTPUTS))

    def hear(self, sample: dict[str, Any], step: int) -> None:
        """Add an output; one of another sentence replaces the others."""
        source, reference, output = (
            visible(str(sample.get(key, ""))) for key in ("source", "reference", "output")
        )
        if (source, reference) != (self.source, self.reference):
            self.outputs.clear()
        self.source, self.reference = source, reference
        self.outputs.append((step, output))


class Standing:
    """The state of a run, updated by its events; unknown events are ignored."""

    def __init__(self, title: str, max_steps: int, unit: Unit = "token") -> None:
        """`title` is the run's name, `max_steps` its limit, `unit` what the loss is a mean over."""
        self.title, self.max_steps, self.unit = visible(title), max_steps, unit
        self.share = 0.0
        """How much of the run is done, from 0 to 1, by the limit that comes first."""
        self.step, self.seconds = 0, 0.0
        self.loss: float | None = None
        self.rate: float | None = None
        self.speed: float | None = None
        """Tokens per second over the last steps, without validations."""
        self.curve = Curve()
        self.valid_loss = Latest(float.__lt__)
        self.valid_accuracy = Latest(float.__gt__)
        self.valid_bleu = Latest(float.__gt__)
        self.others: dict[str, str] = {}
        """More results of the last validation, by name."""
        self.averaged: tuple[int, float] | None = None
        self.sample = Sample()
        self._losses, self._accuracies, self._tokens = Recent(), Recent(), 0
        self._window: deque[tuple[float, int]] = deque(maxlen=WINDOW)

    def hear(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        if isinstance(step := event.get("step"), int):
            self.step = step
        if is_number(share := event.get("share_done")):
            self.share = min(1.0, max(0.0, float(share)))
        if is_number(loss := event.get("loss")):
            self._hear_step(event, float(loss))
        if is_number(loss := event.get("valid_loss")):
            self._hear_validation(event, float(loss))

    @property
    def steps(self) -> str:
        """The step, and of how many if they are the limit that comes first."""
        is_limit = self.step >= self.share * self.max_steps - 0.5
        return f"{self.step:,}" + (f" of {self.max_steps:,}" if is_limit else "")

    @property
    def seconds_left(self) -> float | None:
        """The estimated time left; None before the first step."""
        share = self.share
        return self.seconds * (1 / share - 1) if share > 0 and self.seconds > 0 else None

    @property
    def beside_the_loss(self) -> list[tuple[str, str]]:
        """What is shown with the loss: the perplexity of tokens, the accuracy of labels."""
        if self.unit == "token":
            return [] if self.loss is None else [("perplexity", f"{exp(min(self.loss, 99.0)):,.2f}")]
        right = self._accuracies.mean
        return [] if right is None else [("accuracy", f"{right:.1%}")]

    def _hear_step(self, event: dict[str, Any], loss: float) -> None:
        if isfinite(loss):
            self._losses.add(loss)
            self.curve.add(loss)
        # A loss that is not finite is shown as it is.
        self.loss = self._losses.mean if isfinite(loss) else loss
        if is_number(right := event.get("accuracy")):
            self._accuracies.add(float(right))
        if is_number(rate := event.get("learning_rate")):
            self.rate = float(rate)
        if is_number(tokens := event.get("tokens")) and is_number(seconds := event.get("seconds")):
            self.seconds = float(seconds)
            self._hear_speed(int(tokens))

    def _hear_speed(self, tokens: int) -> None:
        if not self._window and self.step == 1:
            self._window.append((0.0, 0))  # the clock started with the run
        self._tokens += tokens
        self._window.append((self.seconds, self._tokens))
        (start, before), (end, after) = self._window[0], self._window[-1]
        if end > start:
            self.speed = (after - before) / (end - start)

    def _hear_validation(self, event: dict[str, Any], loss: float) -> None:
        if is_number(count := event.get("averaged")):
            self.averaged = int(count), loss
            return
        self._window.clear()
        self.valid_loss.hear(loss, self.step)
        for name, latest in (("valid_accuracy", self.valid_accuracy), ("valid_bleu", self.valid_bleu)):
            if is_number(value := event.get(name)):
                latest.hear(float(value), self.step)
        for key, (name, form) in OTHERS.items():
            if is_number(value := event.get(key)):
                self.others[name] = format(float(value), form)
        if isinstance(sample := event.get("sample"), dict):
            self.sample.hear(sample, self.step)


def duration(seconds: float) -> str:
    """A duration for people: 42 s, 12 min, 1 h 05 min."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02} min"
