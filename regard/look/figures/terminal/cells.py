"""Cells of a terminal: shades for values, and words in a room of so many cells."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console, ConsoleOptions
from rich.style import Style

from regard.look.figures.shades import Shades
from regard.look.visible import visible

SHADES = " ░▒▓█"
ASCII = " .:-=+*#%@"
LONGEST_WORD = 24


def has_colours(console: Console) -> bool:
    """Whether colours can be seen: on a terminal that has some, unless NO_COLOR is set."""
    return console.color_system is not None and not console.no_color


def shade(value: float, most: float, options: ConsoleOptions) -> str:
    """One character that is the darker the larger the value."""
    signs = ASCII if options.ascii_only else SHADES
    return signs[min(len(signs) - 1, max(0, round(abs(value) / most * (len(signs) - 1))))]


def colour(value: float, most: float, shades: Shades) -> Color:
    """The colour of a value, by night: it stands on a black terminal, and as a block on a white one."""
    return Color.parse(shades.by_night[shades.level(value, most)])


def on(value: float, most: float, shades: Shades) -> Style:
    """Letters on the colour of a value, black or white."""
    # The shades of the night grow lighter with the value.
    ink = "#15191f" if abs(value) > 0.55 * most else "#e6e9ee"
    return Style(color=ink, bgcolor=colour(value, most, shades))


def cut(text: str, width: int = LONGEST_WORD) -> str:
    """A text in no more cells than these, with a sign where it was cut."""
    text = visible(text)
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def fitted(text: str, width: int) -> str:
    """A text in exactly so many cells."""
    return set_cell_size(cut(text, width), width)


def widest(texts: Sequence[str], most: int) -> int:
    """Cells that the longest text takes, or as many as there may be."""
    return min(most, max(cell_len(visible(text)) for text in texts))
