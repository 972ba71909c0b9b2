"""Heat maps on a terminal: with words and numbers, or small, two rows of pixels in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from regard.look.figures.cells import max_pooled, sampled
from regard.look.figures.shades import ONE_WAY, Shades
from regard.look.figures.terminal.cells import colour, fitted, has_colours, on, shade, widest
from regard.look.visible import visible

CELL = 3
"""Cells of a column: two digits, or a Chinese character, and one apart."""
LONGEST_ROW, TALLEST_COLUMN = 14, 10
"""Cells of a word at the left; letters of one above, which are written downwards."""


@dataclass(frozen=True, eq=False, slots=True)
class HeatMap:
    """Shares in hundredths; the words read stand above, from top to bottom, the words written at the left.

    What does not fit beside the rest stands below it.
    """

    shares: np.ndarray
    """(rows, columns), from 0 to 1."""
    rows: Sequence[str]
    columns: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Blocks of as many columns as the terminal holds."""
        beside = widest(self.rows, LONGEST_ROW)
        at_once = max(1, (options.max_width - beside - 1) // CELL)
        for start in range(0, len(self.columns), at_once):
            if start:
                yield Text()
            place = slice(start, start + at_once)
            yield from _above([visible(word) for word in self.columns[place]], beside)
            for name, row in zip(self.rows, self.shares[:, place].tolist(), strict=True):
                line = Text(fitted(name, beside) + " ", end="\n")
                for share in row:
                    line.append(*_cell(share, console, options))
                yield line


def _above(columns: Sequence[str], beside: int) -> Iterator[Text]:
    """The words, a letter in each line, standing on the matrix."""
    letters = [_letters(word) for word in columns]
    tallest = max(map(len, letters))
    for line in range(tallest):
        found = Text(" " * (beside + 1))
        for word in letters:
            place = line - (tallest - len(word))
            found.append(fitted(word[place] if place >= 0 else "", CELL))
        yield found


def _letters(word: str) -> list[str]:
    """What stands in each line: a letter with the marks on it."""
    letters: list[str] = []
    for letter in word:
        if letters and cell_len(letter) == 0:
            letters[-1] += letter
        else:
            letters.append(letter)
    return letters if len(letters) <= TALLEST_COLUMN else [*letters[: TALLEST_COLUMN - 1], "…"]


def _cell(share: float, console: Console, options: ConsoleOptions) -> tuple[str, Style]:
    hundredths = min(99, round(100 * share))
    digits = f"{hundredths:2d}" if hundredths else "  "
    if has_colours(console):
        return f"{digits} ", on(share, 1.0, ONE_WAY)
    return f"{shade(share, 1.0, options) if hundredths else ' '}{digits}", Style()


@dataclass(frozen=True, eq=False, slots=True)
class Small:
    """A matrix without words, no larger than its room: of neighbours the largest shows."""

    values: np.ndarray
    width: int
    height: int
    """In lines."""
    most: float = 1.0
    shades: Shades = ONE_WAY

    def lines(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """Each line as wide as the matrix is drawn."""
        smaller = sampled if self.shades.two_sided else max_pooled
        if not has_colours(console) or options.ascii_only:
            values = smaller(self.values, self.height, self.width).tolist()
            return [[Segment("".join(shade(v, self.most, options) for v in row))] for row in values]
        rows = smaller(self.values, 2 * self.height, self.width).tolist()
        nothing = [None] * len(rows[0])
        pairs = zip_longest(rows[::2], rows[1::2], fillvalue=nothing)
        return [[self._two(*both) for both in zip(top, below, strict=True)] for top, below in pairs]

    def _two(self, top: float, below: float | None) -> Segment:
        """The upper half of a cell and the lower one."""
        background = None if below is None else colour(below, self.most, self.shades)
        return Segment("▀", Style(color=colour(top, self.most, self.shades), bgcolor=background))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Line by line."""
        for line in self.lines(console, options):
            yield from (*line, Segment.line())


@dataclass(frozen=True, eq=False, slots=True)
class Thumbnails:
    """All heads: a row of small heat maps for each layer, as many of them side by side as fit."""

    weights: np.ndarray
    """(layers, heads, queries, keys)."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Heads that do not fit beside the others stand below them."""
        n_layers, n_heads, queries, keys = self.weights.shape
        names = [f"layer {layer} " for layer in range(n_layers)]
        beside = max(map(len, names))
        width = min(keys, max(8, (options.max_width - beside) // min(n_heads, 8) - 2))
        slot = 2 + max(width, len(f"head {n_heads - 1}"))
        at_once = max(1, (options.max_width - beside) // slot)
        # A cell is about twice as high as it is wide.
        height = max(1, min(ceil(queries / 2), ceil(width * min(2.0, queries / keys) / 2)))
        for start in range(0, n_heads, at_once):
            heads = range(start, min(n_heads, start + at_once))
            yield Text(" " * beside + "".join(f"head {head}".ljust(slot) for head in heads).rstrip())
            for layer in range(n_layers):
                small = [
                    Small(self.weights[layer, head], width, height).lines(console, options) for head in heads
                ]
                for i in range(len(small[0])):
                    yield Segment(names[layer].ljust(beside) if i == 0 else " " * beside)
                    for lines in small:
                        yield from (*lines[i], Segment(" " * (slot - width)))
                    yield Segment.line()
                yield Segment.line()
