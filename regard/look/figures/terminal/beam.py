"""A beam search on a terminal: hypotheses as lines, each below the one that it parts from.

A hypothesis has as many tokens as the search took steps, far more than a terminal has room for branches. So a
line goes on with the child that leads to the output, or else furthest, and only the others branch off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from regard.look.figures.terminal.cells import cut

Node = Mapping[str, Any]
SIGNS = {"winner": " ★", "finished": " ■"}
GIVEN_UP = 6
"""Nodes of a line that are named, of those that were given up; the likeliest."""


def beam_tree(tree: Mapping[str, Any]) -> Tree:
    """The search as lines of tokens: the output in bold, what was given up dim."""
    children: dict[int | None, list[Node]] = {}
    for node in tree["nodes"]:
        children.setdefault(node["parent"], []).append(node)
    reach = _reach(tree)
    root = Tree(Text("<s>", "dim"))
    first = [node for node in children.get(None, []) if node["fate"] != "pruned"]
    open_lines = [(root, "", node) for node in _furthest_first(first, reach)]
    _add_given_up(root, [node for node in children.get(None, []) if node["fate"] == "pruned"])
    while open_lines:
        branch, after, node = open_lines.pop(0)
        line, parted, given_up = [node], [], []
        while below := children.get(line[-1]["id"]):
            going, *others = _furthest_first(below, reach)
            given_up += [child for child in below if child["fate"] == "pruned"]
            parted += [(line[-1], child) for child in others if child["fate"] != "pruned"]
            if going["fate"] == "pruned":
                break
            line.append(going)
        here = branch.add(_label(after, line, is_output=line[-1]["id"] == tree["winner"]))
        _add_given_up(here, given_up)
        open_lines += [(here, parent["text"], child) for parent, child in parted]
    return root


def _reach(tree: Mapping[str, Any]) -> dict[int, float]:
    """How many steps each node goes on; those on the way to the output go furthest."""
    reach: dict[int, float] = {}
    for node in reversed(tree["nodes"]):  # children come after their parents
        mine = reach.setdefault(node["id"], 0.0 if node["fate"] == "pruned" else 1.0)
        if node["id"] == tree["winner"]:
            mine = reach[node["id"]] = float("inf")
        if (parent := node["parent"]) is not None:
            reach[parent] = max(reach.get(parent, 1.0), mine + 1.0)
    return reach


def _furthest_first(nodes: Sequence[Node], reach: Mapping[int, float]) -> list[Node]:
    return sorted(nodes, key=lambda node: (-reach[node["id"]], node["rank"]))


def _label(after: str, line: Sequence[Node], *, is_output: bool) -> Text:
    last = line[-1]
    label = Text().append(f"after “{cut(after)}”: " if after else "", "dim")
    words = " ".join(cut(node["text"]) for node in line)
    label.append(words + SIGNS.get(last["fate"], ""), "bold" if is_output else "")
    score = f", score {last['score']:.4f}" if last["fate"] in SIGNS else ""
    return label.append(f"  {last['total']:.2f}{score}", "dim")


def _add_given_up(branch: Tree, nodes: Sequence[Node]) -> None:
    if not nodes:
        return
    best = sorted(nodes, key=lambda node: -node["total"])
    named = [f"{cut(node['text'])} {node['total']:.2f}" for node in best[:GIVEN_UP]]
    more = f" and {len(best) - GIVEN_UP} more" if len(best) > GIVEN_UP else ""
    branch.add(Text(f"✗ {', '.join(named)}{more}", "dim"))
