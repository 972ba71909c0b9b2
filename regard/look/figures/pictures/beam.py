"""A beam search as a tree: steps from left to right, ranks from top to bottom, and each node's fate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from regard.errors import RequestError
from regard.look.figures.sheet import MARGIN, NARROWEST, SMALL, TEXT, clipped, heading, words
from regard.look.figures.svg import Markup, document, element, number, text_width

ROW = 38.0
BETWEEN = 34.0
"""From one step to the next, for the branches."""
LONGEST_WORD = 110.0
NOTE = (
    "a column: a step · below a token: the log-probability so far"
    " · bold: the output · double frame: ended · dashed and grey: given up, and why is told at the node"
)


def beam_svg(tree: Mapping[str, Any], title: str) -> str:
    """Draw a search from its tree, as plain values.

    Raises:
        RequestError: the tree has no node.
    """
    if not tree["nodes"]:
        raise RequestError("this search has no node to draw")
    nodes = _placed(tree)
    winning = set(_line_of(nodes, tree["winner"]))
    width = max(NARROWEST, max(node.right for node in nodes.values()) - MARGIN)
    drawn, top = heading(title, f"beam of {tree['beam_size']} · {NOTE}", width)
    branches: list[tuple[bool, Markup]] = []
    boxes: list[Markup] = []
    for i, node in nodes.items():
        parent = nodes.get(node.parent) if node.parent is not None else None
        if parent is not None:
            branches.append((i in winning, _branch(parent, node, top, i in winning)))
        boxes += _box(node, top, i in winning)
    drawn += [branch for _, branch in sorted(branches, key=lambda each: each[0])]
    drawn += boxes
    bottom = top + max(node.y for node in nodes.values()) + ROW + MARGIN
    return document(width + 2 * MARGIN, bottom, drawn, title=title)


@dataclass(frozen=True, slots=True)
class _Node:
    """A token in its place; y counts from the top of the tree."""

    parent: int | None
    text: str
    told: str
    total: str
    fate: str
    left: float
    y: float
    width: float

    @property
    def right(self) -> float:
        return self.left + self.width


def _placed(tree: Mapping[str, Any]) -> dict[int, _Node]:
    """Every node by its id: its column is as wide as the longest token of its step."""
    columns: dict[int, list[Mapping[str, Any]]] = {}
    for node in tree["nodes"]:
        columns.setdefault(node["step"], []).append(node)
    steps = sorted(columns)
    texts = {node["id"]: clipped(node["text"] or "␠", LONGEST_WORD) for node in tree["nodes"]}
    # Bold letters are wider.
    widths = [max(_width(texts[node["id"]], node) for node in columns[step]) for step in steps]
    lefts = accumulate((width + BETWEEN for width in widths), initial=MARGIN)
    placed = {}
    for step, left, width in zip(steps, lefts, widths, strict=False):
        for rank, node in enumerate(sorted(columns[step], key=lambda node: (node["rank"], node["id"]))):
            placed[node["id"]] = _Node(
                parent=node["parent"],
                text=texts[node["id"]],
                told=_told(node),
                total=_total(node),
                fate=node["fate"],
                left=left,
                y=rank * ROW,
                width=width,
            )
    return placed


def _width(text: str, node: Mapping[str, Any]) -> float:
    return max(1.1 * text_width(text, TEXT), text_width(_total(node), SMALL)) + 14


def _total(node: Mapping[str, Any]) -> str:
    return f"{node['total']:.2f}".replace("-", "−")


def _told(node: Mapping[str, Any]) -> str:
    score = "" if node["score"] is None else f", score {node['score']:.4f}"
    numbers = f"log-probability {node['log_prob']:.4f}, so far {node['total']:.4f}{score}"
    reason = (node["reason"] or {}).get("en", "")
    return f"{node['text']}: {numbers}; {node['fate']}{': ' + reason if reason else ''}"


def _line_of(nodes: Mapping[int, _Node], last: int | None) -> Iterator[int]:
    """A node and all that lead to it."""
    while last is not None and last in nodes:
        yield last
        last = nodes[last].parent


def _branch(parent: _Node, node: _Node, top: float, winning: bool) -> Markup:
    x, y = parent.right, top + parent.y + ROW / 2 - 3
    to, end = node.left, top + node.y + ROW / 2 - 3
    bend = (to - x) / 2
    d = "M{} {}C{} {} {} {} {} {}".format(*map(number, (x, y, x + bend, y, to - bend, end, to, end)))
    if winning:
        return element("path", d=d, class_="blue-line", stroke_width=3)
    dashes = {"stroke_dasharray": "3 3"} if node.fate == "pruned" else {}
    return element("path", d=d, class_="soft-line", stroke_width=1, stroke_opacity=0.7, **dashes)


def _box(node: _Node, top: float, winning: bool) -> Iterator[Markup]:
    """Frame, token and log-probability, with everything else for whoever points at it."""
    pruned = node.fate == "pruned"
    colour = "soft" if pruned else "ink"
    frame = {"x": node.left, "y": top + node.y, "width": node.width, "height": ROW - 6, "rx": 5}
    line = "blue-line" if winning else "soft-line"
    dashes = {"stroke_dasharray": "3 3", "stroke_opacity": 0.6} if pruned else {}
    middle = node.left + node.width / 2
    weight = {"font_weight": 700} if winning else {}
    yield element("rect", **frame, class_="paper")
    if node.fate in ("finished", "winner"):
        inner = {"x": node.left + 2.5, "y": top + node.y + 2.5, "width": node.width - 5, "height": ROW - 11}
        yield element("rect", **inner, rx=3, class_=line, stroke_width=1)
    yield words(node.text, middle, top + node.y + 15, colour, text_anchor="middle", **weight)
    yield words(node.total, middle, top + node.y + 27, "soft", SMALL, text_anchor="middle")
    # The frame comes last, and its inside is to be pointed at too.
    yield element(
        "rect",
        element("title", node.told),
        **frame,
        class_=line,
        pointer_events="all",
        stroke_width=2.5 if winning else 1,
        **dashes,
    )
