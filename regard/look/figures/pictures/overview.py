"""All heads of a kind at once: a row for each layer, a column for each head, a thumbnail for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.look.figures.captions import KIND_NAMES, LOOKS, changes_of, title_of
from regard.look.figures.cells import image, max_pooled
from regard.look.figures.shades import ONE_WAY
from regard.look.figures.sheet import (
    LEGEND,
    LINE,
    MARGIN,
    NARROWEST,
    SMALL,
    Box,
    heading,
    scale_of,
    words,
)
from regard.look.figures.svg import document, element, text_width
from regard.look.trace.blocks import Kind, layers_of

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

LARGEST, SMALLEST = 132.0, 24.0
"""Sides of a thumbnail."""
WIDEST = 1080.0
"""Room that all heads of a layer share, as far as they can."""
BETWEEN = 8.0


def overview_svg(trace: Trace, kind: Kind) -> str:
    """Draw every head of every layer. Beyond 160 tokens neighbours are pooled: the largest weight shows."""
    n_layers, n_heads = layers_of(trace.config, kind), trace.config.n_heads
    queries, keys = len(trace.queries(kind)), len(trace.keys(kind))
    width, height = _thumbnail(queries, keys, n_heads)
    names = [f"layer {layer}" for layer in range(n_layers)]
    beside = max(text_width(name, SMALL) for name in names) + 8
    whole = max(beside + n_heads * (width + BETWEEN), NARROWEST)
    note = f"{KIND_NAMES[kind]}, {n_layers} layers of {n_heads} heads{changes_of(trace)} · {LOOKS[kind]}"
    drawn, top = heading(title_of(trace), note, whole)
    drawn += scale_of(ONE_WAY, 1.0, top)
    top += LEGEND + LINE
    for head in range(n_heads):
        left = MARGIN + beside + head * (width + BETWEEN)
        drawn.append(words(f"head {head}", left, top - 5, "soft", SMALL))
    for layer in range(n_layers):
        down = top + layer * (height + BETWEEN)
        drawn.append(words(names[layer], MARGIN, down + height / 2 + 4, "soft", SMALL))
        for head in range(n_heads):
            box = Box(MARGIN + beside + head * (width + BETWEEN), down, width, height)
            weights_LM = max_pooled(trace.attention(kind, layer, head))
            drawn += image(weights_LM, ONE_WAY, 1.0, box, f"layer {layer}, head {head}")
            drawn.append(
                element(
                    "rect",
                    x=box.left,
                    y=box.top,
                    width=box.width,
                    height=box.height,
                    class_="soft-line frame",
                )
            )
    bottom = top + n_layers * (height + BETWEEN) + MARGIN
    return document(whole + 2 * MARGIN, bottom, drawn, title=title_of(trace), style=_STYLE)


_STYLE = f"{ONE_WAY.style}.regard .frame{{stroke-opacity:0.45;pointer-events:none}}"


def _thumbnail(queries: int, keys: int, heads: int) -> tuple[float, float]:
    """Its width and height: shaped as the matrix is, where that is not too slim."""
    longer = max(SMALLEST, min(LARGEST, WIDEST / heads - BETWEEN))
    shape = min(3.0, max(1 / 3, keys / queries))
    return (longer, longer / shape) if shape > 1 else (longer * shape, longer)
