"""View of a beam search: a tree of steps (left to right) and ranks (top to bottom), with each fate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.errors import RequestError
from regard.look.figures.colours import STYLE
from regard.look.figures.svg import (
    MARGIN,
    NARROWEST,
    SMALL,
    TEXT,
    Markup,
    clipped,
    document,
    element,
    heading,
    minus,
    number,
    text_width,
    words,
)
from regard.look.trace.beam import BeamTree, Node
from regard.look.trace.data import TraceData
from regard.look.views.view import Choice, Records, Screen, View, title_of

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

ROW = 38.0
BETWEEN = 34.0
"""Between two steps, for the branches."""
LONGEST_WORD = 110.0
DROPPED = 6
"""Most likely of the dropped nodes that a terminal lists."""
NOTE = (
    "columns: steps · below a token: log-probability so far"
    " · bold: the output · double frame: ended · dashed and grey: dropped; tooltips say why"
)
SIGNS: dict[str, str] = {fate: STYLE["fates"][fate]["sign"] for fate in STYLE["fates"]}


def tree_of(trace: TraceData) -> BeamTree:
    """The tree of the search.

    Raises:
        RequestError: the outputs were given, or the search was not observed.
    """
    if trace.beam is None:
        if trace.config.architecture != "encoder-decoder":
            what = "beam trees are recorded for encoder-decoder models only"
            raise RequestError(what, code="nothing_to_show")
        what = "this trace has no beam search: look without a target, and with a beam size (--beam 4)"
        raise RequestError(what, code="nothing_to_show")
    return trace.beam


def beam_svg(tree: BeamTree, title: str) -> str:
    """Draw the tree of a search.

    Raises:
        RequestError: the tree is empty.
    """
    if not tree.nodes:
        raise RequestError("this search has no node to draw", code="nothing_to_show")
    nodes = _placed(tree)
    winning = set() if tree.winner is None else {node.id for node in tree.path(tree.winner.id)}
    width = max(NARROWEST, max(node.right for node in nodes.values()) - MARGIN)
    drawn, top = heading(title, f"beam of {tree.beam_size} · {NOTE}", width)
    branches: list[tuple[bool, Markup]] = []
    boxes: list[Markup] = []
    for i, placed in nodes.items():
        if placed.node.parent is not None:
            branch = _branch(nodes[placed.node.parent], placed, top, i in winning)
            branches.append((i in winning, branch))
        boxes += _box(placed, top, i in winning)
    drawn += [branch for _, branch in sorted(branches, key=lambda each: each[0])]
    drawn += boxes
    bottom = top + max(node.y for node in nodes.values()) + ROW + MARGIN
    return document(width + 2 * MARGIN, bottom, drawn, title=title)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A node and its place; y counts from the top of the tree."""

    node: Node
    text: str
    left: float
    y: float
    width: float

    @property
    def right(self) -> float:
        return self.left + self.width


def _placed(tree: BeamTree) -> dict[int, _Placed]:
    """Every node by its id; a column is as wide as the longest token of its step."""
    columns: dict[int, list[Node]] = {}
    for node in tree.nodes:
        columns.setdefault(node.step, []).append(node)
    steps = sorted(columns)
    texts = {node.id: clipped(node.text or "␠", LONGEST_WORD) for node in tree.nodes}
    widths = [max(_width(texts[node.id], node) for node in columns[step]) for step in steps]
    lefts = accumulate((width + BETWEEN for width in widths), initial=MARGIN)
    return {
        node.id: _Placed(node, texts[node.id], left, rank * ROW, width)
        for step, left, width in zip(steps, lefts, widths, strict=False)
        for rank, node in enumerate(sorted(columns[step], key=lambda node: (node.rank, node.id)))
    }


def _width(text: str, node: Node) -> float:
    return max(1.1 * text_width(text, TEXT), text_width(_total(node), SMALL)) + 14  # bold letters are wider


def _total(node: Node) -> str:
    return minus(f"{node.total:.2f}")


def _tooltip(node: Node) -> str:
    numbers = f"log-probability {node.log_prob:.4f}, so far {node.total:.4f}, score {node.score:.4f}"
    return f"{node.text}: {numbers}; {node.fate}{': ' if node.reason.english else ''}{node.reason.english}"


def _branch(parent: _Placed, child: _Placed, top: float, winning: bool) -> Markup:
    x, y = parent.right, top + parent.y + ROW / 2 - 3
    to, end = child.left, top + child.y + ROW / 2 - 3
    bend = (to - x) / 2
    d = "M{} {}C{} {} {} {} {} {}".format(*map(number, (x, y, x + bend, y, to - bend, end, to, end)))
    if winning:
        return element("path", d=d, class_="blue-line", stroke_width=3)
    dashes = {"stroke_dasharray": "3 3"} if child.node.fate == "pruned" else {}
    return element("path", d=d, class_="soft-line", stroke_width=1, stroke_opacity=0.7, **dashes)


