"""View of influence: of every token on one prediction by several methods; and a picture of head effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from regard.look.figures.colours import BOTH_WAYS
from regard.look.figures.heatmap import Grid, rectangles, round_up
from regard.look.figures.svg import (
    LINE,
    MARGIN,
    NARROWEST,
    SMALL,
    Box,
    Markup,
    document,
    heading,
    minus,
    text_width,
    words,
)
from regard.look.influence.methods import StoredInfluence, stored_influence
from regard.look.trace.blocks import Kind
from regard.look.trace.data import TraceData
from regard.look.views.view import KIND_NAMES, Choice, Screen, Table, View, changes_of, title_of

WIDTH, HEIGHT = 52.0, 24.0
"""Of a cell with a number."""
NOTE = "rows: methods, each scaled by its largest value · blue: made it more likely, or was attended to"
EFFECTS_NOTE = "change in log-probability with one head off · −, orange: the text needs this head"


def influence_svg(trace: TraceData, choice: Choice) -> str:  # noqa: ARG001
    """Draw the values of every method that was stored; tooltips have the numbers."""
    found, title = stored_influence(trace), title_of(trace)
    grid = Grid.of([""], found.methods, found.tokens)
    width = max(grid.width, NARROWEST)
    note = f"influence on “{found.on}” · {NOTE}{changes_of(trace)}{_convergence(found)}"
    drawn, top = heading(title, note, width, BOTH_WAYS)

    def tooltip(i: int, j: int) -> str:
        return f"{found.methods[i]}, {found.tokens[j]}: {found.values[i, j]:+.4f}"

    drawn += rectangles(found.shares, BOTH_WAYS, 1.0, grid.place(0, top), tooltip)
    drawn += grid.labels(top)
    height = top + grid.height + MARGIN
    return document(width + 2 * MARGIN, height, drawn, title=title, style=BOTH_WAYS.style)


def _convergence(found: StoredInfluence) -> str:
    """How far integrated gradients add up, for a note; empty if they are not stored."""
    return "" if found.convergence is None else f" · integrated gradients: {found.convergence}"


def _table(trace: TraceData, choice: Choice) -> Table:  # noqa: ARG001
    found = stored_influence(trace)
    return Table(found.values, {"method": found.methods, "token": found.tokens})


def _screen(trace: TraceData, choice: Choice) -> Screen:  # noqa: ARG001
    from regard.look.figures.terminal import table, word

    found = stored_influence(trace)
    lines = table("read", *(method.replace("-", " ") for method in found.methods))
    for token, values in zip(found.tokens, found.values.T.tolist(), strict=True):
        lines.add_row(word(token), *(f"{value:+.3f}" for value in values))
    return Screen(title_of(trace), f"influence on “{found.on}”{_convergence(found)}", lines)


def effects_svg(effects: Mapping[Kind, np.ndarray], title: str) -> str:
    """Draw the effects of all heads, as `effect_of_each_head` returns them: (layers, heads) by kind."""
    most = round_up(max(float(np.abs(each).max()) for each in effects.values()))
    widest = max(each.shape[1] for each in effects.values()) * WIDTH
    beside = text_width("layer 00", SMALL) + 8
    width = max(beside + widest, NARROWEST)
    drawn, top = heading(title, EFFECTS_NOTE, width, BOTH_WAYS, most)
    for kind, effect in effects.items():
        layers, heads = effect.shape
        drawn.append(words(KIND_NAMES[kind], MARGIN, top + 12))
        box = Box(MARGIN + beside, top + 2 * LINE + 6, heads * WIDTH, layers * HEIGHT)
        drawn += _effects_panel(kind, effect, most, box)
        top = box.bottom + 18
    return document(width + 2 * MARGIN, top - 18 + MARGIN, drawn, title=title, style=BOTH_WAYS.style)


def _effects_panel(kind: Kind, effect: np.ndarray, most: float, box: Box) -> Iterator[Markup]:
    """One kind of attention: a row per layer, a column per head, a number in every cell."""

    def tooltip(layer: int, head: int) -> str:
        return f"{KIND_NAMES[kind]}, layer {layer}, head {head} off: {effect[layer, head]:+.4f}"

    yield from rectangles(effect, BOTH_WAYS, most, box, tooltip)
    middles = [box.left + (head + 0.5) * WIDTH for head in range(effect.shape[1])]
    for head, middle in enumerate(middles):
        yield words(f"head {head}", middle, box.top - 5, "soft", SMALL, text_anchor="middle")
    for layer, values in enumerate(effect.tolist()):
        line = box.top + (layer + 0.5) * HEIGHT + 4
        yield words(f"layer {layer}", box.left - 8, line, "soft", SMALL, text_anchor="end")
        for middle, value in zip(middles, values, strict=True):
            colour = f"on-d{BOTH_WAYS.level(value, most)}"
            yield words(minus(f"{value:+.2f}"), middle, line, colour, SMALL, text_anchor="middle")


VIEWS = {"influence": View(influence_svg, _screen, _table, needs="influence")}
