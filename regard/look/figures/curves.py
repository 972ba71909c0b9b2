"""The curves of a training run as one SVG: losses, learning rate, speed, accuracy or BLEU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, TypeGuard

import numpy as np

from regard.look.figures.axes import Scale, covering, line_path, round_ticks, smoothed, spread
from regard.look.figures.svg import (
    MARGIN,
    TEXT,
    Box,
    Markup,
    document,
    element,
    heading,
    text_width,
    tick_label,
    words,
)

Unit = Literal["token", "text", "decision"]
"""What the loss is a mean over: tokens, labelled texts, or decisions on single labels."""
WINDOWS = 120
"""Number of stretches of a run over which the speed is averaged: that of one step is mostly noise."""


@dataclass(frozen=True, eq=False, slots=True)
class Series:
    """Values by step; values that are not finite are NaN."""

    steps: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def finite(self) -> Series:
        """The finite values only."""
        kept = np.isfinite(self.values)
        return Series(self.steps[kept], self.values[kept])


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """The numbers of a run that are drawn."""

    loss: Series
    rate: Series
    speed: Series
    valid_loss: Series
    accuracy: Series
    """Of the validation set."""
    bleu: Series
    averaged: tuple[int, float] | None
    """Number of checkpoints in the last average, and its validation loss."""
    test: dict[str, float]
    tokens: int
    seconds: float

    @property
    def last_step(self) -> int:
        """The last step with a number; 0 if there is none."""
        return int(max((s.steps[-1] for s in (self.loss, self.rate, self.valid_loss) if len(s)), default=0))


def read_record(events: Iterable[dict[str, Any]]) -> Record:
    """Collect the numbers of all events; others are ignored."""
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
    """Whether a value is a number, finite or not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_GATHERED = ("loss", "learning_rate", "tokens", "seconds", "valid_loss", "valid_accuracy", "valid_bleu")


def _series(rows: list[tuple[int, float]]) -> Series:
    table = np.array(sorted(rows, key=lambda row: row[0]), dtype=np.float64).reshape(-1, 2)
    return Series(table[:, 0], np.where(np.isfinite(table[:, 1]), table[:, 1], np.nan))


def _speed(tokens: Series, seconds: Series, validated: np.ndarray) -> Series:
    """Tokens per second over stretches of the run, without validations."""
    steps, here, there = np.intersect1d(tokens.steps, seconds.steps, return_indices=True)
    counts, clock = tokens.values[here], seconds.values[there]
    if steps.size and steps[0] == 1:  # the clock starts with the run
        steps, counts, clock = np.r_[0, steps], np.r_[0.0, counts], np.r_[0.0, clock]
    taken = np.diff(clock)
    # The time of the step after a validation includes it.
    fair = np.isfinite(taken + counts[1:]) & ~np.isin(steps[:-1], validated)
    stretches = np.array_split(np.flatnonzero(fair), min(WINDOWS, max(1, fair.sum())))
    rows = [
        (int(steps[1:][each[-1]]), float(counts[1:][each].sum() / taken[each].sum()))
        for each in stretches
        if each.size and taken[each].sum() > 0
    ]
    return _series(rows)


WIDTH = 880.0
SMALL = 11.0
LOSS_HEIGHT, SMALL_HEIGHT = 270.0, 96.0
LINE = 15.0
"""Height of a label."""
NAMES = {"bleu": "BLEU", "chrf": "chrF"}


def curves_svg(events: Iterable[dict[str, Any]], title: str = "training", unit: Unit = "token") -> str:
    """Draw a run from its events, the lines of its journal.

    Args:
        events: dictionaries as `regard.training.checkpoints.run_folder` keeps them; unknown ones are ignored.
        title: the run's name.
        unit: what the loss is a mean over.
    """
    record = read_record(events)
    children, top = heading(title, " · ".join(_facts(record)), WIDTH - 2 * MARGIN)
    if record.last_step == 0:
        return document(WIDTH, top - 10 + MARGIN, children, title=title)
    drawn, top = _loss_panel(record, top + 4, unit)
    children += drawn
    small = [
        _Small("learning rate", "purple", record.rate, tick_label),
        _Small("tokens per second", "green", record.speed, lambda value: f"{value:,.0f}"),
        _Small("validation BLEU", "orange", record.bleu, lambda value: f"{value:.1f}"),
    ]
    if unit != "token":  # of tokens, the loss says more than the accuracy
        small.append(_Small("validation accuracy", "orange", record.accuracy, lambda value: f"{value:.1%}"))
    small = [panel for panel in small if len(panel.series.finite)]
    width = (WIDTH - 2 * MARGIN - 28 * (len(small) - 1)) / max(1, len(small))
    for place, panel in enumerate(small):
        box = Box(MARGIN + place * (width + 28), top + 30, width, SMALL_HEIGHT)
        children += _small_panel(panel, box, record.last_step)
    bottom = top + 30 + SMALL_HEIGHT + 24 if small else top
    return document(WIDTH, bottom + MARGIN, children, title=title)


