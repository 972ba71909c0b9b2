"""Shades of one hue for values from nothing to the most: even steps to the eye, by day and by night."""

from __future__ import annotations

from math import cos, radians, sin

from regard.look.svg import colours

LEVELS = 64
"""More shades than an eye can tell apart side by side."""

_HUE = radians(250.0)
_DAY = ((0.985, 0.005), (0.36, 0.13))
"""Lightness and chroma of the least and of the most, in OKLCH."""
_NIGHT = ((0.245, 0.02), (0.93, 0.08))


def level(value: float, most: float) -> int:
    """Which shade a value has."""
    return min(LEVELS - 1, max(0, round(value / most * (LEVELS - 1))))


def shades_style() -> str:
    """The style rules of all shades: the classes `s0` to `s63`."""
    steps = [i / (LEVELS - 1) for i in range(LEVELS)]
    return colours(
        {f"s{i}": (f"fill:{_hex(_DAY, t)}", f"fill:{_hex(_NIGHT, t)}") for i, t in enumerate(steps)}
    )


def _hex(ends: tuple[tuple[float, float], tuple[float, float]], share: float) -> str:
    """The colour at a share of the way, as sRGB. In OKLab equal distances look equal (Ottosson, 2020)."""
    lightness, chroma = (least + share * (most - least) for least, most in zip(*ends, strict=True))
    a, b = chroma * cos(_HUE), chroma * sin(_HUE)
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


def _gamma(light: float) -> float:
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
