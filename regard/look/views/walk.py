"""View of a walk: each step of the formula with its sentence, and beside it the numbers of one token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from regard.look.figures.colours import BOTH_WAYS
from regard.look.figures.heatmap import round_up
from regard.look.figures.svg import (
    LINE,
    MARGIN,
    SMALL,
    TEXT,
    Markup,
    clipped,
    document,
    element,
    folded,
    heading,
    short_number,
    text_width,
    words,
)
from regard.look.trace.data import TraceData
from regard.look.trace.tokens import display_piece, visible
from regard.look.views.view import Choice, Records, Screen, View, place_name, title_of
from regard.look.walk import Step, walk

Language = Literal["en", "zh"]

SENTENCE = 330.0
"""Width of the formula and its sentence."""
CELL, HEIGHT = 58.0, 22.0
SHOWN = 10
"""Numbers of a vector, or rows, that are written out."""
LONGEST_WORD = 84.0
ON_TERMINAL = 4
"""Numbers of a vector, and rows, on a terminal."""
NOTE: dict[Language, str] = {
    "en": "every line follows from those above it · of a long vector, the first numbers",
    "zh": "每一行都可由上面各行算出 · 长向量只列出开头的几个数",
}
MORE: dict[Language, str] = {"en": "and {n} more", "zh": "另有 {n} 个"}


def chosen_walk(trace: TraceData, choice: Choice) -> tuple[list[Step], str]:
    """The steps of the chosen token in the first chosen head, and their title."""
    head = choice.heads[0]
    steps = walk(trace, choice.kind, choice.layer, head, choice.query)
    token, where = trace.queries(choice.kind)[choice.query], place_name(choice.kind, choice.layer, [head])
    return steps, f"“{token.text}” (token {choice.query}): {where}"


def walk_svg(steps: Sequence[Step], title: str, language: Language = "en") -> str:
    """Draw the steps below each other."""
    width = SENTENCE + 20 + LONGEST_WORD + SHOWN * CELL + text_width(MORE["en"].format(n=9999), SMALL) + 12
    drawn, top = heading(title, NOTE[language], width)
    for step in steps:
        drawn.append(element("path", d=f"M{MARGIN:g} {top:.2f}h{width:.2f}", class_="grid-line"))
        text, left_end = _sentence(step, top, language)
        numbers, right_end = _numbers(step, top + 8, language)
        drawn += [*text, *numbers]
        top = max(left_end, right_end) + 10
    return document(width + 2 * MARGIN, top + MARGIN, drawn, title=title, style=BOTH_WAYS.style)


def _sentence(step: Step, top: float, language: Language) -> tuple[list[Markup], float]:
    drawn, y = [], top + 6
    named = step.formula.split(" = ")[0] in (step.name, f"{step.name}_j")
    for line in folded(step.formula if named else f"{step.name}: {step.formula}", SENTENCE, 1.1 * TEXT):
        y += LINE
        drawn.append(words(line, MARGIN, y, font_weight=600))
    for line in folded(step.english if language == "en" else step.chinese, SENTENCE, TEXT):
        y += LINE
        drawn.append(words(line, MARGIN, y, "soft"))
    return drawn, y


def _numbers(step: Step, top: float, language: Language) -> tuple[list[Markup], float]:
    """A vector in one line, or one number per key or candidate; of a matrix, one line per row."""
    rows = [display_piece(name) for name in step.rows]
    values, left = np.asarray(step.values, dtype=np.float64), MARGIN + SENTENCE + 20 + LONGEST_WORD
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
        shade = f"d{BOTH_WAYS.level(value if np.isfinite(value) else 0.0, most)}"
        size = {"x": x, "y": top, "width": CELL - 1, "height": HEIGHT - 1}
        yield element("rect", element("title", f"{value:.6g}"), **size, class_=shade)
        number = short_number(value)
        yield words(number, x + CELL / 2, top + 15, f"on-{shade}", SMALL, text_anchor="middle")


def _more(n: int, left: float, y: float, language: Language) -> Iterator[Markup]:
    if n > SHOWN:
        yield words(MORE[language].format(n=n - SHOWN), left + SHOWN * CELL + 8, y, "soft", SMALL)


def _svg(trace: TraceData, choice: Choice) -> str:
    return walk_svg(*chosen_walk(trace, choice))


def _records(trace: TraceData, choice: Choice) -> Records:
    rows: list[tuple[Any, ...]] = []
    for step in chosen_walk(trace, choice)[0]:
        values = np.atleast_1d(step.values)
        for place in np.ndindex(values.shape):
            row = step.rows[place[0]] if step.rows else ""
            rows.append((step.name, step.formula, row, place[-1], float(values[place])))
    return Records(("step", "formula", "row", "index", "value"), rows)


def _screen(trace: TraceData, choice: Choice) -> Screen:
    """One line per step, with its first numbers."""
    from rich.text import Text

    from regard.look.figures.terminal import cut, table

    steps, title = chosen_walk(trace, choice)
    lines = table("step", "formula", "numbers")
    for step in steps:
        values = np.atleast_1d(step.values)
        names = [cut(display_piece(name)) for name in step.rows] or [""] * len(values)
        if values.ndim == 2:
            rows = zip(names, values, strict=True)
            written = [f"{name} {_first([short_number(value) for value in row])}" for name, row in rows]
            numbers = Text(_first(written, "\n"))
        else:
            pairs = zip(names, values.tolist(), strict=True)
            numbers = Text(_first([f"{name} {short_number(value)}".strip() for name, value in pairs]))
        lines.add_row(Text(step.name, "bold"), Text(visible(step.formula)), numbers)
    return Screen(title, title_of(trace), lines)


def _first(written: list[str], between: str = "  ") -> str:
    """The first of some numbers or rows, and how many follow."""
    more = [f"… {len(written) - ON_TERMINAL} more"] if len(written) > ON_TERMINAL else []
    return between.join([*written[:ON_TERMINAL], *more])


VIEWS = {"walk": View(_svg, _screen, _records)}
