"""How a model is told where a token stands: the encoding, and how alike places are by their distance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from regard.look.figures.axes import Scale, line_path, round_ticks, tick_label
from regard.look.figures.cells import image
from regard.look.figures.heatmap import round_up
from regard.look.figures.shades import BOTH_WAYS
from regard.look.figures.sheet import LEGEND, LINE, MARGIN, SMALL, Box, heading, scale_of, words
from regard.look.figures.svg import Markup, document, element, text_width
from regard.look.trace.positions import Encoding

WIDTH = 560.0
TALLEST, ROW = 320.0, 6.0
"""Of the encoding: a row has this height, as long as all fit."""
CURVE = 150.0


def positions_svg(encoding: Encoding) -> str:
    """Draw an encoding, a row for each position, and below it the mean product of places so far apart."""
    n, width = encoding.values.shape
    most = round_up(float(np.abs(encoding.values).max()))
    drawn, top = heading(encoding.name, encoding.note, WIDTH)
    drawn += scale_of(BOTH_WAYS, most, top)
    top += LEGEND + LINE
    beside = text_width(f"{n:,}", SMALL) + 22
    box = Box(MARGIN + beside, top, WIDTH - beside, min(TALLEST, max(60.0, n * ROW)))
    drawn.append(words("a row: a position · a column: a dimension", box.left, top - 6, "soft", SMALL))
    drawn += image(encoding.values, BOTH_WAYS, most, box)
    # A tick stands at the middle of its row or column.
    drawn += _ticks(box, Scale(-0.5, width - 0.5, box.left, box.right), Scale(-0.5, n - 0.5, top, box.bottom))
    top = box.bottom + 2 * LINE + 14
    drawn.append(words("mean product of two positions, by their distance", MARGIN, top, "ink"))
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
    places = np.arange(len(means), dtype=np.float64)
    d = line_path(x(places), y(means))
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
