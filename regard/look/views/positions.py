"""View of positions: the encoding of every position, and the similarity of positions by distance (3.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.errors import RequestError
from regard.look.figures.axes import Scale, line_path, round_ticks
from regard.look.figures.colours import BOTH_WAYS
from regard.look.figures.heatmap import image, round_up
from regard.look.figures.svg import (
    LINE,
    MARGIN,
    SMALL,
    Box,
    Markup,
    document,
    element,
    heading,
    text_width,
    tick_label,
    words,
)
from regard.look.trace.blocks import side_of
from regard.look.trace.data import TraceData
from regard.look.views.view import Choice, Screen, Table, View

POSITIONS = 64
"""Positions shown of a formula; more for a longer text."""
WIDTH = 560.0
TALLEST, ROW = 320.0, 6.0
"""Height of the encoding, and of one of its rows as long as all fit."""
CURVE = 150.0
TERMINAL = (64, 24)
"""Cells and lines of the encoding on a terminal."""
NOTE = "rows: positions · columns: dimensions"


@dataclass(frozen=True, eq=False, slots=True)
class Encoding:
    """One vector per position."""

    name: str
    note: str
    values: np.ndarray
    """(positions, dimensions)."""

    @property
    def by_distance(self) -> np.ndarray:
        """The mean dot product of two positions, by their distance from 0 upwards."""
        products = self.values @ self.values.T
        means: np.ndarray = np.stack([np.diagonal(products, i).mean() for i in range(len(products))])
        return means


def encoding_of(trace: TraceData) -> Encoding:
    """The position encoding of a trace's model.

    Raises:
        RequestError: the model has none that could be shown.
    """
    config = trace.config
    longest = max(len(side) for side in (trace.inputs, trace.outputs) if side is not None)
    match config.positions:
        case "sinusoidal":
            name, note = "sinusoidal positions", f"sines and cosines, d_model = {config.d_model}"
            return Encoding(name, note, sinusoids(max(POSITIONS, longest), config.d_model))
        case "rotary":
            name, note = "rotary positions", f"rotations of queries and keys, d_k = {config.key_width}"
            return Encoding(name, note, sinusoids(max(POSITIONS, longest), config.key_width))
    side = "encoder" if trace.inputs is not None else "decoder"
    values_ND = trace.arrays.get(f"{side_of(side)}_embedding.positions")
    if values_ND is None:
        what = f"model.positions = {config.positions} has no vector per position to show"
        raise RequestError(what, code="nothing_to_show")
    return Encoding(f"{config.positions} positions", "the vectors of this text's positions", values_ND)


def sinusoids(n: int, width: int) -> np.ndarray:
    """PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i+1) = cos(pos / 10000^(2i / width))."""
    even = np.arange(0, width, 2)
    angles = np.arange(n)[:, None] * 10000.0 ** (-even / width)
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(n, -1)


def positions_svg(trace: TraceData, choice: Choice) -> str:  # noqa: ARG001
    """Draw the encoding, one row per position, and below it the mean dot product by distance."""
    encoding = encoding_of(trace)
    n, width = encoding.values.shape
    most = round_up(float(np.abs(encoding.values).max()))
    drawn, top = heading(encoding.name, encoding.note, WIDTH, BOTH_WAYS, most)
    top += LINE
    beside = text_width(f"{n:,}", SMALL) + 22
    box = Box(MARGIN + beside, top, WIDTH - beside, min(TALLEST, max(60.0, n * ROW)))
    drawn.append(words(NOTE, box.left, top - 6, "soft", SMALL))
    drawn += image(encoding.values, BOTH_WAYS, most, box)
    # A tick points at the middle of its row or column.
    drawn += _ticks(box, Scale(-0.5, width - 0.5, box.left, box.right), Scale(-0.5, n - 0.5, top, box.bottom))
    top = box.bottom + 2 * LINE + 14
    drawn.append(words("mean dot product of two positions, by distance", MARGIN, top, "ink"))
    box = Box(box.left, top + 12, box.width, CURVE)
    drawn += _curve(encoding, box)
    height = box.bottom + 2 * LINE + MARGIN
    return document(WIDTH + 2 * MARGIN, height, drawn, title=encoding.name, style=BOTH_WAYS.style)


def _curve(encoding: Encoding, box: Box) -> Iterator[Markup]:
    means = encoding.by_distance
    low, high = min(0.0, float(means.min())), max(float(means.max()), 1e-9)
    x = Scale(0, max(1, len(means) - 1), box.left, box.right)
    y = Scale(low, high * 1.05, box.bottom, box.top)
    yield from _ticks(box, x, y)
    d = line_path(x(np.arange(len(means), dtype=np.float64)), y(means))
    yield element("path", d=d, class_="blue-line", stroke_width=2, stroke_linecap="round")
    yield words("distance →", box.left, box.bottom + 2 * LINE, "soft", SMALL)


def _ticks(box: Box, x: Scale, y: Scale) -> Iterator[Markup]:
    yield element("rect", x=box.left, y=box.top, width=box.width, height=box.height, class_="grid-line")
    for tick in round_ticks(x.low, x.high, 8, least_step=1):
        at = x.at(tick)
        yield element("path", d=f"M{at:.2f} {box.bottom:.2f}v4", class_="soft-line")
        yield words(tick_label(tick), at, box.bottom + 17, "soft", SMALL, text_anchor="middle")
    for tick in y.ticks(6):
        at = y.at(tick)
        yield element("path", d=f"M{box.left - 4:.2f} {at:.2f}h4", class_="soft-line")
        yield words(tick_label(tick), box.left - 8, at + 4, "soft", SMALL, text_anchor="end")


def _table(trace: TraceData, choice: Choice) -> Table:  # noqa: ARG001
    values = encoding_of(trace).values
    n, width = values.shape
    return Table(values, {"position": [*map(str, range(n))], "dimension": [*map(str, range(width))]})


def _screen(trace: TraceData, choice: Choice) -> Screen:  # noqa: ARG001
    from regard.look.figures.terminal import SmallHeatMap

    encoding = encoding_of(trace)
    most = float(np.abs(encoding.values).max())
    drawn = SmallHeatMap(encoding.values, *TERMINAL, most=most, shades=BOTH_WAYS)
    return Screen(encoding.name, f"{encoding.note} · {NOTE}", drawn)


VIEWS = {"positions": View(positions_svg, _screen, _table)}
