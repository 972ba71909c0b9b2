"""What one token hangs on, by several measures: a row for each, shaded by its own largest number."""

from __future__ import annotations

from regard.look.figures.cells import rectangles
from regard.look.figures.grid import Grid
from regard.look.figures.shades import BOTH_WAYS
from regard.look.figures.sheet import LEGEND, MARGIN, NARROWEST, heading, scale_of
from regard.look.figures.svg import document
from regard.look.influence.measured import Measured

NOTE = "a row: a measure, by its own largest number · blue: made it likelier, or was looked at"


def influence_svg(found: Measured, title: str, changes: str = "") -> str:
    """Draw the numbers of every measure that there is, the real ones for whoever points at a cell."""
    grid = Grid.of([""], found.methods, found.tokens)
    width = max(grid.width, NARROWEST)
    drawn, top = heading(title, f"influence on “{found.on}” · {NOTE}{changes}", width)
    drawn += scale_of(BOTH_WAYS, 1.0, top)
    top += LEGEND

    def told(i: int, j: int) -> str:
        return f"{found.methods[i]}, {found.tokens[j]}: {found.values[i, j]:+.4f}"

    drawn += rectangles(found.shares, BOTH_WAYS, 1.0, grid.place(0, top), told)
    drawn += grid.labels(top)
    height = top + grid.height + MARGIN
    return document(width + 2 * MARGIN, height, drawn, title=title, style=BOTH_WAYS.style)
