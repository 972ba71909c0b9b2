"""SVG, written exactly: elements, escaped text, how wide a text will be, and colours for day and night."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from html import escape

from regard.look.visible import visible

FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"

PALETTE = {
    "paper": ("#ffffff", "#15191f"),
    "ink": ("#1f2328", "#e6e9ee"),
    "soft": ("#5f6770", "#9aa4af"),
    "grid": ("#e7e9ec", "#2a3038"),
    "blue": ("#0072b2", "#56b4e9"),
    "orange": ("#c04f00", "#f0a04b"),
    "green": ("#00805c", "#3cc79b"),
    "purple": ("#9b4d8a", "#d796c4"),
}
"""Each colour by day and by night; the last four stay apart for colour-blind readers (Okabe and Ito)."""

# Ems by character, for the widest of the usual fonts: a text may take less room than planned, never more.
_WIDTHS = {
    **dict.fromkeys("ijlI'|", 0.3),
    **dict.fromkeys('ftr.,:;!()[]/\\ -"', 0.42),
    **dict.fromkeys("mwMWQO%@&+=<>~", 1.0),
    **dict.fromkeys("ÆŒĲæœ", 1.15),
}


_CLOSING = "，。；：、！？”’）》」』…"
"""What must not open a line."""


class Markup(str):
    """A piece of SVG that is ready: it is not escaped again."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element. Plain strings are escaped; `font_size` becomes `font-size`, `class_` becomes `class`."""
    words = [name]
    for key, value in attributes.items():
        written = number(value) if isinstance(value, float) else str(value)
        words.append(f'{key.rstrip("_").replace("_", "-")}="{_escaped(written)}"')
    inside = "".join(child if isinstance(child, Markup) else _escaped(child) for child in children)
    opening = " ".join(words)
    return Markup(f"<{opening}>{inside}</{name}>" if children else f"<{opening}/>")


def number(value: float) -> str:
    """A coordinate to a hundredth of a pixel, as short as it can be."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text_width(text: str, size: float) -> float:
    """About how wide a text is at a font size, never too little: a planned place must hold it."""
    return size * sum(map(_ems, visible(text)))


def folded(words: str | list[str], width: float, size: float, between: str = " ") -> Iterator[str]:
    """Lines no wider than `width`, broken between words; one that is too wide by itself is cut."""
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


def document(width: float, height: float, children: Iterable[Markup], *, title: str, style: str = "") -> str:
    """A whole SVG file, on paper of its own, in the reader's choice of light or dark."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + element(
        "svg",
        element("title", title),
        element("style", Markup(f".regard text{{font-family:{FONT}}}{colours(_PAINT)}{style}")),
        element("rect", width="100%", height="100%", class_="paper"),
        *(Markup("\n" + child) for child in children),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=float(width),
        height=float(height),
        role="img",
        class_="regard",
    )


def colours(rules: dict[str, tuple[str, str]]) -> str:
    """Style rules by class, each with its declarations for day and for night.

    They hold inside our pictures alone: one that stands in a page must not repaint the page.
    """
    day = "".join(f".regard .{name}{{{light}}}" for name, (light, _) in rules.items())
    night = "".join(f".regard .{name}{{{dark}}}" for name, (_, dark) in rules.items())
    return f"{day}@media(prefers-color-scheme:dark){{{night}}}"


_PAINT = {
    **{name: (f"fill:{day}", f"fill:{night}") for name, (day, night) in PALETTE.items()},
    **{
        f"{name}-line": (f"stroke:{day};fill:none", f"stroke:{night};fill:none")
        for name, (day, night) in PALETTE.items()
    },
    # An image has one set of colours, so there are two of each: one is shown.
    "day": ("display:inline", "display:none"),
    "night": ("display:none", "display:inline"),
    "cells": ("image-rendering:pixelated", "image-rendering:pixelated"),
}


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