@dataclass(frozen=True, slots=True)
class _Small:
    name: str
    colour: str
    series: Series
    write: Callable[[float], str]
    """Formats a value."""


def _facts(record: Record) -> Iterator[str]:
    if record.last_step == 0:
        yield "no step yet"
        return
    yield f"{record.last_step:,} step{'s' if record.last_step > 1 else ''}"
    if record.tokens:
        yield f"{record.tokens:,} tokens"
    if record.seconds:
        yield (
            f"{record.seconds / 60:,.1f} minutes" if record.seconds >= 60 else f"{record.seconds:.1f} seconds"
        )
    if len(valid := record.valid_loss.finite):
        best = int(valid.values.argmin())
        yield f"best validation loss {valid.values[best]:.3f} at step {valid.steps[best]:,.0f}"
    yield from (f"test {NAMES.get(name, name)} {value:.2f}" for name, value in record.test.items())
    if broken := len(record.loss) - len(record.loss.finite):
        yield f"{broken:,} steps without a finite loss, marked ×"


def _loss_panel(record: Record, top: float, unit: Unit) -> tuple[list[Markup], float]:
    """Training and validation loss, with their last values at the ends of the lines."""
    values = np.r_[record.loss.values, record.valid_loss.values]
    if record.averaged:
        values = np.r_[values, record.averaged[1]]
    outer = Box(MARGIN, top + 18, WIDTH - 2 * MARGIN, LOSS_HEIGHT)
    y = covering(values, outer.bottom, outer.top, log=_spans(values))
    labels = list(_end_labels(record))
    beside = max((text_width(text, TEXT) + 12 for _, text, _ in labels), default=0.0)
    box, x = _inside(outer, y.ticks(7), record.last_step, beside)
    name = f"loss, nats a {unit}" + (" (logarithmic)" if y.log else "")
    drawn = [words(name, MARGIN, top + 8, "soft", SMALL)]
    drawn += _axes(box, x, y, y.ticks(7))
    drawn += _training(record.loss, x, y)
    drawn += _not_finite(record.loss, x, box)
    drawn += _validation(record.valid_loss.finite, x, y)
    if record.averaged:
        drawn.append(_diamond(box.right, y.at(record.averaged[1])))
    places = spread([y.at(value) for value, _, _ in labels], LINE, box.top, box.bottom)
    for (_, text, colour), place in zip(labels, places, strict=True):
        drawn.append(words(text, box.right + 12, place + 4, colour))
    return drawn, box.bottom + 24


def _spans(values: np.ndarray) -> bool:
    """Whether losses differ so much that a logarithmic axis shows them better."""
    values = values[np.isfinite(values)]
    return bool(values.size) and float(values.min()) > 0 and float(values.max() / values.min()) > 2.5


def _end_labels(record: Record) -> Iterator[tuple[float, str, str]]:
    """The labels at the right: a value, its text, its colour."""
    if len(loss := record.loss.finite):
        last = float(loss.values[-_reach(loss) - 1 :].mean())
        yield last, f"training {last:.3f}", "blue"
    if len(valid := record.valid_loss.finite):
        last, best = float(valid.values[-1]), float(valid.values.min())
        yield last, f"validation {last:.3f}", "orange"
        if best < last:
            yield best, f"○ best {best:.3f}", "orange"
    if record.averaged:
        count, loss_of_mean = record.averaged
        yield loss_of_mean, f"◇ mean of {count} {loss_of_mean:.3f}", "purple"


def _reach(loss: Series) -> int:
    return len(loss) // 100


def _training(loss: Series, x: Scale, y: Scale) -> Iterator[Markup]:
    """Every step as a faint line, their moving mean as a strong one; one line for a short run."""
    if not len(loss):
        return
    pixels_x, pixels_y, reach = x(loss.steps), y(loss.values), _reach(loss)
    if reach:
        yield from _line(pixels_x, pixels_y, "blue", 1, opacity=0.35)
    yield from _line(pixels_x, smoothed(pixels_y, reach), "blue", 2)


