"""What each head is worth for a text: how much less, or more, likely the text is without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from regard.look.figures.captions import KIND_NAMES
from regard.look.figures.cells import rectangles
from regard.look.figures.heatmap import round_up
from regard.look.figures.shades import BOTH_WAYS
from regard.look.figures.sheet import LEGEND, LINE, MARGIN, NARROWEST, SMALL, Box, heading, scale_of, words
from regard.look.figures.svg import Markup, document, text_width
from regard.look.trace.blocks import Kind

WIDTH, HEIGHT = 52.0, 24.0
"""Of a cell, which holds a number."""
NOTE = "the change in log-probability with one head off · −, orange: the text needs this head"


def effects_svg(effects: Mapping[Kind, np.ndarray], title: str) -> str:
    """Draw the effects of all heads, as `effect_of_each_head` finds them: for each kind (layers, heads)."""
    most = round_up(max(float(np.abs(each).max()) for each in effects.values()))
    widest = max(each.shape[1] for each in effects.values()) * WIDTH
    beside = text_width("layer 00", SMALL) + 8
    width = max(beside + widest, NARROWEST)
    drawn, top = heading(title, NOTE, width)
    drawn += scale_of(BOTH_WAYS, most, top)
    top += LEGEND
    for kind, effect in effects.items():
        layers, heads = effect.shape
        drawn.append(words(KIND_NAMES[kind], MARGIN, top + 12))
        box = Box(MARGIN + beside, top + 2 * LINE + 6, heads * WIDTH, layers * HEIGHT)
        drawn += _panel(kind, effect, most, box)
        top = box.bottom + 18
    return document(width + 2 * MARGIN, top - 18 + MARGIN, drawn, title=title, style=BOTH_WAYS.style)


def _panel(kind: Kind, effect: np.ndarray, most: float, box: Box) -> Iterator[Markup]:
    """One kind: cells with their numbers, layers at the left, heads above."""

    def told(layer: int, head: int) -> str:
        return f"{KIND_NAMES[kind]}, layer {layer}, head {head} off: {effect[layer, head]:+.4f}"

    yield from rectangles(effect, BOTH_WAYS, most, box, told)
    middles = [box.left + (head + 0.5) * WIDTH for head in range(effect.shape[1])]
    for head, middle in enumerate(middles):
        yield words(f"head {head}", middle, box.top - 5, "soft", SMALL, text_anchor="middle")
    for layer, values in enumerate(effect.tolist()):
        line = box.top + (layer + 0.5) * HEIGHT + 4
        yield words(f"layer {layer}", box.left - 8, line, "soft", SMALL, text_anchor="end")
        for middle, value in zip(middles, values, strict=True):
            written = f"{value:+.2f}".replace("-", "−")
            yield words(written, middle, line, BOTH_WAYS.ink_on(value, most), SMALL, text_anchor="middle")
