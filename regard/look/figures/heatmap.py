"""Attention as a picture: a row for each token written, a column for each token read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from regard.errors import ShapeError
from regard.look.figures.cells import MOST_RECTANGLES, image, rectangles
from regard.look.figures.grid import Grid
from regard.look.figures.shades import ONE_WAY
from regard.look.figures.sheet import LEGEND, MARGIN, NARROWEST, Box, heading, scale_of
from regard.look.figures.svg import Markup, document

NOTE = "a row: a token written · a column: a token read"


def heatmap_svg(
    weights: ArrayLike, rows: Sequence[str], columns: Sequence[str], title: str, note: str = NOTE
) -> str:
    """Draw the weights of one head, or of a mean of several.

    Args:
        weights: (rows, columns), none below zero.
        rows: the tokens written, from the first to the last.
        columns: the tokens read.
        title: stands above the picture.
        note: what is seen, below the title.

    Raises:
        ShapeError: the weights do not have a row for each row and a column for each column.
    """
    weights_LM = np.asarray(weights, dtype=np.float64)
    if weights_LM.ndim != 2:
        raise ShapeError("weights", "rows by columns", weights_LM.shape)
    return heatmaps_svg(weights_LM[None], rows, columns, title, names=[""], note=note)


def heatmaps_svg(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    names: Sequence[str] | None = None,
    note: str = NOTE,
) -> str:
    """Draw the weights of several heads side by side, on one scale.

    Args:
        weights: (heads, rows, columns), none below zero.
        rows: the tokens written, from the first to the last.
        columns: the tokens read.
        title: stands above the picture.
        names: one for each head; else they are numbered from 0.
        note: what is seen, below the title.

    Raises:
        ShapeError: the weights do not fit the names, the rows or the columns.
    """
    weights_HLM = np.asarray(weights, dtype=np.float64)
    heads = len(weights_HLM) if weights_HLM.ndim else 0
    names = [f"head {head}" for head in range(heads)] if names is None else list(names)
    _check(weights_HLM, names, rows, columns)
    grid = Grid.of(names, rows, columns)
    most = round_up(float(weights_HLM.max()))
    width = max(grid.width, NARROWEST)
    drawn, top = heading(title, note, width)
    drawn += scale_of(ONE_WAY, most, top)
    top += LEGEND
    for head in range(heads):
        if weights_HLM.size <= MOST_RECTANGLES:
            drawn += _told(weights_HLM[head], rows, columns, most, grid.place(head, top))
        else:
            drawn += image(weights_HLM[head], ONE_WAY, most, grid.place(head, top))
    drawn += grid.labels(top)
    height = top + grid.height + MARGIN
    return document(width + 2 * MARGIN, height, drawn, title=title, style=ONE_WAY.style)


def round_up(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten; weights that are all zero are drawn on a scale to 1."""
    if value <= 0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(value))
    return float(next(f"{m * decade:.12g}" for m in (1, 2, 5, 10) if value <= m * decade * (1 + 1e-9)))


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


def _told(
    weights_LM: np.ndarray, rows: Sequence[str], columns: Sequence[str], most: float, box: Box
) -> Iterator[Markup]:
    """One head: its cells, each with its value for whoever points at it."""

    def told(i: int, j: int) -> str:
        return f"{rows[i]} ← {columns[j]}: {weights_LM[i, j]:.4f}"

    yield from rectangles(weights_LM, ONE_WAY, most, box, told)