def _line(x: np.ndarray, y: np.ndarray, colour: str, width: float, **attributes: object) -> Iterator[Markup]:
    """A line through pixels with a dot at its end, so that a single point is visible."""
    yield element(
        "path",
        d=line_path(x, y),
        class_=f"{colour}-line",
        stroke_width=width,
        stroke_linecap="round",
        stroke_linejoin="round",
        **attributes,
    )
    if (finite := np.flatnonzero(np.isfinite(y))).size:
        end = finite[-1]
        yield element(
            "circle", cx=float(x[end]), cy=float(y[end]), r=1.25 * width, class_=colour, **attributes
        )


def _validation(valid: Series, x: Scale, y: Scale) -> Iterator[Markup]:
    if not len(valid):
        return
    pixels_x, pixels_y = x(valid.steps), y(valid.values)
    yield from _line(pixels_x, pixels_y, "orange", 2)
    if len(valid) <= 60:
        for px, py in zip(pixels_x, pixels_y, strict=True):
            yield element("circle", cx=float(px), cy=float(py), r=2.5, class_="orange")
    best = int(valid.values.argmin())
    tooltip = f"best validation loss {valid.values[best]:.4f} at step {valid.steps[best]:,.0f}"
    yield element(
        "circle",
        element("title", tooltip),
        cx=float(pixels_x[best]),
        cy=float(pixels_y[best]),
        r=6.0,
        class_="orange-line best",
        stroke_width=2,
    )


def _not_finite(loss: Series, x: Scale, box: Box) -> Iterator[Markup]:
    """A cross at the top for every column of pixels with a step without a finite loss."""
    for place in np.unique(np.floor(x(loss.steps[np.isnan(loss.values)]))):
        d = f"M{place - 3:.0f} {box.top + 3:.0f}l6 6m0-6l-6 6"
        yield element("path", d=d, class_="ink-line", stroke_width=1.5)


def _small_panel(panel: _Small, outer: Box, last_step: int) -> Iterator[Markup]:
    """One quantity: its name and last value, and a line."""
    series = panel.series.finite
    y = covering(series.values, outer.bottom, outer.top)
    ticks = y.ticks(4)
    box, x = _inside(outer, ticks, last_step)
    name = f"{panel.name} {panel.write(_shortened(float(series.values[-1])))}"
    yield words(name, outer.left, outer.top - 10, panel.colour)
    yield from _axes(box, x, y, ticks)
    yield from _line(x(series.steps), y(series.values), panel.colour, 1.75)


def _shortened(value: float) -> float:
    """Rounded to three digits."""
    return float(f"{value:.3g}") if abs(value) < 1000 else value


def _inside(outer: Box, ticks: list[float], last_step: int, beside: float = 0.0) -> tuple[Box, Scale]:
    """The box without tick labels at the left and labels at the right, and its horizontal scale."""
    left = outer.left + max(text_width(tick_label(tick), SMALL) for tick in ticks) + 8
    right = outer.right - max(beside, text_width(tick_label(last_step), SMALL) / 2)
    return Box(left, outer.top, right - left, outer.height), Scale(0, last_step, left, right)


def _diamond(x: float, y: float) -> Markup:
    d = f"M{x - 5:.1f} {y:.1f}l5-5l5 5l-5 5z"
    return element("path", d=d, class_="purple-line", stroke_width=2)


def _axes(box: Box, x: Scale, y: Scale, ticks: list[float]) -> Iterator[Markup]:
    """A grid with round numbers."""
    for tick in ticks:
        at = y.at(tick)
        yield element("path", d=f"M{box.left:.1f} {at:.2f}H{box.right:.1f}", class_="grid-line")
        yield words(tick_label(tick), box.left - 8, at + 4, "soft", SMALL, text_anchor="end")
    widest = text_width(f"{x.high:,.0f}", SMALL) + 14
    for tick in round_ticks(0, x.high, max(1, int(box.width / widest)), least_step=1):
        at = x.at(tick)
        yield element("path", d=f"M{at:.2f} {box.bottom:.1f}v4", class_="soft-line")
        yield words(tick_label(tick), at, box.bottom + 17, "soft", SMALL, text_anchor="middle")
    yield element("path", d=f"M{box.left:.1f} {box.bottom:.1f}H{box.right:.1f}", class_="soft-line")
