"""Numbers, fractions, dates and clock times in English words.

British usage throughout: "one hundred and one", "one thousand and one", "half past three",
"the fifteenth of November", "per cent", "kilometres".
"""

from functools import cache

from regard.errors import ShapeError

SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

LIMIT = 10**12
"""Larger numbers would need a word above "billion"."""


def english_number(n: int) -> str:
    """A whole number: 1001 is "one thousand and one", 1100 is "one thousand one hundred"."""
    if not 0 <= n < LIMIT:
        raise ShapeError("n", f"a number from 0 to {LIMIT - 1}", n, code="out_of_range")
    if n < 1000:
        return _group(n) if n else "zero"
    words = []
    for unit, size in ((" billion", 10**9), (" million", 10**6), (" thousand", 1000), ("", 1)):
        group, n = divmod(n, size)
        if group:
            # Only the last group is joined by "and", and only if it has no hundreds, which have their own.
            words.append(("and " if not unit and group < 100 else "") + _group(group) + unit)
    return " ".join(words)


@cache
def english_ordinal(n: int) -> str:
    """An ordinal: "first", "twelfth", "twenty-first", "one hundred and third"."""
    text = english_number(n)
    start = max(text.rfind(" "), text.rfind("-")) + 1
    last = text[start:]
    if last in _IRREGULAR:
        return text[:start] + _IRREGULAR[last]
    return text[:-1] + "ieth" if last.endswith("y") else text + "th"


_IRREGULAR = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def english_digits(digits: str) -> str:
    """A row of digits, read one by one: "three zero five"."""
    return " ".join(SMALL[int(digit)] for digit in digits)


def english_decimal(whole: int, digits: str) -> str:
    """A decimal number: "three point one four"."""
    return f"{english_number(whole)} point {english_digits(digits)}"


def english_fraction(numerator: int, denominator: int) -> str:
    """A fraction: "one half", "two thirds", "three quarters"."""
    one, many = _PARTS.get(denominator) or (english_ordinal(denominator), english_ordinal(denominator) + "s")
    return f"{english_number(numerator)} {one if numerator == 1 else many}"


_PARTS = {2: ("half", "halves"), 4: ("quarter", "quarters")}


def english_date(month: int, day: int) -> str:
    """A day of the year: "the fifteenth of November"."""
    return f"the {english_ordinal(day)} of {MONTHS[month - 1]}"


def english_year(year: int) -> str:
    """A year of four digits: "nineteen eighty-seven", "nineteen oh five", "two thousand and one"."""
    century, rest = divmod(year, 100)
    if century % 10 == 0 and rest < 10:
        return english_number(year)
    if rest == 0:
        return f"{english_number(century)} hundred"
    return f"{english_number(century)} {'oh ' if rest < 10 else ''}{english_number(rest)}"


def english_clock(hour: int, minute: int) -> str:
    """A time on a twelve-hour clock: "three o'clock", "half past three", "five to four", "three oh seven"."""
    if minute == 0:
        return f"{english_number(hour)} o'clock"
    if minute % 5:
        return f"{english_number(hour)} {'oh ' if minute < 10 else ''}{english_number(minute)}"
    if minute > 30:
        return (
            f"{_MINUTES.get(60 - minute) or english_number(60 - minute)} to {english_number(hour % 12 + 1)}"
        )
    return f"{_MINUTES.get(minute) or english_number(minute)} past {english_number(hour)}"


_MINUTES = {15: "a quarter", 30: "half"}


@cache
def _group(n: int) -> str:
    """A number from 1 to 999."""
    hundreds, rest = divmod(n, 100)
    if hundreds:
        return f"{SMALL[hundreds]} hundred" + (f" and {_group(rest)}" if rest else "")
    if n < 20:
        return SMALL[n]
    tens, units = divmod(n, 10)
    return TENS[tens] + (f"-{SMALL[units]}" if units else "")
