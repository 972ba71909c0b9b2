"""Numerals in digits, in any language."""

from __future__ import annotations

import re
from fractions import Fraction

from regard.text.numerals.numeral import Numeral

_NUMBER = re.compile(r"\d+(?:[.,'\s]\d+)*", re.ASCII)
_PLAIN = re.compile(r"[1-9]\d*|[1-9]\d{0,2}(?:[.,]\d{3})+", re.ASCII)
_SMALLEST_SURE = 100
"""Smaller numbers are often written in words, and round ones with a word such as million."""


def read_digits(text: str) -> list[Numeral]:
    """The numbers that a text has in digits; the separators of thousands and decimals are not told apart.

    >>> [each.written for each in read_digits("1.418 Menschen, 12,5 Prozent") if each.sure]
    ['1418']
    """
    found = []
    for match in _NUMBER.finditer(text):
        value = Fraction(re.sub(r"\D", "", match[0]))
        sure = _PLAIN.fullmatch(match[0]) is not None and value >= _SMALLEST_SURE and value % 10 != 0
        found.append(Numeral(match[0], *match.span(), "number", value, sure))
        for part in re.finditer(r"\d+", match[0]) if not match[0].isdigit() else ():
            span = (match.start() + part.start(), match.start() + part.end())
            found.append(Numeral(part[0], *span, "number", Fraction(part[0]), sure=False))
    return found
