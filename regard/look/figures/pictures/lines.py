"""Attention as lines, one for each weight, from the tokens looked at to those that look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import RequestError
from regard.look.figures.captions import changes_of, place_name, title_of
from regard.look.figures.sheet import LINE, MARGIN, NARROWEST, TEXT, clipped, heading, words
from regard.look.figures.svg import Markup, document, element, number, text_width
from regard.look.trace.blocks import Kind

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

ROW = 22.0
ACROSS = 280.0
"""From one column of words to the other."""
LONGEST_WORD = 180.0
FAINTEST = 0.02
"""Weights below this are left out: there are many, and together they would hide the others."""
MOST_LINES = 3000
"""Of a long text, the strongest."""
STROKES = (("blue", ""), ("orange", "7 3"), ("green", "2 3"), ("purple", "9 3 2 3"))
"""Heads differ in colour, in dashes, and in where their lines end."""


def lines_svg(trace: Trace, kind: Kind, layer: int, heads: Sequence[int]) -> str:
    """Draw up to four heads of a layer over each other, or the mean of more; the wider, the more weight."""
    if not heads:
        raise RequestError("there is no head to draw: choose at least one")
    weights_HLM = np.stack([trace.attention(kind, layer, head) for head in heads])
    names = [f"head {head}" for head in heads]
    if len(heads) > len(STROKES):
        weights_HLM, names = weights_HLM.mean(axis=0, keepdims=True), [f"mean of {len(heads)} heads"]
    sides = trace.keys(kind).texts, trace.queries(kind).texts
    keys, queries = ([clipped(word, LONGEST_WORD) for word in side] for side in sides)
    beside = max(text_width(word, TEXT) for word in [*keys, "looked at"]) + 8
    after = max(text_width(word, TEXT) for word in [*queries, "looks"]) + 8
    width = max(beside + ACROSS + after, NARROWEST)
    note = f"{place_name(kind, layer)}{changes_of(trace)} · weights below {FAINTEST} are left out"
    drawn, top = heading(title_of(trace), note, width)
    drawn += _legend(names, top)
    top += 2 * LINE + 28
    height = ROW * max(len(keys), len(queries))
    left = _Column(keys, MARGIN + beside, top, height)
    right = _Column(queries, MARGIN + beside + ACROSS, top, height)
    for head, i, j in _strongest(weights_HLM):
        weight, shift = float(weights_HLM[head, i, j]), 3.0 * (head - (len(names) - 1) / 2)
        told = f"{queries[i]} ← {keys[j]}: {weight:.4f} ({names[head]})"
        ends = (left.x, left.at(j) + shift, right.x, right.at(i) + shift)
        drawn.append(_line(ends, weight, head, told))
    drawn += left.labels("looked at", -8, "end")
    drawn += right.labels("looks", 8, "start")
    return document(width + 2 * MARGIN, top + height + MARGIN, drawn, title=title_of(trace))


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
    """Head, query and key of every line, the faintest first, so that the strong ones lie on top."""
    order = np.argsort(weights_HLM, axis=None, kind="stable")[-MOST_LINES:]
    for head, i, j in zip(*np.unravel_index(order, weights_HLM.shape), strict=True):
        if weights_HLM[head, i, j] >= FAINTEST:
            yield int(head), int(i), int(j)


def _line(ends: tuple[float, float, float, float], weight: float, head: int, told: str) -> Markup:
    left, key, right, query = ends
    bend = (right - left) / 2
    path = [left, key, left + bend, key, right - bend, query, right, query]
    d = "M{} {}C{} {} {} {} {} {}".format(*map(number, path))
    return element("path", element("title", told), d=d, **_stroke(head), **_strength(weight))


def _strength(weight: float) -> dict[str, object]:
    return {"stroke_width": 0.6 + 5.0 * weight, "stroke_opacity": 0.15 + 0.75 * weight}


def _stroke(head: int) -> dict[str, object]:
    colour, dashes = STROKES[head]
    return {"class_": f"{colour}-line", **({"stroke_dasharray": dashes} if dashes else {})}


def _legend(names: Sequence[str], top: float) -> Iterator[Markup]:
    """How each head is drawn, and how strong a line a few weights make."""
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