def _box(placed: _Placed, top: float, winning: bool) -> Iterator[Markup]:
    """Frame, token and log-probability; the tooltip has the rest."""
    fate, left, width = placed.node.fate, placed.left, placed.width
    y, middle = top + placed.y, left + width / 2
    colour = "soft" if fate == "pruned" else "ink"
    frame = {"x": left, "y": y, "width": width, "height": ROW - 6, "rx": 5}
    line = "blue-line" if winning else "soft-line"
    dashes = {"stroke_dasharray": "3 3", "stroke_opacity": 0.6} if fate == "pruned" else {}
    weight = {"font_weight": 700} if winning else {}
    yield element("rect", **frame, class_="paper")
    if fate in ("finished", "winner"):
        inner = {"x": left + 2.5, "y": y + 2.5, "width": width - 5, "height": ROW - 11}
        yield element("rect", **inner, rx=3, class_=line, stroke_width=1)
    yield words(placed.text, middle, y + 15, colour, text_anchor="middle", **weight)
    yield words(_total(placed.node), middle, y + 27, "soft", SMALL, text_anchor="middle")
    # The frame comes last, so that its whole inside shows the tooltip.
    tooltip, thick = element("title", _tooltip(placed.node)), 2.5 if winning else 1
    yield element("rect", tooltip, **frame, class_=line, pointer_events="all", stroke_width=thick, **dashes)


def beam_text(tree: BeamTree) -> Tree:
    """The search for a terminal: hypotheses as lines, each below the one that it branches from.

    A line continues with the child that leads to the output, or else furthest; only the others branch off,
    since a terminal has no room for one level per token.
    """
    from rich.text import Text
    from rich.tree import Tree

    children: dict[int | None, list[Node]] = {}
    for node in tree.nodes:
        children.setdefault(node.parent, []).append(node)
    winner = None if tree.winner is None else tree.winner.id
    reach = _reach(tree, winner)
    root = Tree(Text("<s>", "dim"))
    first = [node for node in children.get(None, []) if node.fate != "pruned"]
    open_lines = [(root, "", node) for node in _furthest_first(first, reach)]
    _add_dropped(root, [node for node in children.get(None, []) if node.fate == "pruned"])
    while open_lines:
        branch, after, node = open_lines.pop(0)
        line, branching, dropped = [node], [], []
        while below := children.get(line[-1].id):
            longest, *others = _furthest_first(below, reach)
            dropped += [child for child in below if child.fate == "pruned"]
            branching += [(line[-1], child) for child in others if child.fate != "pruned"]
            if longest.fate == "pruned":
                break
            line.append(longest)
        here = branch.add(_line_label(after, line, is_output=line[-1].id == winner))
        _add_dropped(here, dropped)
        open_lines += [(here, parent.text, child) for parent, child in branching]
    return root


def _reach(tree: BeamTree, winner: int | None) -> dict[int, float]:
    """How many steps each node continues; infinitely many on the path to the output."""
    reach: dict[int, float] = {}
    for node in reversed(tree.nodes):  # children come after their parents
        mine = reach.setdefault(node.id, 0.0 if node.fate == "pruned" else 1.0)
        if node.id == winner:
            mine = reach[node.id] = float("inf")
        if node.parent is not None:
            reach[node.parent] = max(reach.get(node.parent, 1.0), mine + 1.0)
    return reach


def _furthest_first(nodes: Sequence[Node], reach: Mapping[int, float]) -> list[Node]:
    return sorted(nodes, key=lambda node: (-reach[node.id], node.rank))


def _line_label(after: str, line: Sequence[Node], *, is_output: bool) -> Text:
    from rich.text import Text

    from regard.look.figures.terminal import cut

    last = line[-1]
    label = Text().append(f"after “{cut(after)}”: " if after else "", "dim")
    ended = last.fate in ("winner", "finished")
    sign = f" {SIGNS[last.fate]}" if ended else ""
    label.append(" ".join(cut(node.text) for node in line) + sign, "bold" if is_output else "")
    score = f", score {last.score:.4f}" if ended else ""
    return label.append(f"  {last.total:.2f}{score}", "dim")


def _add_dropped(branch: Tree, nodes: Sequence[Node]) -> None:
    from rich.text import Text

    from regard.look.figures.terminal import cut

    if not nodes:
        return
    best = sorted(nodes, key=lambda node: -node.total)
    names = [f"{cut(node.text)} {node.total:.2f}" for node in best[:DROPPED]]
    more = f" and {len(best) - DROPPED} more" if len(best) > DROPPED else ""
    branch.add(Text(f"{SIGNS['pruned']} {', '.join(names)}{more}", "dim"))


def _svg(trace: TraceData, choice: Choice) -> str:  # noqa: ARG001
    return beam_svg(tree_of(trace), title_of(trace))


def _records(trace: TraceData, choice: Choice) -> Records:  # noqa: ARG001
    fields = ("id", "parent", "step", "rank", "token", "text", "log_prob", "total", "score", "fate")
    rows = [
        (*("" if (value := getattr(node, name)) is None else value for name in fields), node.reason.english)
        for node in tree_of(trace).nodes
    ]
    return Records((*fields, "reason"), rows)


def _screen(trace: TraceData, choice: Choice) -> Screen:  # noqa: ARG001
    tree = tree_of(trace)
    signs = " · ".join(f"{SIGNS[fate]} {STYLE['fates'][fate]['en']}" for fate in SIGNS if SIGNS[fate])
    return Screen(title_of(trace), f"beam of {tree.beam_size} · {signs}", beam_text(tree))


VIEWS = {"beam": View(_svg, _screen, _records, needs="search")}
