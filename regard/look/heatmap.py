"""Attention as a picture: a row for each token written, a column for each token read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, cos, log, radians, sin

import numpy as np
from numpy.typing import ArrayLike

from regard.errors import ShapeError
from regard.look.axes import tick_label
from regard.look.shades import LEVELS, level, shades_style
from regard.look.svg import Markup, document, element, folded, text_width

MARGIN, GAP = 20.0, 22.0
TITLE, TEXT, LINE = 17.0, 12.0, 16.0
CELL = 22.0
WIDEST_CELL = 44.0
"""Up to here a column widens to hold its word upright; beyond, all words lean."""
LEAN = 50.0
"""Degrees."""
NARROWEST = 360.0
"""Room that the heading has at least."""
ASPECT = 1.6
"""Width by height that a grid of heads comes near to."""


def heatmap_svg(weights: ArrayLike, rows: Sequence[str], columns: Sequence[str], title: str) -> str:
    """Draw the weights of one head, or of a mean of several.

    Args:
        weights: (rows, columns), none below zero.
        rows: the tokens written, from the first to the last.
        columns: the tokens read.
        title: stands above the picture.

    Raises:
        ShapeError: the weights do not have a row for each row and a column for each column.
    """
    weights_LM = np.asarray(weights, dtype=np.float64)
    if weights_LM.ndim != 2:
        raise ShapeError("weights", "rows by columns", weights_LM.shape)
    return heatmaps_svg(weights_LM[None], rows, columns, title, names=[""])


def heatmaps_svg(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    names: Sequence[str] | None = None,
) -> str:
    """Draw the weights of several heads side by side, on one scale.

    Args:
        weights: (heads, rows, columns), none below zero.
        rows: the tokens written, from the first to the last.
        columns: the tokens read.
        title: stands above the picture.
        names: one for each head; else they are numbered from 1.

    Raises:
        ShapeError: the weights do not fit the names, the rows or the columns.
    """
    weights_HLM = np.asarray(weights, dtype=np.float64)
    heads = len(weights_HLM) if weights_HLM.ndim else 0
    names = [f"head {head + 1}" for head in range(heads)] if names is None else list(names)
    _check(weights_HLM, names, rows, columns)
    grid = _Grid.of(names, rows, columns)
    most = _round_up(float(weights_HLM.max()))
    width = max(grid.width, NARROWEST)
    heading, top = _heading(title, width)
    children = [*heading, *_legend(top, most)]
    top += 28
    children += _words(grid, top)
    for head in range(heads):
        children += _panel(grid, head, weights_HLM[head], most, top)
    height = top + grid.height + MARGIN
    return document(width + 2 * MARGIN, height, children, title=title, style=shades_style())


def _check(
    weights_HLM: np.ndarray, names: Sequence[str], rows: Sequence[str], columns: Sequence[str]
) -> None:
    expected = (len(names), len(rows), len(columns))
    if 0 in expected:
        raise ShapeError("weights", "at least one head, one row and one column", expected)
    if weights_HLM.shape != expected:
        raise ShapeError("weights", f"{expected}: heads, rows, columns", weights_HLM.shape)
    if not np.isfinite(weights_HLM).all() or weights_HLM.min() < 0:
        raise ShapeError("weights", "finite numbers from zero up", "others among them")


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where everything stands. Panels in a column share the words above, those in a row the words beside."""

    names: Sequence[str]
    rows: Sequence[str]
    columns: Sequence[str]
    across: int
    down: int
    cell: float
    """Width of a cell; its height is fixed."""
    panel: tuple[float, float]
    stride: tuple[float, float]
    """From one panel to the next."""
    beside: float
    """Room for the words at the left."""
    above: float
    overhang: float
    """How far words reach beyond the last panel. Between panels they lean alike, and never meet."""
    leaning: bool

    @classmethod
    def of(cls, names: Sequence[str], rows: Sequence[str], columns: Sequence[str]) -> _Grid:
        """Measure the words, then choose how many panels stand side by side."""
        widths = [text_width(word, TEXT) for word in columns]
        leaning = max(widths) + 6 > WIDEST_CELL
        cell = CELL if leaning else max(CELL, max(widths) + 6)
        panel = (cell * len(columns), CELL * len(rows))
        name = max(text_width(word, TEXT) for word in names)
        stride = (max(panel[0], name) + GAP, panel[1] + GAP + (LINE if name else 0.0))
        reaches = [(j + 0.5) * cell + width * cos(radians(LEAN)) + TEXT for j, width in enumerate(widths)]
        across = _across(len(names), stride)
        return cls(
            names=names,
            rows=rows,
            columns=columns,
            across=across,
            down=ceil(len(names) / across),
            cell=cell,
            panel=panel,
            stride=stride,
            beside=max(text_width(word, TEXT) for word in rows) + 8,
            above=(max(widths) * sin(radians(LEAN)) + TEXT if leaning else LINE) + 6,
            overhang=max(0.0, max(reaches) - stride[0] + GAP) if leaning else 0.0,
            leaning=leaning,
        )

    @property
    def width(self) -> float:
        return self.beside + self.across * self.stride[0] - GAP + self.overhang

    @property
    def height(self) -> float:
        return self.above + self.down * self.stride[1] - GAP

    def place(self, head: int) -> tuple[float, float]:
        """The upper left corner of a head's cells, below the heading."""
        down, across = divmod(head, self.across)
        return MARGIN + self.beside + across * self.stride[0], self.above + down * self.stride[1]


