"""Views of attention weights: all heads as thumbnails, heads of one layer as heat maps, or as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import RequestError
from regard.look.figures.colours import ONE_WAY, STYLE
from regard.look.figures.heatmap import heatmaps_svg, image, max_pooled
from regard.look.figures.svg import (
    LINE,
    MARGIN,
    NARROWEST,
    SMALL,
    TEXT,
    Box,
    Markup,
    clipped,
    document,
    element,
    heading,
    number,
    text_width,
    words,
)
from regard.look.influence.attention import heads_on
from regard.look.trace.blocks import layers_of
from regard.look.trace.data import TraceData
from regard.look.views.view import (
    AXES,
    KIND_NAMES,
    Choice,
    Screen,
    Table,
    View,
    changes_of,
    place_name,
    title_of,
)

LARGEST, SMALLEST = 132.0, 24.0
"""Sides of a thumbnail."""
WIDEST = 1080.0
"""Width that the thumbnails of one layer share."""
BETWEEN = 8.0
"""Between two thumbnails."""
ROW = 22.0
ACROSS = 280.0
"""Between the two columns of words that lines connect."""
LONGEST_WORD = 180.0
MOST_LINES = 3000
"""The strongest are drawn."""
STROKES = [*zip(STYLE["series"]["colours"], STYLE["series"]["dashes"], strict=False)]
"""Heads differ in colour, in dashes, and in where their lines end."""
MOST_WEIGHT: float = STYLE["attention"]["most_weight"]
"""The weight with the darkest shade, in every figure."""
OFF: str = STYLE["attention"]["off"]
FAINTEST: float = STYLE["attention_line"]["faintest"]
STRONGEST_KEYS = 4
"""Tokens listed on a terminal for each query."""


def weights_of(trace: TraceData, choice: Choice) -> np.ndarray:
    """(heads, queries, keys) of the chosen layer."""
    return np.stack([trace.attention(choice.kind, choice.layer, head) for head in choice.heads])


def heads_svg(trace: TraceData, choice: Choice) -> str:
    """Draw every head of every layer; beyond 160 tokens, the largest weight of neighbours."""
    kind, title = choice.kind, title_of(trace)
    n_layers, n_heads = layers_of(trace.config, kind), trace.config.n_heads
    width, height = _thumbnail(len(trace.queries(kind)), len(trace.keys(kind)), n_heads)
    names = [f"layer {layer}" for layer in range(n_layers)]
    beside = max(text_width(name, SMALL) for name in names) + 8
    whole = max(beside + n_heads * (width + BETWEEN), NARROWEST)
    note = f"{KIND_NAMES[kind]}, {n_layers} layers of {n_heads} heads{changes_of(trace)} · {AXES[kind]}"
    drawn, top = heading(title, note, whole, ONE_WAY, MOST_WEIGHT)
    top += LINE
    lefts = [MARGIN + beside + head * (width + BETWEEN) for head in range(n_heads)]
    drawn += [words(f"head {head}", left, top - 5, "soft", SMALL) for head, left in enumerate(lefts)]
    for layer in range(n_layers):
        down = top + (n_layers - 1 - layer) * (height + BETWEEN)  # the last layer on top, as in Figure 1
        on = heads_on(trace, kind, layer)
        drawn.append(words(names[layer], MARGIN, down + height / 2 + 4, "soft", SMALL))
        for head, left in enumerate(lefts):
            weights_LM = max_pooled(trace.attention(kind, layer, head))
            place = f"layer {layer}, head {head}"
            name, box = place if head in on else f"{place}: off", Box(left, down, width, height)
            drawn += image(weights_LM, ONE_WAY, MOST_WEIGHT, box, name)
            frame = {"x": left, "y": down, "width": width, "height": height}
            drawn.append(element("rect", **frame, class_="soft-line frame"))
            if head not in on:
                drawn.append(words(OFF, left + width - 4, down + 13, "orange", text_anchor="end"))
    bottom = top + n_layers * (height + BETWEEN) + MARGIN
    style = f"{ONE_WAY.style}.regard .frame{{stroke-opacity:0.45;pointer-events:none}}"
    return document(whole + 2 * MARGIN, bottom, drawn, title=title, style=style)


def matrix_svg(trace: TraceData, choice: Choice) -> str:
    """Draw the weights of heads of one layer side by side, on one scale."""
    names = [_head_name(trace, choice, head) for head in choice.heads] if len(choice.heads) > 1 else [""]
    here = place_name(choice.kind, choice.layer, choice.heads)
    rows, columns = trace.queries(choice.kind).texts, trace.keys(choice.kind).texts
    note = f"{here}{_only_off(trace, choice)}{changes_of(trace)} · {AXES[choice.kind]}"
    weights_HLM = weights_of(trace, choice)
    return heatmaps_svg(weights_HLM, rows, columns, title_of(trace), names, note, MOST_WEIGHT)


def _head_name(trace: TraceData, choice: Choice, head: int) -> str:
    """The name of a head, and whether it is off."""
    is_off = head not in heads_on(trace, choice.kind, choice.layer)
    return f"head {head} {OFF} off" if is_off else f"head {head}"


def _only_off(trace: TraceData, choice: Choice) -> str:
    """That the only head is off, for a note; empty otherwise."""
    on = heads_on(trace, choice.kind, choice.layer)
    return f" {OFF} off" if len(choice.heads) == 1 and choice.heads[0] not in on else ""


def lines_svg(trace: TraceData, choice: Choice) -> str:
    """Draw up to four heads of a layer over each other, or the mean of more; wider lines for more weight.

    Queries are at the left, keys at the right.
    """
    kind, heads = choice.kind, choice.heads
    if not heads:
        raise RequestError("there is no head to draw: choose at least one", code="no_head")
    weights_HLM, names = weights_of(trace, choice), [_head_name(trace, choice, head) for head in heads]
    if len(heads) > len(STROKES):
        weights_HLM, names = weights_HLM.mean(axis=0, keepdims=True), [f"mean of {len(heads)} heads"]
    sides = trace.keys(kind).texts, trace.queries(kind).texts
    keys, queries = ([clipped(word, LONGEST_WORD) for word in side] for side in sides)
    beside = max(text_width(word, TEXT) for word in [*queries, "attends"]) + 8
    after = max(text_width(word, TEXT) for word in [*keys, "attended to"]) + 8
    width = max(beside + ACROSS + after, NARROWEST)
    note = f"{place_name(kind, choice.layer)}{changes_of(trace)} · weights below {FAINTEST} are left out"
    drawn, top = heading(title_of(trace), note, width)
    drawn += _legend(names, top)
    top += 2 * LINE + 28
    height = ROW * max(len(keys), len(queries))
    left = _Column(queries, MARGIN + beside, top, height)
    right = _Column(keys, MARGIN + beside + ACROSS, top, height)
    for head, i, j in _strongest(weights_HLM):
        weight, shift = float(weights_HLM[head, i, j]), 3.0 * (head - (len(names) - 1) / 2)
        tooltip = f"{queries[i]} → {keys[j]}: {weight:.4f} ({names[head]})"
        ends = (left.x, left.at(i) + shift, right.x, right.at(j) + shift)
        drawn.append(_line(ends, weight, head, tooltip))
    drawn += left.labels("attends", -8, "end")
    drawn += right.labels("attended to", 8, "start")
    return document(width + 2 * MARGIN, top + height + MARGIN, drawn, title=title_of(trace))


def _thumbnail(queries: int, keys: int, heads: int) -> tuple[float, float]:
    """Width and height: in the proportions of the matrix, within limits."""
    longer = max(SMALLEST, min(LARGEST, WIDEST / heads - BETWEEN))
    shape = min(3.0, max(1 / 3, keys / queries))
    return (longer, longer / shape) if shape > 1 else (longer * shape, longer)


@dataclass(frozen=True, slots=True)
class _Column:
    """Words below each other; the shorter side is spread over the height of the longer one."""

    words: Sequence[str]
    x: float
    top: float
    height: float

    def at(self, place: int) -> float:
        """The middle of a word."""
        return self.top + (place + 0.5) * self.height / len(self.words)

    def labels(self, name: str, shift: float, anchor: str) -> Iterator[Markup]:
        yield words(name, self.x + shift, self.top - 8, "soft", text_anchor=anchor)
        for place, word in enumerate(self.words):
            yield words(word, self.x + shift, self.at(place) + 4, text_anchor=anchor)


def _strongest(weights_HLM: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Head, query and key of every line, faintest first, so that the strong ones lie on top."""
    order = np.argsort(weights_HLM, axis=None, kind="stable")[-MOST_LINES:]
    for head, i, j in zip(*np.unravel_index(order, weights_HLM.shape), strict=True):
        if weights_HLM[head, i, j] >= FAINTEST:
            yield int(head), int(i), int(j)


