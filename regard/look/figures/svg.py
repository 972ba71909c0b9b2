"""SVG: elements and escaped text, text measured and folded, the parts that all pictures share, and PNG."""

from __future__ import annotations

import struct
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module

import numpy as np

from regard.errors import RequestError
from regard.look.figures.colours import PALETTE, STYLE, Shades, style_rules
from regard.look.trace.tokens import visible

FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
MARGIN, GAP = 20.0, 22.0
TITLE, TEXT, SMALL, LINE = 17.0, 12.0, 10.5, 16.0
"""Font sizes, and the height of a line of text."""
NARROWEST = 460.0
"""Least width of the heading."""
LEGEND = 28.0
"""Height of a legend of shades, with the gap below it."""
TITLE_LINES = 3
"""A longer title is cut off."""
ZOOM = 2
"""Pixels of a PNG per pixel of the SVG."""

# Widths in em, for the widest of the usual fonts: a text may take less room than planned, never more.
_WIDTHS = {
    **dict.fromkeys("ijlI'|", 0.3),
    **dict.fromkeys('ftr.,:;!()[]/\\ -"', 0.42),
    **dict.fromkeys("mwMWQO%@&+=<>~", 1.0),
    **dict.fromkeys("ÆŒĲæœ", 1.15),
}
_CLOSING = "，。；：、！？”’）》」』…"
"""Characters that must not begin a line."""


class Markup(str):
    """A finished piece of SVG: it is not escaped again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in a picture."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element. Plain strings are escaped; `font_size` becomes `font-size`, `class_` becomes `class`."""
    words = [name]
    for key, value in attributes.items():
        written = number(value) if isinstance(value, float) else str(value)
        words.append(f'{key.rstrip("_").replace("_", "-")}="{_escaped(written)}"')
    inside = "".join(child if isinstance(child, Markup) else _escaped(child) for child in children)
    opening = " ".join(words)
    return Markup(f"<{opening}>{inside}</{name}>" if children else f"<{opening}/>")


def document(width: float, height: float, children: Iterable[Markup], *, title: str, style: str = "") -> str:
    """A whole SVG file with its own background, in the reader's choice of light or dark."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + element(
        "svg",
        element("title", title),
        element("style", Markup(f".regard text{{font-family:{FONT}}}{style_rules(_CLASSES)}{style}")),
        element("rect", width="100%", height="100%", class_="paper"),
        *(Markup("\n" + child) for child in children),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=float(width),
        height=float(height),
        role="img",
        class_="regard",
    )


_CLASSES = {
    **{name: (f"fill:{light}", f"fill:{dark}") for name, (light, dark) in PALETTE.items()},
    **{
        f"{name}-line": (f"stroke:{light};fill:none", f"stroke:{dark};fill:none")
        for name, (light, dark) in PALETTE.items()
    },
    # A bitmap has fixed colours, so each is embedded twice and one of the two is shown.
    "day": ("display:inline", "display:none"),
    "night": ("display:none", "display:inline"),
    "cells": ("image-rendering:pixelated", "image-rendering:pixelated"),
}


def number(value: float) -> str:
    """A coordinate, to a hundredth of a pixel."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def tick_label(value: float) -> str:
    """A number at an axis: 20,000, 0.5, 2e-4."""
    if value and not 1e-3 <= abs(value) < 1e9:
        mantissa, exponent = f"{value:.6e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def short_number(value: float) -> str:
    """A number in about four characters, with a real minus sign."""
    if not np.isfinite(value):
        return "−∞" if value < 0 else "∞"
    digits = next(digits for least, digits in STYLE["number"]["digits"] if abs(value) >= least)
    text = f"{value:.{digits}f}"
    return minus(text) if float(text) else text.lstrip("-")


def minus(text: str) -> str:
    """A formatted number with a real minus sign."""
    return text.replace("-", STYLE["number"]["minus"])


def text_width(text: str, size: float) -> float:
    """Width of a text at a font size, estimated from above: planned room must hold it."""
    return size * sum(map(_ems, visible(text)))


def folded(words: str | list[str], width: float, size: float, between: str = " ") -> Iterator[str]:
    """Lines no wider than `width`, broken between words; a word that is wider is cut."""
    line = ""
    for word in words.split(between) if isinstance(words, str) else words:
        if line and text_width(line + between + word, size) > width:
            yield line
            line = ""
        line += between + word if line else word
        while text_width(line, size) > width:
            fits = next(n for n in range(len(line), 0, -1) if n == 1 or text_width(line[:n], size) <= width)
            if fits > 1 and line[fits] in _CLOSING:
                fits -= 1
            yield line[:fits]
            line = line[fits:]
    yield line


