"""What each head is worth for a text: how much less, or more, likely the text is without it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from regard.look.blocks import Kind
from regard.look.captions import KIND_NAMES
from regard.look.cells import rectangles
from regard.look.heatmap import round_up
from regard.look.shades import BOTH_WAYS
from regard.look.sheet import LEGEND, LINE, MARGIN, NARROWEST, SMALL, Box, heading, scale_of, words
from regard.look.svg import document, text_width

WIDTH, HEIGHT = 52.0, 24.0
"""Of a cell, which holds a number."""
NOTE = "the change in log-probability with one head off · −, orange: the text needs this head"


def effects_svg(effects: Mapping[Kind, np.ndarray], title: str) -> str:
    """Draw the effects of all heads, as `effect_of_each_head` finds them: for each kind (layers, heads)."""
    most = round_up(max(float(np.abs(each).max()) for each in effects.values()))
    heads = max(each.shape[1] for each in effects.values())
    beside = text_width("layer 00", SMALL) + 8
    width = max(beside + heads * WIDTH, NARROWEST)
    drawn, top = heading(title, NOTE, width)
    drawn += scale_of(BOTH_WAYS, most, top)
    top += LEGEND
    for kind, effect in effects.items():
        layers, heads = effect.shape
        drawn.append(words(KIND_NAMES[kind], MARGIN, top + 12))
        top += 2 * LINE + 6
        box = Box(MARGIN + beside, top, heads * WIDTH, layers * HEIGHT)

        def told(i: int, j: int, kind: Kind = kind, effect: np.ndarray = effect) -> str:
            return f"{KIND_NAMES[kind]}, layer {i}, head {j} off: {effect[i, j]:+.4f}"

        drawn += rectangles(effect, BOTH_WAYS, most, box, told)
        for j in range(heads):
            middle = box.left + (j + 0.5) * WIDTH
            drawn.append(words(f"head {j}", middle, top - 5, "soft", SMALL, text_anchor="middle"))
        for i in range(layers):
            line = top + (i + 0.5) * HEIGHT + 4
            drawn.append(words(f"layer {i}", box.left - 8, line, "soft", SMALL, text_anchor="end"))
            for j in range(heads):
                drawn.append(
                    words(
                        f"{effect[i, j]:+.2f}".replace("-", "−"),
                        box.left + (j + 0.5) * WIDTH,
                        line,
                        BOTH_WAYS.ink_on(effect[i, j], most),
                        SMALL,
                        text_anchor="middle",
                    )
                )
        top = box.bottom + 18
    return document(width + 2 * MARGIN, top - 18 + MARGIN, drawn, title=title, style=BOTH_WAYS.style)