def _line(ends: tuple[float, float, float, float], weight: float, head: int, tooltip: str) -> Markup:
    left, query, right, key = ends
    bend = (right - left) / 2
    path = [left, query, left + bend, query, right - bend, key, right, key]
    d = "M{} {}C{} {} {} {} {} {}".format(*map(number, path))
    return element("path", element("title", tooltip), d=d, **_stroke(head), **_strength(weight))


def _strength(weight: float) -> dict[str, object]:
    (width, wider), (opacity, stronger) = (STYLE["attention_line"][name] for name in ("width", "opacity"))
    return {"stroke_width": width + wider * weight, "stroke_opacity": opacity + stronger * weight}


def _stroke(head: int) -> dict[str, object]:
    colour, dashes = STROKES[head]
    return {"class_": f"{colour}-line", **({"stroke_dasharray": dashes} if dashes else {})}


def _legend(names: Sequence[str], top: float) -> Iterator[Markup]:
    """How each head is drawn, and the lines of a few weights."""
    left = MARGIN
    for head, name in enumerate(names):
        d = f"M{number(left)} {number(top + 6)}h28"
        yield element("path", d=d, **_stroke(head), stroke_width=3)
        yield words(name, left + 34, top + 10, "soft")
        left += 34 + text_width(name, TEXT) + 16
    left = MARGIN
    for weight in (0.1, 0.5, 1.0):
        d = f"M{number(left)} {number(top + LINE + 6)}h28"
        yield element("path", d=d, class_="ink-line", **_strength(weight))
        yield words(f"{weight:g}", left + 34, top + LINE + 10, "soft")
        left += 34 + text_width(f"{weight:g}", TEXT) + 16


