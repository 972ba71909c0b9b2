"""Every view of a trace by name, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from regard.look.choice import Choice, aligned
from regard.look.figures.captions import KIND_NAMES, LOOKS, changes_of, label_of, place_name, title_of
from regard.look.figures.shades import BOTH_WAYS
from regard.look.figures.terminal import lists
from regard.look.figures.terminal.beam import beam_tree
from regard.look.figures.terminal.heat import HeatMap, Small, Thumbnails
from regard.look.figures.terminal.plain import Plain
from regard.look.influence.measured import measured_of
from regard.look.trace.candidates import said_steps
from regard.look.trace.positions import encoding_of
from regard.look.views import aligning_name, numbers, tree_of, walk_title, walked
from regard.look.visible import visible

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

CANDIDATES = 5
POSITIONS = (64, 24)
"""Cells across and lines of the picture of positions."""


def printed(trace: Trace, choice: Choice) -> RenderableType:
    """The view, with what it shows above it.

    Raises:
        RequestError: this trace has nothing of the kind to show.
    """
    title, note, shown = _view(trace, choice)
    heading = Text(visible(title), "bold"), Text(visible(note + changes_of(trace)), "dim")
    return Plain(Group(*heading, Text(), shown))


def _view(trace: Trace, choice: Choice) -> tuple[str, str, RenderableType]:
    """Its title, what is to be known of it, and itself."""
    title, here = title_of(trace), place_name(choice.kind, choice.layer, choice.heads)
    match choice.view:
        case "heads":
            weights = numbers(trace, choice).arrays()["values"]
            return title, f"{KIND_NAMES[choice.kind]} · {LOOKS[choice.kind]}", Thumbnails(weights)
        case "matrix":
            return title, f"{here} · {LOOKS[choice.kind]} · in hundredths", _matrices(trace, choice)
        case "lines":
            rows, columns = trace.queries(choice.kind).texts, trace.keys(choice.kind).texts
            mean_LM = np.mean(numbers(trace, choice).arrays()["values"], axis=0)
            several = ", in the mean" if len(choice.heads) > 1 else ""
            return title, f"{here}{several}", lists.looks(mean_LM, rows, columns)
        case "alignment":
            found = aligned(trace, choice)
            return title, aligning_name(choice), Group(lists.links(found), Text(), lists.coverage(found))
        case "beam":
            tree = tree_of(trace)
            return (
                title,
                f"beam of {tree['beam_size']} · ★ the output · ■ ended · ✗ given up",
                beam_tree(tree),
            )
        case "positions":
            encoding = encoding_of(trace)
            most = float(np.abs(encoding.values).max())
            drawn = Small(encoding.values, *POSITIONS, most=most, shades=BOTH_WAYS)
            return encoding.name, f"{encoding.note} · a row: a position · a column: a dimension", drawn
        case "walk":
            walk = trace.walk(*walked(choice))
            return walk_title(trace, choice), title, lists.walk(walk)
        case "steps":
            said: RenderableType = lists.candidates(said_steps(trace, CANDIDATES))
            if trace.influence is not None and trace.inputs is not None:
                said = Group(
                    said, Text(), lists.influence(label_of(trace), trace.inputs.texts, trace.influence)
                )
            return title, "▸ what came, of the likeliest", said
        case "influence":
            return title, f"influence on “{(measured := measured_of(trace)).on}”", lists.influences(measured)
        case other:
            assert_never(other)


def _matrices(trace: Trace, choice: Choice) -> RenderableType:
    rows, columns = trace.queries(choice.kind).texts, trace.keys(choice.kind).texts
    drawn: list[RenderableType] = []
    for head, weights_LM in zip(choice.heads, numbers(trace, choice).arrays()["values"], strict=True):
        if len(choice.heads) > 1:
            drawn += [Text(f"head {head}", "bold")]
        drawn += [HeatMap(weights_LM, rows, columns), Text()]
    return Group(*drawn[:-1])
