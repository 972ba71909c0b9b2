"""Heat maps as SVG: matrices as cells, several panels in a grid, and the names of rows and columns."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, cos, log, radians, sin

import numpy as np
from numpy.typing import ArrayLike

from regard.errors import ShapeError
from regard.look.figures.colours import ONE_WAY, STYLE, Shades
from regard.look.figures.svg import (
    GAP,
    LINE,
    MARGIN,
    NARROWEST,
    TEXT,
    Box,
    Markup,
    clipped,
    document,
    element,
    heading,
    indexed_png,
    text_width,
    words,
)

CELL = 22.0
SMALLEST_CELL = 4.0
WIDEST_CELL = float(STYLE["matrix"]["cell"]["most"])
"""A column widens up to here to hold its name; with longer names, all of them lean."""
LONGEST_WORD = 160.0
"""Pixels; longer names are cut."""
ROOMY = 60
"""Up to this number of rows or columns, cells have their full size."""
LONGEST_SIDE = ROOMY * CELL
"""With more, cells shrink to fit into this."""
LEAN = float(STYLE["matrix"]["label_angle"])
"""Degrees."""
ASPECT = 1.6
"""Preferred width by height of a grid of panels."""
MOST_RECTANGLES = int(STYLE["matrix"]["most_rectangles"])
"""Cells of one picture that are drawn as rectangles; browsers are slow with many more."""
MOST_POOLED = 160
"""Rows and columns of a thumbnail."""

Tooltip = Callable[[int, int], str]
"""The tooltip of a cell, by its row and its column."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Panels side by side: column names above the first row of panels, row names beside the first column."""

    names: Sequence[str]
    rows: Sequence[str]
    columns: Sequence[str]
    across: int
    down: int
    cell: tuple[float, float]
    """Width and height."""
    panel: tuple[float, float]
    stride: tuple[float, float]
    """Distance from one panel to the next."""
    beside: float
    """Width of the row names."""
    above: float
    """Height of the column names."""
    overhang: float
    """How far leaning column names reach beyond the last panel."""
    leaning: bool

    @classmethod
    def of(cls, names: Sequence[str], rows: Sequence[str], columns: Sequence[str]) -> Grid:
        """Measure the names, then choose the number of panels side by side."""
        rows, columns = ([clipped(word, LONGEST_WORD) for word in side] for side in (rows, columns))
        widths = [text_width(word, TEXT) for word in columns]
        leaning = max(widths) + 6 > WIDEST_CELL or len(columns) > ROOMY
        cell = _cell_of(len(columns)) if leaning else max(CELL, max(widths) + 6), _cell_of(len(rows))
        panel = (cell[0] * len(columns), cell[1] * len(rows))
        name = max(text_width(word, TEXT) for word in names)
        stride = (max(panel[0], name) + GAP, panel[1] + GAP + (LINE if name else 0.0))
        reaches = [(j + 0.5) * cell[0] + width * cos(radians(LEAN)) + TEXT for j, width in enumerate(widths)]
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
        """Including the names."""
        return self.beside + self.across * self.stride[0] - GAP + self.overhang

    @property
    def height(self) -> float:
        """Including the names."""
        return self.above + self.down * self.stride[1] - GAP

    def place(self, panel: int, top: float) -> Box:
        """Where the cells of a panel are, in a grid that begins at `top`."""
        down, across = divmod(panel, self.across)
        left = MARGIN + self.beside + across * self.stride[0]
        return Box(left, top + self.above + down * self.stride[1], *self.panel)

    def labels(self, top: float) -> Iterator[Markup]:
        """Column names, row names, and the name and frame of every panel."""
        for panel in range(self.across):
            yield from self._above(self.place(panel, top))
        for panel in range(0, self.across * self.down, self.across):
            yield from self._beside(self.place(panel, top))
        for panel, name in enumerate(self.names):
            box = self.place(panel, top)
            size = {"width": box.width + 1, "height": box.height + 1}
            yield element("rect", x=box.left - 1, y=box.top - 1, **size, class_="grid-line")
            if name:
                yield words(name, box.left, box.bottom + LINE, "soft")

    def _above(self, box: Box) -> Iterator[Markup]:
        for j in range(0, len(self.columns), ceil(LINE / self.cell[0])):
            x, y = box.left + (j + 0.5) * self.cell[0], box.top - 8
            if self.leaning:
                lean = f"translate({x + 4:.2f} {y:.2f}) rotate(-{LEAN:g})"
                yield element("text", self.columns[j], class_="ink", font_size=TEXT, transform=lean)
            else:
                yield words(self.columns[j], x, y, text_anchor="middle")

    def _beside(self, box: Box) -> Iterator[Markup]:
        for i in range(0, len(self.rows), ceil(LINE / self.cell[1])):
            yield words(self.rows[i], box.left - 8, box.top + (i + 0.5) * self.cell[1] + 4, text_anchor="end")


def _cell_of(n: int) -> float:
    return min(CELL, max(SMALLEST_CELL, LONGEST_SIDE / n))


def _across(panels: int, stride: tuple[float, float]) -> int:
    """The number of panels side by side that comes nearest to `ASPECT`, with few empty places."""

    def odd(across: int) -> float:
        down = ceil(panels / across)
        shape = across * stride[0] / (down * stride[1])
        return abs(log(shape / ASPECT)) + (across * down - panels) / panels

    return min(range(1, panels + 1), key=odd)


