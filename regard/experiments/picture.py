"""The picture of a run as SVG: its claim, and its charts in rows of two, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

from regard.experiments.experiment import Both, Chart, ExperimentRun, Label, Line, in_both, label_in
from regard.look.figures.axes import Scale, covering, line_path, spread
from regard.look.figures.svg import (
    GAP,
    LINE,
    MARGIN,
    SMALL,
    TEXT,
    Box,
    Markup,
    document,
    element,
    folded,
    heading,
    number,
    text_width,
    tick_label,
    words,
)

WIDTH, ALONE, HEIGHT = 460.0, 640.0, 230.0
"""Width of a chart with its labels, width of a single chart, height."""
ABOVE, BELOW = 40.0, 52.0
"""Space above a chart for its name, and below for the x axis."""
SMALL_LINE = 13.0
CROWD = 5
"""From this number of lines on, a label is one row instead of two."""
APART = 34.0
"""Smallest distance between two numbers on the x axis."""
STROKES = (
    ("blue", ""),
    ("orange", "7 3"),
    ("green", "2 3"),
    ("purple", "9 3 2 3"),
    ("ink", ""),
    ("soft", "7 3"),
)
"""Colours and dashes of lines."""


def picture(run: ExperimentRun) -> str:
    """Draw the charts of a run; a faint band spans the seeds."""
    charts = run.findings.charts
    across, one = (2, WIDTH) if len(charts) > 1 else (1, ALONE)
    width = across * one + (across - 1) * GAP
    drawn, top = _heading(run, width)
    row_height = ABOVE + HEIGHT + BELOW
    for place, chart in enumerate(charts):
        row, column = divmod(place, across)
        left = MARGIN + column * (one + GAP)
        drawn += _chart(chart, Box(left, top + ABOVE + row * row_height, one, HEIGHT))
    bottom = top + ceil(len(charts) / across) * row_height
    return document(width + 2 * MARGIN, bottom + MARGIN, drawn, title=run.experiment.name)


def _heading(run: ExperimentRun, width: float) -> tuple[list[Markup], float]:
    """The claim in English and Chinese and the number of seeds; and where they end."""
    claim, seeds = run.experiment.claim, len(run.seeds)
    drawn, top = heading(run.experiment.name, claim.en, width)
    # Chinese has no spaces; a line may break anywhere but before punctuation.
    pieces = re.findall(r"[!-~]+ ?|.[，。；：、）]*", claim.zh)
    below = [line.strip() for line in folded(pieces, width, TEXT, between="")]
    if seeds > 1:
        below.append(f"{seeds} seeds: mean, least and greatest · {seeds} 个种子：均值、最小和最大")
    elif seeds == 1:
        below.append("1 seed · 1 个种子")
    drawn += [words(line, MARGIN, top - 10 + LINE * row, "soft") for row, line in enumerate(below, 1)]
    return drawn, top + LINE * len(below)


def _stacked(label: Label, x: float, y: float, colour: str = "ink") -> Iterator[Markup]:
    """A label, with the Chinese small below the English."""
    yield words(label_in("en", label), x, y, colour)
    if isinstance(label, Both):
        yield words(label.zh, x, y + SMALL_LINE, colour, SMALL)


def _names(lines: Sequence[Line]) -> list[Label]:
    """The labels of lines; with many lines, both languages in one row."""
    return [in_both(line.name, " ") if len(lines) >= CROWD else line.name for line in lines]


def _chart(chart: Chart, outer: Box) -> Iterator[Markup]:
    assert len(chart.lines) <= len(STROKES), f"{chart.name}: {len(chart.lines)} lines are too many"
    heights = np.array([value for line in chart.lines for y in line.y for value in y.values])
    y = covering(heights, outer.bottom, outer.top, log=chart.log_y)
    ticks = y.ticks(6)
    left = outer.left + max(text_width(tick_label(tick), SMALL) for tick in ticks) + 8
    rows = [label_in(language, name) for name in _names(chart.lines) for language in ("en", "zh")]
    beside = max(text_width(row, TEXT) for row in rows) + 12
    box = Box(left, outer.top, outer.right - beside - left, outer.height)
    places = np.array([x for line in chart.lines for x in line.x])
    x = _across(places, box, log=chart.log_x)
    yield from _stacked(chart.name, outer.left, outer.top - 10 - SMALL_LINE)
    yield from _axes(box, x, y, (_ticks(x, places), ticks), in_both(chart.x_name))
    for line, stroke in zip(chart.lines, STROKES, strict=False):
        yield from _line(line, x, y, *stroke)
    yield from _labels(chart.lines, y, box)


def _across(places: np.ndarray, box: Box, *, log: bool) -> Scale:
    """The x axis; a single place is in the middle."""
    low, high = float(places.min()), float(places.max())
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
    return Scale(low, high, box.left + 4, box.right, log=log)


def _ticks(x: Scale, places: np.ndarray) -> Sequence[float]:
    """The places of the lines if most of them have room, otherwise round numbers."""
    own = sorted({*places.tolist()})
    roomy = own[:1]
    for place in own[1:]:
        if x.at(place) - x.at(roomy[-1]) >= APART:
            roomy.append(place)
    return roomy if 2 * len(roomy) > len(own) else x.ticks(6)


def _axes(
    box: Box, x: Scale, y: Scale, ticks: tuple[Sequence[float], Sequence[float]], x_name: str
) -> Iterator[Markup]:
    """A light grid with numbers, and the name of the x axis."""
    for tick in ticks[1]:
        at = y.at(tick)
        yield element("path", d=f"M{number(box.left)} {number(at)}H{number(box.right)}", class_="grid-line")
        yield words(tick_label(tick), box.left - 8, at + 4, "soft", SMALL, text_anchor="end")
    for tick in ticks[0]:
        at = x.at(tick)
        yield element("path", d=f"M{number(at)} {number(box.bottom)}v4", class_="soft-line")
        yield words(tick_label(tick), at, box.bottom + 17, "soft", SMALL, text_anchor="middle")
    yield element(
        "path", d=f"M{number(box.left)} {number(box.bottom)}H{number(box.right)}", class_="soft-line"
    )
    middle = (box.left + box.right) / 2
    yield words(x_name, middle, box.bottom + 34, "soft", text_anchor="middle")


def _line(line: Line, x: Scale, y: Scale, colour: str, dashes: str) -> Iterator[Markup]:
    """The mean over the seeds, with dots if there are few places, and the band of all seeds."""
    xs = x(np.array(line.x, dtype=np.float64))
    low, mean, high = (
        y(np.array([getattr(value, name) for value in line.y])) for name in ("low", "mean", "high")
    )
    if not np.array_equal(low, high):
        there = [f"{number(a)} {number(b)}" for a, b in zip(xs, high, strict=True) if np.isfinite(b)]
        back = [f"{number(a)} {number(b)}" for a, b in zip(xs, low, strict=True) if np.isfinite(b)]
        yield element("path", d=f"M{'L'.join(there + back[::-1])}Z", class_=colour, fill_opacity=0.15)
    dashed = {"stroke_dasharray": dashes} if dashes else {}
    yield element(
        "path",
        d=line_path(xs, mean),
        class_=f"{colour}-line",
        stroke_width=2,
        stroke_linecap="round",
        **dashed,
    )
    if len(xs) <= 20:
        for a, b in zip(xs, mean, strict=True):
            if np.isfinite(b):
                yield element("circle", cx=float(a), cy=float(b), r=2.5, class_=colour)


def _labels(lines: Sequence[Line], y: Scale, box: Box) -> Iterator[Markup]:
    """The labels of lines, at their ends."""
    ends = []
    for line in lines:
        finite = [value.mean for value in line.y if np.isfinite(value.mean)]
        ends.append(y.at(finite[-1]) if finite else box.top)
    names = _names(lines)
    second = SMALL_LINE if any(isinstance(name, Both) for name in names) else 0.0
    places = spread(ends, LINE + second, box.top, box.bottom - second)
    for name, (colour, _), place in zip(names, STROKES, places, strict=False):
        yield from _stacked(name, box.right + 10, place + 4, colour)
