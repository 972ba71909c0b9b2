"""The formula with one token's numbers: for each step what it says, and beside it what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from regard.look.figures.heatmap import round_up
from regard.look.figures.shades import BOTH_WAYS
from regard.look.figures.sheet import LINE, MARGIN, SMALL, TEXT, clipped, heading, words
from regard.look.figures.svg import Markup, document, element, folded, text_width
from regard.look.trace.tokens import shown
from regard.look.walk.walk import Step

Language = Literal["en", "zh"]

SAYING = 330.0
"""Room for the formula and its sentence."""
CELL, HEIGHT = 58.0, 22.0
SHOWN = 10
"""Numbers of a vector, or rows, that are written out; of the others, how many they are."""
LONGEST_WORD = 84.0
NOTE: dict[Language, str] = {
    "en": "every line follows from those above it · of a long vector, the first numbers",
    "zh": "每一行都可由上面各行算出 · 长向量只列出开头的几个数",
}
MORE: dict[Language, str] = {"en": "and {n} more", "zh": "另有 {n} 个"}


def walk_svg(steps: Sequence[Step], title: str, language: Language = "en") -> str:
    """Draw the steps of `Trace.walk` below each other."""
    width = SAYING + 20 + LONGEST_WORD + SHOWN * CELL + text_width(MORE["en"].format(n=9999), SMALL) + 12
    drawn, top = heading(title, NOTE[language], width)
    for step in steps:
        drawn.append(element("path", d=f"M{MARGIN:g} {top:.2f}h{width:.2f}", class_="grid-line"))
        said, left_end = _saying(step, top, language)
        numbers, right_end = _numbers(step, top + 8, language)
        drawn += [*said, *numbers]
        top = max(left_end, right_end) + 10
    return document(width + 2 * MARGIN, top + MARGIN, drawn, title=title, style=BOTH_WAYS.style)


def _saying(step: Step, top: float, language: Language) -> tuple[list[Markup], float]:
    drawn, y = [], top + 6
    named = step.formula.split(" = ")[0] == step.name
    for line in folded(step.formula if named else f"{step.name}: {step.formula}", SAYING, 1.1 * TEXT):
        y += LINE
        drawn.append(words(line, MARGIN, y, font_weight=600))
    sentence = step.english if language == "en" else step.chinese
    for line in folded(sentence, SAYING, TEXT):
        y += LINE
        drawn.append(words(line, MARGIN, y, "soft"))
    return drawn, y


def _numbers(step: Step, top: float, language: Language) -> tuple[list[Markup], float]:
    """A vector in one line, or one number for each key or candidate; of a matrix, a line for each row."""
    rows = [shown(name) for name in step.rows]
    values, left = np.asarray(step.values, dtype=np.float64), MARGIN + SAYING + 20 + LONGEST_WORD
    finite = np.abs(values[np.isfinite(values)])
    most = round_up(float(finite.max())) if finite.size else 1.0
    if values.ndim == 2:
        drawn, y = [], top
        for name, row in zip(rows[:SHOWN], values[:SHOWN], strict=False):
            word = clipped(name, LONGEST_WORD - 8)
            drawn.append(words(word, left - 8, y + 15, "soft", text_anchor="end"))
            drawn += [*_cells(row, left, y, most), *_more(len(row), left, y + 15, language)]
            y += HEIGHT
        drawn += _more(len(values), left - CELL * SHOWN, y + 15, language) if len(values) > SHOWN else []
        return drawn, y + (LINE if len(values) > SHOWN else 0)
    row = np.atleast_1d(values)
    drawn, y = [], top
    if rows:
        for i, name in enumerate(rows[:SHOWN]):
            middle = left + (i + 0.5) * CELL
            drawn.append(words(clipped(name, CELL - 4), middle, y + 12, "soft", text_anchor="middle"))
        y += LINE
    drawn += [*_cells(row, left, y, most), *_more(len(row), left, y + 15, language)]
    return drawn, y + HEIGHT


def _cells(row: np.ndarray, left: float, top: float, most: float) -> Iterator[Markup]:
    for i, value in enumerate(row[:SHOWN].tolist()):
        x = left + i * CELL
        known = bool(np.isfinite(value))
        shade = f"d{BOTH_WAYS.level(value if known else 0.0, most)}"
        size = {"x": x, "y": top, "width": CELL - 1, "height": HEIGHT - 1}
        yield element("rect", element("title", f"{value:.6g}"), **size, class_=shade)
        colour = BOTH_WAYS.ink_on(value, most) if known else "ink"
        yield words(_written(value), x + CELL / 2, top + 15, colour, SMALL, text_anchor="middle")


def _written(value: float) -> str:
    if not np.isfinite(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:.3f}".replace("-", "−") if abs(value) < 1000 else f"{value:.3g}".replace("-", "−")


def _more(n: int, left: float, y: float, language: Language) -> Iterator[Markup]:
    if n > SHOWN:
        yield words(MORE[language].format(n=n - SHOWN), left + SHOWN * CELL + 8, y, "soft", SMALL)