def rectangles(
    values_LM: np.ndarray, shades: Shades, most: float, box: Box, tooltip: Tooltip
) -> Iterator[Markup]:
    """One rectangle per cell, one pixel apart."""
    levels_LM = shades.levels_of(values_LM, most)
    height, width = box.height / len(values_LM), box.width / values_LM.shape[1]
    for i, j in np.ndindex(values_LM.shape):
        yield element(
            "rect",
            element("title", tooltip(i, j)),
            x=box.left + j * width,
            y=box.top + i * height,
            width=width - 1,
            height=height - 1,
            class_=f"{shades.letter}{levels_LM[i, j]}",
        )


def image(
    values_LM: np.ndarray, shades: Shades, most: float, box: Box, tooltip: str = ""
) -> Iterator[Markup]:
    """One pixel per cell, enlarged; once for light and once for dark mode."""
    levels_LM = shades.levels_of(values_LM, most)
    for palette, hour in ((shades.light, "day"), (shades.dark, "night")):
        data = b64encode(indexed_png(levels_LM, palette)).decode("ascii")
        yield element(
            "image",
            *([element("title", tooltip)] if tooltip else []),
            href=f"data:image/png;base64,{data}",
            x=box.left,
            y=box.top,
            width=box.width,
            height=box.height,
            preserveAspectRatio="none",
            image_rendering="optimizeSpeed",
            class_=f"{hour} cells",
        )


def sampled(values_LM: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """At most `rows` by `columns` values, evenly chosen: pooling would hide negative ones."""
    for axis, most in enumerate((rows, columns)):
        n = values_LM.shape[axis]
        if n > most:
            values_LM = values_LM.take(np.arange(most) * n // most, axis=axis)
    return values_LM


def max_pooled(values_LM: np.ndarray, rows: int = MOST_POOLED, columns: int = MOST_POOLED) -> np.ndarray:
    """At most `rows` by `columns` values: the largest of neighbours."""
    for axis, most in enumerate((rows, columns)):
        n = values_LM.shape[axis]
        if n > most:
            values_LM = np.maximum.reduceat(values_LM, np.arange(most) * n // most, axis=axis)
    return values_LM


NOTE: str = STYLE["axes"]["cross"]["en"]


def heatmap_svg(
    weights: ArrayLike, rows: Sequence[str], columns: Sequence[str], title: str, note: str = NOTE
) -> str:
    """Draw one matrix of weights.

    Args:
        weights: (rows, columns), none negative.
        rows: their names, the tokens written.
        columns: their names, the tokens read.
        title: above the picture.
        note: below the title.

    Raises:
        ShapeError: the weights do not fit the rows and the columns.
    """
    weights_LM = np.asarray(weights, dtype=np.float64)
    if weights_LM.ndim != 2:
        raise ShapeError("weights", "rows by columns", weights_LM.shape, code="bad_weights")
    return heatmaps_svg(weights_LM[None], rows, columns, title, names=[""], note=note)


def heatmaps_svg(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    names: Sequence[str] | None = None,
    note: str = NOTE,
    most: float | None = None,
) -> str:
    """Draw several matrices, (heads, rows, columns), side by side on one scale, as `heatmap_svg` does.

    The `names` of the heads are their numbers by default; `most` has the darkest shade, by default the
    largest weight, rounded up.
    """
    weights_HLM = np.asarray(weights, dtype=np.float64)
    heads = len(weights_HLM) if weights_HLM.ndim else 0
    names = [f"head {head}" for head in range(heads)] if names is None else list(names)
    _check(weights_HLM, names, rows, columns)
    grid = Grid.of(names, rows, columns)
    most = round_up(float(weights_HLM.max())) if most is None else most
    width = max(grid.width, NARROWEST)
    drawn, top = heading(title, note, width, ONE_WAY, most)
    for head in range(heads):
        weights_LM, box = weights_HLM[head], grid.place(head, top)
        if weights_HLM.size <= MOST_RECTANGLES:
            drawn += rectangles(weights_LM, ONE_WAY, most, box, _tooltip(weights_LM, rows, columns))
        else:
            drawn += image(weights_LM, ONE_WAY, most, box)
    drawn += grid.labels(top)
    height = top + grid.height + MARGIN
    return document(width + 2 * MARGIN, height, drawn, title=title, style=ONE_WAY.style)


def round_up(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten; 1 for 0, so that a scale has a length."""
    if value <= 0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(value))
    return float(next(f"{m * decade:.12g}" for m in (1, 2, 5, 10) if value <= m * decade * (1 + 1e-9)))


def _check(
    weights_HLM: np.ndarray, names: Sequence[str], rows: Sequence[str], columns: Sequence[str]
) -> None:
    sizes, got = (len(names), len(rows), len(columns)), weights_HLM.shape
    if 0 in sizes:
        expected: object = "at least one head, one row and one column"
    elif got != sizes:
        expected = f"{sizes}: heads, rows, columns"
    elif not np.isfinite(weights_HLM).all() or weights_HLM.min() < 0:
        expected = "finite numbers from zero up"
    else:
        return
    raise ShapeError("weights", expected, got, code="bad_weights")


def _tooltip(weights_LM: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Tooltip:
    return lambda i, j: f"{rows[i]} ← {columns[j]}: {weights_LM[i, j]:.4f}"