def clipped(text: str, width: float, size: float = TEXT) -> str:
    """A text, or as much of it as fits into a width, and an ellipsis."""
    if text_width(text, size) <= width:
        return text
    room = width - text_width("…", size)
    kept = next(text[:n] for n in range(len(text), -1, -1) if text_width(text[:n], size) <= room)
    whole_words, space, _ = kept.rpartition(" ")
    return (whole_words if space and len(whole_words) > len(kept) / 2 else kept.rstrip()) + "…"


def words(
    text: str, x: float, y: float, colour: str = "ink", size: float = TEXT, **attributes: object
) -> Markup:
    """A text on the base line y."""
    return element("text", text, x=x, y=y, class_=colour, font_size=size, **attributes)


def heading(
    title: str, notes: str, width: float, shades: Shades | None = None, most: float = 1.0
) -> tuple[list[Markup], float]:
    """The title, the notes below it, a legend of shades if given, and the y at which they end."""
    drawn, top = [], MARGIN
    bold = 1.1 * TITLE  # bold letters are wider
    lines = list(folded(title, width, bold))
    if len(lines) > TITLE_LINES:
        rest = " ".join(lines[TITLE_LINES - 1 :])
        lines = [*lines[: TITLE_LINES - 1], clipped(rest, width, bold)]
    for line in lines:
        top += TITLE + 4
        drawn.append(words(line, MARGIN, top - 4, size=TITLE, font_weight=600))
    # A note that is too long for a line is folded; the last of its lines then has no room for the next note.
    facts = [piece for fact in notes.split(" · ") for piece in folded(fact, width, TEXT)]
    for line in folded(facts, width, TEXT, between=" · "):
        top += LINE
        drawn.append(words(line, MARGIN, top, "soft"))
    top += 10
    if shades is None:
        return drawn, top
    return [*drawn, *_legend(shades, most, top)], top + LEGEND


def _legend(shades: Shades, most: float, top: float) -> Iterator[Markup]:
    """Legend of the shades, with numbers at both ends."""
    least = tick_label(-most) if shades.two_sided else "0"
    left = MARGIN + text_width(least, TEXT) + 6
    strip = 160.0 / shades.levels
    yield words(least, MARGIN, top + 10, "soft")
    for i in range(shades.levels):
        # Slightly wider than a step, so that no seam shows.
        shade = f"{shades.letter}{i}"
        yield element("rect", x=left + i * strip, y=top, width=strip + 0.5, height=12, class_=shade)
    yield element("rect", x=left, y=top, width=160.5, height=12, class_="grid-line")
    yield words(tick_label(most), left + 168, top + 10, "soft")


def indexed_png(levels: np.ndarray, palette: Sequence[str]) -> bytes:
    """A PNG of one pixel per cell: (rows, columns) of bytes, each the index of a colour #rrggbb."""
    rows, columns = levels.shape
    # Every row begins with the byte of its filter: none.
    lines = np.pad(levels.astype(np.uint8), ((0, 0), (1, 0)))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)  # eight bits per pixel, indexed
    chunks = {
        b"IHDR": header,
        b"PLTE": bytes.fromhex("".join(colour.lstrip("#") for colour in palette)),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks.items())


def rasterised(picture: str) -> bytes:
    """One of our SVG pictures as a PNG, in light mode.

    Raises:
        RequestError: resvg is not installed.
    """
    try:
        resvg = import_module("resvg_py")
    except ImportError as error:
        what = "PNG needs resvg, which is not installed: pip install 'regard[plots]', or save as .svg"
        raise RequestError(what, code="missing_package") from error
    drawn: bytes = resvg.svg_to_bytes(svg_string=picture, zoom=ZOOM)
    return drawn


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _escaped(text: str) -> str:
    return escape(visible(text))


def _ems(character: str) -> float:
    if (width := _WIDTHS.get(character)) is not None:
        return width
    category = unicodedata.category(character)
    if category == "Cf" or "\u0300" <= character <= "\u036f":
        return 0.0  # joiners and accents stand on their neighbours
    if unicodedata.east_asian_width(character) in "WF" and category == "So":
        return 1.3  # an emoji is wider than a Chinese character
    if character >= "\u0530" or category[0] not in "L":
        return 0.65 if character.isascii() else 1.02
    return 0.78 if category == "Lu" else 0.65
