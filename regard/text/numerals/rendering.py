"""Values written in a language, as running text has them: 1.4 billion, 14亿, November 28, 下午3点45分."""

from __future__ import annotations

import re
from fractions import Fraction

from regard.text.numerals.english import MONTHS
from regard.text.numerals.numeral import Date, Numeral, Time, decimal

_ENGLISH = ((10**12, " trillion"), (10**9, " billion"), (10**6, " million"))
_CHINESE = ((10**12, "万亿"), (10**8, "亿"), (10**4, "万"))
_DEGREES = re.compile(r"\s?(?:°|℃|℉|度|摄氏|华氏|degree)")


def rendered(numeral: Numeral, language: str, before: str = "", after: str = "") -> str | None:
    """A value as it is written in a language; None if the language has no rules here.

    Args:
        numeral: the value, as the text in the other language has it.
        language: the code of the language: `en`, `zh`.
        before: what comes before it.
        after: what comes after it.
    """
    main = language.split("-")[0].lower()
    if main not in ("en", "zh"):
        return None
    chinese = main == "zh"
    if isinstance(numeral.value, Date):
        return _date(numeral.value, chinese=chinese)
    if isinstance(numeral.value, Time):
        return _time(numeral.value, numeral.text, chinese=chinese)
    return _amount(numeral, before, after, chinese=chinese)


def _date(date: Date, *, chinese: bool) -> str:
    month, day = date
    if chinese:
        return (f"{month}月" if month else "") + (f"{day}日" if day else "")
    if month is None:
        assert day is not None, "a date has a month or a day"
        return _ordinal(day)
    return MONTHS[month - 1] + (f" {day}" if day else "")


def _time(time: Time, text: str, *, chinese: bool) -> str:
    hour, minute, half = time
    counts_to_24 = hour > 12 and str(hour) in text
    if not half or counts_to_24 or hour == 0:
        return f"{hour}:{minute:02}"
    if not chinese:
        return f"{(hour - 1) % 12 + 1}:{minute:02} {half}"
    word = "中午" if hour == 12 else "上午" if half == "am" else "下午" if hour < 18 else "晚上"
    return f"{word}{(hour - 1) % 12 + 1}点" + (f"{minute}分" if minute else "")


def _amount(numeral: Numeral, before: str, after: str, *, chinese: bool) -> str:
    value = numeral.amount
    assert value is not None, "dates and times are written apart"
    size = _chinese(abs(value)) if chinese else _english(abs(value))
    if numeral.kind == "ordinal" and value.denominator == 1:
        return ("" if before.endswith("第") else "第") + size if chinese else _ordinal(int(value))
    if numeral.kind == "decade":
        return f"{size}年代" if chinese else f"{size}s"
    if numeral.kind == "percent":
        return f"{'-' if value < 0 else ''}{decimal(abs(value))}%"
    if value >= 0:
        return size
    if _DEGREES.match(after):
        return f"零下{size}" if chinese else f"minus {size}"
    return f"-{size}"


def _english(value: Fraction) -> str:
    for scale, word in _ENGLISH:
        if value >= scale and _places(value / scale) <= 3:
            return decimal(value / scale) + word
    return f"{int(value):,}" if value.denominator == 1 and value >= 10**4 else decimal(value)


def _chinese(value: Fraction) -> str:
    for scale, unit in _CHINESE:
        if value >= scale and _places(value / scale) <= (2 if scale == 10**4 else 4):
            return decimal(value / scale) + unit
    return decimal(value)


def _places(value: Fraction) -> int:
    """How many decimals a value has."""
    return len(decimal(value).partition(".")[2]) if "/" not in decimal(value) else 99


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