def _across(heads: int, stride: tuple[float, float]) -> int:
    """How many panels side by side come nearest to a page, with few empty places."""

    def odd(across: int) -> float:
        down = ceil(heads / across)
        shape = across * stride[0] / (down * stride[1])
        return abs(log(shape / ASPECT)) + (across * down - heads) / heads

    return min(range(1, heads + 1), key=odd)


def _round_up(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten; weights that are all zero are drawn on a scale to 1."""
    if value <= 0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(value))
    return float(next(f"{m * decade:.12g}" for m in (1, 2, 5, 10) if value <= m * decade * (1 + 1e-9)))


def _heading(title: str, width: float) -> tuple[list[Markup], float]:
    drawn, top = [], MARGIN
    for line in folded(title, width, 1.1 * TITLE):  # bold letters are wider
        top += TITLE + 4
        drawn.append(
            element("text", line, x=MARGIN, y=top - 4, class_="ink", font_size=TITLE, font_weight=600)
        )
    for line in folded("a row: a token written · a column: a token read", width, TEXT):
        top += LINE
        drawn.append(_text(line, "soft", x=MARGIN, y=top))
    return drawn, top + 10


def _legend(top: float, most: float) -> Iterator[Markup]:
    """The scale, with its two ends."""
    left = MARGIN + text_width("0", TEXT) + 6
    strip = 160.0 / LEVELS
    yield _text("0", "soft", x=MARGIN, y=top + 10)
    for i in range(LEVELS):
        # A little wider than a step: no seams.
        yield element("rect", x=left + i * strip, y=top, width=strip + 0.5, height=12, class_=f"s{i}")
    yield element("rect", x=left, y=top, width=160.5, height=12, class_="grid-line")
    yield _text(tick_label(most), "soft", x=left + 168, y=top + 10)


def _words(grid: _Grid, top: float) -> Iterator[Markup]:
    """The tokens read, above the first row of panels, and the tokens written, beside the first column."""
    for head in range(grid.across):
        left, down = grid.place(head)
        for j, word in enumerate(grid.columns):
            x, y = left + (j + 0.5) * grid.cell, top + down - 8
            lean = {"transform": f"translate({x + 4:.2f} {y:.2f}) rotate(-{LEAN:g})"}
            upright = {"x": x, "y": y, "text_anchor": "middle"}
            yield _text(word, "ink", **(lean if grid.leaning else upright))
    for head in range(0, grid.across * grid.down, grid.across):
        left, down = grid.place(head)
        for i, word in enumerate(grid.rows):
            y = top + down + (i + 0.5) * CELL + 4
            yield _text(word, "ink", x=left - 8, y=y, text_anchor="end")


def _panel(grid: _Grid, head: int, weights_LM: np.ndarray, most: float, top: float) -> Iterator[Markup]:
    """One head: its cells, each with its value for whoever points at it, and its name."""
    left, down = grid.place(head)
    top += down
    width, height = grid.panel
    for i, row in enumerate(grid.rows):
        for j, column in enumerate(grid.columns):
            yield element(
                "rect",
                element("title", f"{row} ← {column}: {weights_LM[i, j]:.4f}"),
                x=left + j * grid.cell,
                y=top + i * CELL,
                width=grid.cell - 1,
                height=CELL - 1,
                class_=f"s{level(weights_LM[i, j], most)}",
            )
    yield element("rect", x=left - 1, y=top - 1, width=width + 1, height=height + 1, class_="grid-line")
    if grid.names[head]:
        yield _text(grid.names[head], "soft", x=left, y=top + height + LINE)


def _text(words: str, colour: str, **attributes: object) -> Markup:
    return element("text", words, class_=colour, font_size=TEXT, **attributes)
