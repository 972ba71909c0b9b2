"""Which word comes from which: shares, the link of each word written, how much each word read gave."""

from __future__ import annotations

from collections.abc import Iterator

from regard.look.alignment.alignment import Alignment
from regard.look.figures.cells import rectangles
from regard.look.figures.grid import Grid
from regard.look.figures.shades import ONE_WAY
from regard.look.figures.sheet import LEGEND, LINE, MARGIN, NARROWEST, SMALL, Box, heading, scale_of, words
from regard.look.figures.svg import PALETTE, Markup, colours, document, element

COVERAGE = 44.0
"""Height of the bar of a word from which as much was taken as one word gives."""
MOST_COVERAGE = 2.0
"""Bars are cut here."""


def alignment_svg(aligned: Alignment, title: str, chosen: str) -> str:
    """Draw an alignment of words.

    Args:
        aligned: the words and their shares.
        title: stands above the picture.
        chosen: the heads that it was read off, in words.
    """
    rows, columns = [word.text for word in aligned.outputs], [word.text for word in aligned.inputs]
    grid = Grid.of([""], rows, columns)
    width = max(grid.width, NARROWEST)
    note = f"{chosen} · a row: a word written · a column: a word read, and below how much it gave · ○ a link"
    drawn, top = heading(title, note, width)
    drawn += scale_of(ONE_WAY, 1.0, top)
    top += LEGEND
    box = grid.place(0, top)

    def told(i: int, j: int) -> str:
        return f"{rows[i]} ← {columns[j]}: {aligned.shares[i, j]:.4f}"

    drawn += rectangles(aligned.shares, ONE_WAY, 1.0, box, told)
    drawn += _links(aligned, grid, box)
    drawn += grid.labels(top)
    drawn += _coverage(aligned, grid, box)
    bottom = box.bottom + 10 + MOST_COVERAGE * COVERAGE / 2 + 2 * LINE + MARGIN
    return document(width + 2 * MARGIN, bottom, drawn, title=title, style=ONE_WAY.style + _LINK)


# Paper inside and ink around: seen on a light cell and on a dark one.
_DAY, _NIGHT = (f"fill:{PALETTE['paper'][i]};stroke:{PALETTE['ink'][i]}" for i in (0, 1))
_LINK = colours({"link": (_DAY, _NIGHT)})


def _links(aligned: Alignment, grid: Grid, box: Box) -> Iterator[Markup]:
    for j, i in aligned.links:
        x, y = box.left + (j + 0.5) * grid.cell[0] - 0.5, box.top + (i + 0.5) * grid.cell[1] - 0.5
        yield element("circle", cx=x, cy=y, r=4.0, class_="link", stroke_width=1.5)


def _coverage(aligned: Alignment, grid: Grid, box: Box) -> Iterator[Markup]:
    """A bar for each word read; one that no word is linked with is marked."""
    unlinked = set(range(len(aligned.inputs))) - {j for j, _ in aligned.links}
    top = box.bottom + 10
    for j, share in enumerate(aligned.coverage.tolist()):
        height = max(1.0, min(MOST_COVERAGE, share) * COVERAGE / 2)
        x = box.left + j * grid.cell[0]
        mark = " (no word is linked with it)" if j in unlinked else ""
        yield element(
            "rect",
            element("title", f"{aligned.inputs[j].text}: {share:.2f}{mark}"),
            x=x + 3,
            y=top,
            width=grid.cell[0] - 7,
            height=height,
            class_="orange" if mark else "blue",
        )
        if mark:
            yield words("?", x + grid.cell[0] / 2, top + height + 13, "orange", text_anchor="middle")
    if unlinked:
        y = top + MOST_COVERAGE * COVERAGE / 2 + LINE + 8
        yield words("? no word written is linked with it", MARGIN, y, "orange", SMALL)
