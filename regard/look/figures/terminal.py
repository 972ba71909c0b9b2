"""Drawing on a terminal: shaded cells, heat maps, tables of words, and an ASCII fallback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from regard.look.figures.colours import ONE_WAY, Shades, text_on
from regard.look.figures.heatmap import max_pooled, sampled
from regard.look.trace.tokens import visible

LONGEST_WORD = 24
"""Cells of a word in a table."""
CELL = 3
"""Width of a column of a heat map: two digits, or a Chinese character, and a space."""
LONGEST_ROW, TALLEST_COLUMN = 14, 10
"""Longest name of a row, in cells, and of a column, which is written downwards, in letters."""
_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:-=+*#%@"
# One character for one, so that widths stay the same.
_ASCII_SIGNS = str.maketrans("▸█·★■✗…→←“”−∞√Σ⊙", '>#*@+x~><""-ovSo')


def has_colours(console: Console) -> bool:
    """Whether the terminal shows colours, and NO_COLOR is not set."""
    return console.color_system is not None and not console.no_color


def shade_character(value: float, most: float, options: ConsoleOptions) -> str:
    """One character, darker for larger values."""
    signs = _ASCII_SHADES if options.ascii_only else _SHADES
    return signs[min(len(signs) - 1, max(0, round(abs(value) / most * (len(signs) - 1))))]


def shade_colour(value: float, most: float, shades: Shades) -> Color:
    """The dark-mode shade of a value, for white and for black terminals."""
    return Color.parse(shades.dark[shades.level(value, most)])


def cut(text: str, width: int = LONGEST_WORD) -> str:
    """A text in at most `width` cells, with an ellipsis where it was cut."""
    text = visible(text)
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def table(*columns: str) -> Table:
    """A table without lines."""
    empty = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        empty.add_column(name)
    return empty


def word(text: str) -> Text:
    """A word in a table, cut and never wrapped."""
    return Text(cut(text), no_wrap=True)


@dataclass(frozen=True, slots=True)
class AsciiFallback:
    """Something to print; on an ASCII terminal our own signs are replaced, texts are not."""

    inside: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print it, with the signs that the terminal has."""
        if not options.ascii_only:
            yield self.inside
            return
        for segment in console.render(self.inside, options):
            yield Segment(segment.text.translate(_ASCII_SIGNS), segment.style, segment.control)


@dataclass(frozen=True, eq=False, slots=True)
class HeatMap:
    """A matrix in hundredths: names of columns above, written downwards, names of rows at the left.

    Columns that do not fit beside the others are printed below them.
    """

    shares: np.ndarray
    """(rows, columns), from 0 to 1."""
    rows: Sequence[str]
    columns: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Blocks of as many columns as fit."""
        beside = min(LONGEST_ROW, max(cell_len(visible(name)) for name in self.rows))
        at_once = max(1, (options.max_width - beside - 1) // CELL)
        for start in range(0, len(self.columns), at_once):
            if start:
                yield Text()
            place = slice(start, start + at_once)
            yield from _column_names([visible(name) for name in self.columns[place]], beside)
            for name, row in zip(self.rows, self.shares[:, place].tolist(), strict=True):
                line = Text(_fitted(name, beside) + " ", end="\n")
                for share in row:
                    line.append(*_heat_cell(share, console, options))
                yield line


@dataclass(frozen=True, eq=False, slots=True)
class SmallHeatMap:
    """A matrix without names, pooled to fit: two rows of cells per line of the terminal."""

    values: np.ndarray
    width: int
    height: int
    """In lines."""
    most: float = 1.0
    shades: Shades = ONE_WAY

    def lines(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """The lines, each as wide as the matrix."""
        smaller = sampled if self.shades.two_sided else max_pooled
        if not has_colours(console) or options.ascii_only:
            values = smaller(self.values, self.height, self.width).tolist()
            return [[Segment("".join(shade_character(v, self.most, options) for v in row))] for row in values]
        rows = smaller(self.values, 2 * self.height, self.width).tolist()
        nothing = [None] * len(rows[0])
        pairs = zip_longest(rows[::2], rows[1::2], fillvalue=nothing)
        return [[self._two(*both) for both in zip(top, below, strict=True)] for top, below in pairs]

    def _two(self, top: float, below: float | None) -> Segment:
        """Two cells of the matrix as the halves of one character."""
        background = None if below is None else shade_colour(below, self.most, self.shades)
        return Segment("▀", Style(color=shade_colour(top, self.most, self.shades), bgcolor=background))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Line by line."""
        for line in self.lines(console, options):
            yield from (*line, Segment.line())


@dataclass(frozen=True, eq=False, slots=True)
class Thumbnails:
    """All heads: a row of small heat maps for each layer, the last layer on top as in Figure 1.

    Heads that do not fit are printed below.
    """

    weights: np.ndarray
    """(layers, heads, queries, keys)."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many heads side by side as fit."""
        n_layers, n_heads, queries, keys = self.weights.shape
        names = [f"layer {layer} " for layer in range(n_layers)]
        beside = max(map(len, names))
        width = min(keys, max(8, (options.max_width - beside) // min(n_heads, 8) - 2))
        slot = 2 + max(width, len(f"head {n_heads - 1}"))
        at_once = max(1, (options.max_width - beside) // slot)
        # A cell of a terminal is about twice as high as wide.
        height = max(1, min(ceil(queries / 2), ceil(width * min(2.0, queries / keys) / 2)))
        for start in range(0, n_heads, at_once):
            heads = range(start, min(n_heads, start + at_once))
            yield Text(" " * beside + "".join(f"head {head}".ljust(slot) for head in heads).rstrip())
            for layer in reversed(range(n_layers)):
                small = [
                    SmallHeatMap(self.weights[layer, head], width, height).lines(console, options)
                    for head in heads
                ]
                for i in range(len(small[0])):
                    yield Segment(names[layer].ljust(beside) if i == 0 else " " * beside)
                    for lines in small:
                        yield from (*lines[i], Segment(" " * (slot - width)))
                    yield Segment.line()
                yield Segment.line()


def _fitted(text: str, width: int) -> str:
    """A text in exactly `width` cells."""
    return set_cell_size(cut(text, width), width)


def _column_names(columns: Sequence[str], beside: int) -> Iterator[Text]:
    """The names written downwards, one letter a line, standing on the matrix."""
    letters = [_letters(name) for name in columns]
    tallest = max(map(len, letters))
    for line in range(tallest):
        row = Text(" " * (beside + 1))
        for name in letters:
            place = line - (tallest - len(name))
            row.append(_fitted(name[place] if place >= 0 else "", CELL))
        yield row


def _letters(name: str) -> list[str]:
    """The letters of a name, each with its combining marks."""
    letters: list[str] = []
    for letter in name:
        if letters and cell_len(letter) == 0:
            letters[-1] += letter
        else:
            letters.append(letter)
    return letters if len(letters) <= TALLEST_COLUMN else [*letters[: TALLEST_COLUMN - 1], "…"]


def _heat_cell(share: float, console: Console, options: ConsoleOptions) -> tuple[str, Style]:
    hundredths = min(99, round(100 * share))
    digits = f"{hundredths:2d}" if hundredths else "  "
    if has_colours(console):
        colour = ONE_WAY.dark[ONE_WAY.level(share, 1.0)]
        return f"{digits} ", Style(color=text_on(colour), bgcolor=colour)
    return f"{shade_character(share, 1.0, options) if hundredths else ' '}{digits}", Style()
