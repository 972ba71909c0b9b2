"""Where the cells of one or several matrices stand, and the words around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, cos, log, radians, sin

from regard.look.figures.sheet import GAP, LINE, MARGIN, TEXT, Box, clipped, words
from regard.look.figures.svg import Markup, element, text_width

CELL = 22.0
SMALLEST_CELL = 4.0
WIDEST_CELL = 44.0
"""Up to here a column widens to hold its word upright; beyond, all words lean."""
LONGEST_WORD = 160.0
"""Pixels; what is longer is cut."""
ROOMY = 60
"""Rows or columns up to which cells have their full size."""
LONGEST_SIDE = ROOMY * CELL
"""Beyond, they shrink to fit into this, as far as they can."""
LEAN = 50.0
"""Degrees."""
ASPECT = 1.6
"""Width by height that a grid comes near to."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Panels in a column share the words above, those in a row the words beside."""

    names: Sequence[str]
    rows: Sequence[str]
    columns: Sequence[str]
    across: int
    down: int
    cell: tuple[float, float]
    """Width and height."""
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
    def of(cls, names: Sequence[str], rows: Sequence[str], columns: Sequence[str]) -> Grid:
        """Measure the words, then choose how many panels stand side by side."""
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
        """Of everything, words included."""
        return self.beside + self.across * self.stride[0] - GAP + self.overhang

    @property
    def height(self) -> float:
        """Of everything, words included."""
        return self.above + self.down * self.stride[1] - GAP

    def place(self, panel: int, top: float) -> Box:
        """The cells of one panel, in a grid that begins at `top`."""
        down, across = divmod(panel, self.across)
        left = MARGIN + self.beside + across * self.stride[0]
        return Box(left, top + self.above + down * self.stride[1], *self.panel)

    def labels(self, top: float) -> Iterator[Markup]:
        """Words above the first row of panels and beside the first column; names and frames everywhere."""
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
    """How many panels side by side come nearest to a page, with few empty places."""

    def odd(across: int) -> float:
        down = ceil(panels / across)
        shape = across * stride[0] / (down * stride[1])
        return abs(log(shape / ASPECT)) + (across * down - panels) / panels

    return min(range(1, panels + 1), key=odd)
