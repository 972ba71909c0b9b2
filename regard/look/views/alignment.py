"""View of word alignment: shares between words, the link of each word written, coverage of each word read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from regard.look.alignment.alignment import Alignment, align
from regard.look.figures.colours import ONE_WAY, PALETTE, style_rules
from regard.look.figures.heatmap import Grid, rectangles
from regard.look.figures.svg import (
    LINE,
    MARGIN,
    NARROWEST,
    SMALL,
    Box,
    Markup,
    document,
    element,
    heading,
    words,
)
from regard.look.trace.data import TraceData
from regard.look.views.view import Choice, Screen, Table, View, place_name, title_of

if TYPE_CHECKING:
    from rich.console import Group

COVERAGE = 44.0
"""Height of a bar for a coverage of 2."""
MOST_COVERAGE = 2.0
"""Longer bars are cut."""
BAR = 20
"""Cells of a terminal for a share of 1."""


def aligned(trace: TraceData, choice: Choice) -> Alignment:
    """The alignment of words by the chosen heads."""
    return align(trace, choice.aligning.heads, choice.aligning.rows)


def heads_name(choice: Choice) -> str:
    """The heads by which words are aligned, and their accuracy."""
    of_layer: dict[int, list[int]] = {}
    for layer, head in sorted(choice.aligning.heads):
        of_layer.setdefault(layer, []).append(head)
    names = " and ".join(place_name("cross", layer, heads) for layer, heads in of_layer.items())
    if choice.aligning.accuracy is None:
        return f"by {names}"
    return f"by {names} · {choice.aligning.accuracy:.0%} of known links found"


def alignment_svg(found: Alignment, title: str, by: str) -> str:
    """Draw the shares of all pairs of words, the links and the coverage; `by` names the heads."""
    rows, columns = [word.text for word in found.outputs], [word.text for word in found.inputs]
    grid = Grid.of([""], rows, columns)
    width = max(grid.width, NARROWEST)
    note = "rows: words written · columns: words read, below them their coverage · ○ a link"
    drawn, top = heading(title, f"{by} · {note}", width, ONE_WAY)
    box = grid.place(0, top)

    def tooltip(i: int, j: int) -> str:
        return f"{rows[i]} ← {columns[j]}: {found.shares[i, j]:.4f}"

    drawn += rectangles(found.shares, ONE_WAY, 1.0, box, tooltip)
    drawn += _links(found, grid, box)
    drawn += grid.labels(top)
    drawn += _coverage(found, grid, box)
    bottom = box.bottom + 10 + MOST_COVERAGE * COVERAGE / 2 + 2 * LINE + MARGIN
    return document(width + 2 * MARGIN, bottom, drawn, title=title, style=ONE_WAY.style + _LINK)


# Filled with paper and outlined with ink: visible on light and on dark cells.
_LIGHT, _DARK = (f"fill:{PALETTE['paper'][i]};stroke:{PALETTE['ink'][i]}" for i in (0, 1))
_LINK = style_rules({"link": (_LIGHT, _DARK)})


def _links(found: Alignment, grid: Grid, box: Box) -> Iterator[Markup]:
    for j, i in found.links:
        x, y = box.left + (j + 0.5) * grid.cell[0] - 0.5, box.top + (i + 0.5) * grid.cell[1] - 0.5
        yield element("circle", cx=x, cy=y, r=4.0, class_="link", stroke_width=1.5)


def _coverage(found: Alignment, grid: Grid, box: Box) -> Iterator[Markup]:
    """A bar for each word read; words without a link are marked."""
    top = box.bottom + 10
    for j, (word, share) in enumerate(zip(found.inputs, found.coverage.tolist(), strict=True)):
        height = max(1.0, min(MOST_COVERAGE, share) * COVERAGE / 2)
        x = box.left + j * grid.cell[0]
        mark = " (no link)" if word in found.untouched else ""
        yield element(
            "rect",
            element("title", f"{word.text}: {share:.2f}{mark}"),
            x=x + 3,
            y=top,
            width=grid.cell[0] - 7,
            height=height,
            class_="orange" if mark else "blue",
        )
        if mark:
            yield words("?", x + grid.cell[0] / 2, top + height + 13, "orange", text_anchor="middle")
    if found.untouched:
        y = top + MOST_COVERAGE * COVERAGE / 2 + LINE + 8
        yield words("? not linked with any word written", MARGIN, y, "orange", SMALL)


def _svg(trace: TraceData, choice: Choice) -> str:
    return alignment_svg(aligned(trace, choice), title_of(trace), heads_name(choice))


def _table(trace: TraceData, choice: Choice) -> Table:
    found = aligned(trace, choice)
    sides = {"output": found.outputs, "input": found.inputs}
    return Table(found.shares, {name: [word.text for word in side] for name, side in sides.items()})


def alignment_text(found: Alignment) -> Group:
    """A line for each word written, with its link and share, and the coverage of the words read."""
    from rich.console import Group
    from rich.text import Text

    from regard.look.figures.terminal import cut, table, word

    links = table("written", "read", "share")
    for j, i in found.links:
        share = float(found.shares[i, j])
        bar = "█" * round(BAR * share)
        links.add_row(word(found.outputs[i].text), word(found.inputs[j].text), f"{share:.2f} {bar}")
    coverage = Text("coverage: ")
    for each, share in zip(found.inputs, found.coverage.tolist(), strict=True):
        mark, style = ("?", "bold") if each in found.untouched else ("", "")
        coverage.append(f"{cut(each.text)}{mark} {share:.2f}  ", style)
    if found.untouched:
        coverage.append("(?: not linked with any word written)", "dim")
    return Group(links, Text(), coverage)


def _screen(trace: TraceData, choice: Choice) -> Screen:
    return Screen(title_of(trace), heads_name(choice), alignment_text(aligned(trace, choice)))


VIEWS = {"alignment": View(_svg, _screen, _table)}
