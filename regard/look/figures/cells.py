"""A matrix as cells of one picture: rectangles that tell their values where they are few, else one image."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator

import numpy as np

from regard.look.figures.png import indexed_png
from regard.look.figures.shades import Shades
from regard.look.figures.sheet import Box
from regard.look.figures.svg import Markup, element

MOST_RECTANGLES = 4096
"""In one picture: a browser takes a second for some ten thousands, and each is a hundred bytes."""
MOST_POOLED = 160
"""Rows and columns of a thumbnail."""

Told = Callable[[int, int], str]
"""What to tell whoever points at a cell, by its row and its column."""


def rectangles(values_LM: np.ndarray, shades: Shades, most: float, box: Box, told: Told) -> Iterator[Markup]:
    """One rectangle a cell, with a hair between them."""
    levels_LM = shades.levels_of(values_LM, most)
    height, width = box.height / len(values_LM), box.width / values_LM.shape[1]
    for i, j in np.ndindex(values_LM.shape):
        yield element(
            "rect",
            element("title", told(i, j)),
            x=box.left + j * width,
            y=box.top + i * height,
            width=width - 1,
            height=height - 1,
            class_=f"{shades.letter}{levels_LM[i, j]}",
        )


def image(values_LM: np.ndarray, shades: Shades, most: float, box: Box, told: str = "") -> Iterator[Markup]:
    """One pixel a cell, drawn large; once for the day and once for the night."""
    levels_LM = shades.levels_of(values_LM, most)
    for palette, hour in ((shades.by_day, "day"), (shades.by_night, "night")):
        data = b64encode(indexed_png(levels_LM, palette)).decode("ascii")
        yield element(
            "image",
            *([element("title", told)] if told else []),
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
    """No larger than so many rows and columns, evenly chosen: signs make a largest one meaningless."""
    for axis, most in enumerate((rows, columns)):
        n = values_LM.shape[axis]
        if n > most:
            values_LM = values_LM.take(np.arange(most) * n // most, axis=axis)
    return values_LM


def max_pooled(values_LM: np.ndarray, rows: int = MOST_POOLED, columns: int = MOST_POOLED) -> np.ndarray:
    """No larger than so many rows and columns: neighbours share a cell, and the largest of them shows."""
    for axis, most in enumerate((rows, columns)):
        n = values_LM.shape[axis]
        if n > most:
            values_LM = np.maximum.reduceat(values_LM, np.arange(most) * n // most, axis=axis)
    return values_LM