def _heads_table(trace: TraceData, choice: Choice) -> Table:
    kind = choice.kind
    layers, heads = range(layers_of(trace.config, kind)), range(trace.config.n_heads)
    values = np.stack([[trace.attention(kind, layer, head) for head in heads] for layer in layers])
    axes = {"layer": [*map(str, layers)], "head": [*map(str, heads)]}
    return Table(values, {**axes, "query": trace.queries(kind).texts, "key": trace.keys(kind).texts})


def _layer_table(trace: TraceData, choice: Choice) -> Table:
    sides = {"query": trace.queries(choice.kind).texts, "key": trace.keys(choice.kind).texts}
    return Table(weights_of(trace, choice), {"head": [*map(str, choice.heads)], **sides})


def _heads_screen(trace: TraceData, choice: Choice) -> Screen:
    from regard.look.figures.terminal import Thumbnails

    weights = _heads_table(trace, choice).values
    heads = {*range(trace.config.n_heads)}
    off = [(i, head) for i in range(len(weights)) for head in heads - {*heads_on(trace, choice.kind, i)}]
    named = ", ".join(f"{layer}.{head}" for layer, head in sorted(off))
    note = f"{KIND_NAMES[choice.kind]} · {AXES[choice.kind]}" + (f" · {OFF} off: {named}" if off else "")
    return Screen(title_of(trace), note, Thumbnails(weights))


def _matrix_screen(trace: TraceData, choice: Choice) -> Screen:
    from rich.console import Group, RenderableType
    from rich.text import Text

    from regard.look.figures.terminal import HeatMap

    rows, columns = trace.queries(choice.kind).texts, trace.keys(choice.kind).texts
    drawn: list[RenderableType] = []
    for head, weights_LM in zip(choice.heads, weights_of(trace, choice), strict=True):
        if len(choice.heads) > 1:
            drawn += [Text(_head_name(trace, choice, head), "bold")]
        drawn += [HeatMap(weights_LM, rows, columns), Text()]
    here = place_name(choice.kind, choice.layer, choice.heads)
    note = f"{here}{_only_off(trace, choice)} · {AXES[choice.kind]} · in hundredths"
    return Screen(title_of(trace), note, Group(*drawn[:-1]))


def _lines_screen(trace: TraceData, choice: Choice) -> Screen:
    """One line per query: the keys with the largest weights."""
    from rich.text import Text

    from regard.look.figures.terminal import cut, table, word

    rows, columns = trace.queries(choice.kind).texts, trace.keys(choice.kind).texts
    lines = table("token", "attends to")
    for name, weights_M in zip(rows, np.mean(weights_of(trace, choice), axis=0), strict=True):
        best = np.argsort(-weights_M, kind="stable")[:STRONGEST_KEYS]
        keys = (f"{cut(columns[j])} {weights_M[j]:.2f}" for j in best if weights_M[j] >= 0.005)
        lines.add_row(word(name), Text("  ".join(keys)))
    mean = ", mean" if len(choice.heads) > 1 else ""
    return Screen(title_of(trace), f"{place_name(choice.kind, choice.layer, choice.heads)}{mean}", lines)


VIEWS = {
    "heads": View(heads_svg, _heads_screen, _heads_table),
    "matrix": View(matrix_svg, _matrix_screen, _layer_table),
    "lines": View(lines_svg, _lines_screen, _layer_table),
}
