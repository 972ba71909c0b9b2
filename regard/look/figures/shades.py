"""Shades for values, from nothing to the most or both ways: even steps to the eye, by day and by night."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, radians, sin

import numpy as np

from regard.look.figures.svg import colours

Point = tuple[float, float, float]
"""Lightness, chroma and hue in degrees: OKLCH."""


@dataclass(frozen=True)
class Shades:
    """So many colours between a few points, in equal steps."""

    letter: str
    """The style classes are this letter and a number from 0."""
    levels: int
    two_sided: bool
    """Whether the middle stands for nothing, and values below zero have colours of their own."""
    day: tuple[Point, ...]
    night: tuple[Point, ...]

    def level(self, value: float, most: float) -> int:
        """Which shade a value has."""
        return int(self.levels_of(np.asarray(value), most))

    def levels_of(self, values: np.ndarray, most: float) -> np.ndarray:
        """Which shade each value has, as bytes."""
        share = (values / most + 1) / 2 if self.two_sided else values / most
        return np.rint(np.clip(share, 0, 1) * (self.levels - 1)).astype(np.uint8)

    def ink_on(self, value: float, most: float) -> str:
        """The colour of a number that stands on a value's shade: the paper's where the shade is strong."""
        return "paper" if abs(value) > 0.7 * most else "ink"

    @cached_property
    def by_day(self) -> tuple[str, ...]:
        """All colours on white paper, as #rrggbb."""
        return tuple(_hex(self.day, i / (self.levels - 1)) for i in range(self.levels))

    @cached_property
    def by_night(self) -> tuple[str, ...]:
        """All colours on dark paper."""
        return tuple(_hex(self.night, i / (self.levels - 1)) for i in range(self.levels))

    @property
    def style(self) -> str:
        """The style rules of all shades: the classes `s0` to `s63`."""
        both = zip(self.by_day, self.by_night, strict=True)
        return colours(
            {f"{self.letter}{i}": (f"fill:{day}", f"fill:{night}") for i, (day, night) in enumerate(both)}
        )


# More shades than an eye can tell apart side by side.
ONE_WAY = Shades(
    "s",
    64,
    False,
    day=((0.985, 0.005, 250.0), (0.36, 0.13, 250.0)),
    night=((0.245, 0.02, 250.0), (0.93, 0.08, 250.0)),
)
"""From nothing to the most, in blue."""
BOTH_WAYS = Shades(
    "d",
    65,
    True,
    day=((0.48, 0.15, 45.0), (0.985, 0.0, 0.0), (0.42, 0.13, 250.0)),
    night=((0.80, 0.14, 60.0), (0.25, 0.01, 250.0), (0.80, 0.11, 240.0)),
)
"""From the least in orange over nothing to the most in blue, which colour-blind readers tell apart."""


def _hex(points: tuple[Point, ...], share: float) -> str:
    """The colour at a share of the way, as sRGB. In OKLab equal distances look equal (Ottosson, 2020)."""
    place = share * (len(points) - 1)
    before = min(int(place), len(points) - 2)
    ends = zip(_lab(points[before]), _lab(points[before + 1]), strict=True)
    lightness, a, b = (least + (place - before) * (most - least) for least, most in ends)
    # From OKLab to the responses of the three cones, and from these to linear sRGB.
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, light)))):02x}" for light in linear)


def _lab(point: Point) -> Point:
    lightness, chroma, hue = point
    return lightness, chroma * cos(radians(hue)), chroma * sin(radians(hue))


def _gamma(light: float) -> float:
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
