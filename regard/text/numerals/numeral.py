"""A numeral of a text: where it stands, and its value in exact arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

_PART = re.compile(r"\d+(?:\.\d+)?")
_VERSION = re.compile(r"\d+(?:\.\d+){2,}")
JOINED = re.compile(
    r"(?<![\d.,/])\d+(?:/\d+)+(?![\d,/]|\.\d)"  # 24/7, 2/3, 1/19/2021
    r"|\d+(?:[.]\d+){2,}|(?<![\d-])(?!\d{4}-\d\d?-\d\d?(?!\d))\d+(?:-\d+){2,}(?![\d-])"  # 1.2.3, 400-820-8820
    r"|\d+[x×*]\d+[A-Za-z]*|(?<![\d:])\d+:\d\d(?::\d\d(?:\.\d+)?|\.\d+)(?![\d:])"  # 4x200m, 2:13:38
)
"""Digits that are joined by signs: parts of names, versions and durations rather than values."""
Kind = Literal["number", "percent", "ordinal", "decade", "date", "time"]


class Date(NamedTuple):
    """A day of a month, a month, or a day; the year is a numeral of its own."""

    month: int | None
    day: int | None


class Time(NamedTuple):
    """A time of day."""

    hour: int
    minute: int = 0
    half: Literal["am", "pm", ""] = ""
    """The half of the day, if the text says it; then `hour` counts to 24."""


@dataclass(frozen=True, slots=True)
class Numeral:
    """A value in a text."""

    text: str
    start: int
    end: int
    kind: Kind
    value: Fraction | Date | Time
    sure: bool = True
    """Whether it is certainly a value: not a pronoun, an idiom, a part of a name or an approximation."""
    scaled: bool = False
    """Whether it is written with a word such as million or 万."""

    @property
    def amount(self) -> Fraction | None:
        """The value as a number; None for dates and times."""
        return self.value if isinstance(self.value, Fraction) else None

    @property
    def written(self) -> str:
        """The value in a form that does not depend on the language: `1400000000`, `45%`, `11-28`, `15:45`."""
        if isinstance(self.value, Date):
            month, day = self.value
            return "-".join(f"{part:02}" for part in (month, day) if part is not None)
        if isinstance(self.value, Time):
            return f"{self.value.hour:02}:{self.value.minute:02}"
        return decimal(self.value) + {"percent": "%", "decade": "s"}.get(self.kind, "")

    def moved(self, by: int) -> Numeral:
        """The same numeral, some characters later."""
        return replace(self, start=self.start + by, end=self.end + by)


def decimal(value: Fraction) -> str:
    """A value in digits; as a fraction where the decimals do not end.

    >>> decimal(Fraction("12.50")), decimal(Fraction(2, 3))
    ('12.5', '2/3')
    """
    if value.denominator == 1:
        return str(value.numerator)
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
        if places > 12:
            return f"{value.numerator}/{value.denominator}"
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def in_digits(text: str) -> Fraction:
    """The value of digits with separators: `1,400.5`."""
    return Fraction(text.replace(",", ""))


class Scanner:
    """A text in which parts that were read are blanked out, so that nothing is read twice."""

    def __init__(self, text: str, rest: str) -> None:
        """`rest`: the text in the form in which it is read, with characters at the same places."""
        self.text, self.rest = text, rest
        self.found: list[Numeral] = []

    def add(
        self,
        span: tuple[int, int],
        kind: Kind,
        value: Fraction | Date | Time,
        *,
        sure: bool = True,
        scaled: bool = False,
    ) -> None:
        """Keep a numeral, and blank it out."""
        self.found.append(Numeral(self.text[slice(*span)], *span, kind, value, sure, scaled))
        self.skip(span)

    def add_parts(self, match: re.Match[str], *, ratio: bool = False) -> None:
        """Keep the numbers of a match as uncertain values, and their ratio if it may be a fraction."""
        pattern = re.compile(r"\d+") if _VERSION.fullmatch(match[0]) else _PART
        at = match.start()
        places = [(at + part.start(), at + part.end()) for part in pattern.finditer(match[0])]
        values = [Fraction(self.rest[start:end]) for start, end in places]
        if ratio and len(values) == 2 and 0 < values[0] < values[1] <= 20:
            value = values[0] / values[1]
            self.found.append(
                Numeral(self.text[slice(*match.span())], *match.span(), "number", value, sure=False)
            )
        for span, value in zip(places, values, strict=True):
            self.add(span, "number", value, sure=False)
        self.skip(match.span())

    def skip(self, span: tuple[int, int]) -> None:
        """Blank out a part without a value."""
        start, end = span
        self.rest = self.rest[:start] + "\0" * (end - start) + self.rest[end:]

    def numerals(self) -> list[Numeral]:
        """All that was found, in the order of the text."""
        return sorted(self.found, key=lambda each: each.start)
