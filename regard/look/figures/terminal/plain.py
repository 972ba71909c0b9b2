"""Our own signs in ASCII, for a terminal that knows no others; what a text spells stays what it is."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

# One for one: whatever was measured keeps its width.
_SIGNS = str.maketrans("▸█·★■✗…→←“”−∞√Σ⊙", '>#*@+x~><""-ovSo')


@dataclass(frozen=True, slots=True)
class Plain:
    """Something to print."""

    inside: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As it is, or with signs that the terminal has."""
        if not options.ascii_only:
            yield self.inside
            return
        for segment in console.render(self.inside, options):
            yield Segment(segment.text.translate(_SIGNS), segment.style, segment.control)
