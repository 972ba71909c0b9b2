"""Colours of all figures, read from the file that the page reads too: the palette, and shades for values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard import page

STYLE: dict[str, Any] = json.loads(page.read("style.json"))
"""Colours, thresholds, number formats and names that Python and the page share."""

PALETTE = {
    name: (STYLE["palette"]["light"][name], STYLE["palette"]["dark"][name])
    for name in ("paper", "ink", "soft", "grid", "blue", "orange", "green", "purple")
}
"""Each colour in light and in dark mode; the last four suit colour-blind readers (Okabe and Ito)."""


def style_rules(rules: dict[str, tuple[str, str]]) -> str:
    """CSS by class name, each with its declarations for light and for dark mode.

    Selectors are limited to our own pictures: one that is embedded in a page must not restyle the page.
    """
    light = "".join(f".regard .{name}{{{declaration}}}" for name, (declaration, _) in rules.items())
    dark = "".join(f".regard .{name}{{{declaration}}}" for name, (_, declaration) in rules.items())
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


@dataclass(frozen=True, slots=True)
class Shades:
    """A scale of colours for values, in even steps to the eye."""

    letter: str
    """The style classes are this letter and a number from 0."""
    two_sided: bool
    """Whether the middle colour stands for 0 and negative values have colours of their own."""
    light: tuple[str, ...]
    """#rrggbb on light paper, from the least value to the largest."""
    dark: tuple[str, ...]

    @property
    def levels(self) -> int:
        """Number of colours."""
        return len(self.light)

    def level(self, value: float, most: float) -> int:
        """The index of a value's colour; `most` has the last one."""
        return int(self.levels_of(np.asarray(value), most))

    def levels_of(self, values: np.ndarray, most: float) -> np.ndarray:
        """The index of each value's colour, as bytes."""
        share = (values / most + 1) / 2 if self.two_sided else values / most
        return np.rint(np.clip(share, 0, 1) * (self.levels - 1)).astype(np.uint8)

    @property
    def style(self) -> str:
        """CSS classes: `s0`, `s1` … fill with a shade, `on-s0`, `on-s1` … colour the text on it."""
        both = list(zip(self.light, self.dark, strict=True))
        fills = {f"{self.letter}{i}": (f"fill:{a}", f"fill:{b}") for i, (a, b) in enumerate(both)}
        texts = {
            f"on-{self.letter}{i}": (f"fill:{text_on(a)}", f"fill:{text_on(b)}")
            for i, (a, b) in enumerate(both)
        }
        return style_rules(fills | texts)


def text_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour #rrggbb."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if luminance > STYLE["text_on_shade"]["luminance"] else "#ffffff"


def _two_sided(theme: str) -> tuple[str, ...]:
    above, below = STYLE["shades"][theme]["above"], STYLE["shades"][theme]["below"]
    return (*reversed(below[2::2]), *above[::2])


ONE_WAY = Shades(
    "s", False, tuple(STYLE["shades"]["light"]["above"]), tuple(STYLE["shades"]["dark"]["above"])
)
"""From 0 to the largest value, in blue."""
BOTH_WAYS = Shades("d", True, _two_sided("light"), _two_sided("dark"))
"""From the most negative in orange over 0 to the most positive in blue."""
