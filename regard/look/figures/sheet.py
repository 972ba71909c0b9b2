"""What all pictures share: margins, a heading, boxes, a scale of shades, and words cut to a width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from regard.look.figures.axes import tick_label
from regard.look.figures.shades import Shades
from regard.look.figures.svg import Markup, element, folded, text_width

MARGIN, GAP = 20.0, 22.0
TITLE, TEXT, SMALL, LINE = 17.0, 12.0, 10.5, 16.0
NARROWEST = 460.0
"""Room that the heading has at least."""
LEGEND = 28.0
"""Height of a scale, with the gap below it."""
TITLE_LINES = 3
"""A title is a text, which may be long: more than these are cut off."""


@dataclass(frozen=True, slots=True)
class Box:
    """A place in a picture."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Where it ends at the right."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Where it ends below."""
        return self.top + self.height


def words(
    text: str, x: float, y: float, colour: str = "ink", size: float = TEXT, **attributes: object
) -> Markup:
    """A text that stands on the line y."""
    return element("text", text, x=x, y=y, class_=colour, font_size=size, **attributes)


def heading(title: str, notes: str, width: float) -> tuple[list[Markup], float]:
    """The title, what is to be known below it, and where they end."""
    drawn, top = [], MARGIN
    for line in _lines(title, width, 1.1 * TITLE):  # bold letters are wider
        top += TITLE + 4
        drawn.append(words(line, MARGIN, top - 4, size=TITLE, font_weight=600))
    # A fact that is too long for a line is broken between words; of one piece, the next never fits beside it.
    facts = [piece for fact in notes.split(" · ") for piece in folded(fact, width, TEXT)]
    for line in folded(facts, width, TEXT, between=" · "):
        top += LINE
        drawn.append(words(line, MARGIN, top, "soft"))
    return drawn, top + 10


def clipped(text: str, width: float, size: float = TEXT) -> str:
    """A text, or as much of it as a width holds, and a sign that there is more."""
    if text_width(text, size) <= width:
        return text
    room = width - text_width("…", size)
    kept = next(text[:n] for n in range(len(text), -1, -1) if text_width(text[:n], size) <= room)
    whole_words, space, _ = kept.rpartition(" ")
    return (whole_words if space and len(whole_words) > len(kept) / 2 else kept.rstrip()) + "…"


def scale_of(shades: Shades, most: float, top: float) -> Iterator[Markup]:
    """The shades from the least to the most, with numbers at both ends."""
    least = tick_label(-most) if shades.two_sided else "0"
    left = MARGIN + text_width(least, TEXT) + 6
    strip = 160.0 / shades.levels
    yield words(least, MARGIN, top + 10, "soft")
    for i in range(shades.levels):
        # A little wider than a step: no seams.
        shade = f"{shades.letter}{i}"
        yield element("rect", x=left + i * strip, y=top, width=strip + 0.5, height=12, class_=shade)
    yield element("rect", x=left, y=top, width=160.5, height=12, class_="grid-line")
    yield words(tick_label(most), left + 168, top + 10, "soft")


def _lines(title: str, width: float, size: float) -> Iterable[str]:
    lines = list(folded(title, width, size))
    if len(lines) <= TITLE_LINES:
        return lines
    rest = clipped(" ".join(lines[TITLE_LINES - 1 :]), width, size)
    return [*lines[: TITLE_LINES - 1], rest]
