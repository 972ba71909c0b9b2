"""Numbers, fractions, dates and clock times in Chinese characters.

Where usage allows two forms, one is used throughout, so that a sentence has one translation:

    2       二 alone and in 二十, 二百; 两 before a measure word and in 两千, 两万, 两亿
    10-19   十五 at the head of a number, 一十五 inside one (一百一十五)
    0       零 once for a gap (一千零五, 一万零三百), never at the end of a group of four (二十万三千)
    years   digit by digit (二零二六年); days are 日, Sunday is 星期日
"""

from functools import cache

from regard.errors import ShapeError

DIGITS = "零一二三四五六七八九"

LIMIT = 10**12
"""Larger numbers would need a unit above 亿."""


def chinese_number(n: int) -> str:
    """A whole number by itself: 2 is 二, 1001 is 一千零一, 10203040 is 一千零二十万三千零四十."""
    if not 0 <= n < LIMIT:
        raise ShapeError("n", f"a number from 0 to {LIMIT - 1}", n, code="out_of_range")
    if n < 10_000:
        return _head(_group(n)) if n else "零"
    text, gap = "", False
    for unit, size in (("亿", 10**8), ("万", 10**4), ("", 1)):
        group, n = divmod(n, size)
        if group == 0:
            gap = True
            continue
        if text and (gap or group < 1000):
            text += "零"
        text += ("两" if group == 2 and unit and not text else _group(group)) + unit
        gap = False
    return _head(text)


def chinese_count(n: int) -> str:
    """A number before a measure word or a unit: only the number 2 differs, 两个 but 十二个."""
    return "两" if n == 2 else chinese_number(n)


def chinese_digits(digits: str) -> str:
    """A row of digits, read one by one: 三零五."""
    return "".join(DIGITS[int(digit)] for digit in digits)


def chinese_decimal(whole: int, digits: str) -> str:
    """A decimal number: 三点一四."""
    return f"{chinese_number(whole)}点{chinese_digits(digits)}"


def chinese_fraction(numerator: int, denominator: int) -> str:
    """A fraction, the denominator first: 三分之二."""
    return f"{chinese_number(denominator)}分之{chinese_number(numerator)}"


def chinese_date(month: int, day: int) -> str:
    """A day of the year: 十一月十五日."""
    return f"{chinese_number(month)}月{chinese_number(day)}日"


def chinese_year(year: int) -> str:
    """A year, digit by digit: 二零二六年."""
    return f"{chinese_digits(str(year))}年"


def chinese_clock(hour: int, minute: int) -> str:
    """A time on a twelve-hour clock: 三点, 三点零七分, 三点一刻, 三点半, 差一刻四点.

    Multiples of five after the half hour count down to the next hour, as in English ("a quarter to four"), so
    that both languages read every time in the same way.
    """
    if minute > 30 and minute % 5 == 0:
        left = 60 - minute
        return f"差{'一刻' if left == 15 else chinese_number(left) + '分'}{chinese_count(hour % 12 + 1)}点"
    if minute in _MINUTES:
        return f"{chinese_count(hour)}点{_MINUTES[minute]}"
    return f"{chinese_count(hour)}点{'零' if minute < 10 else ''}{chinese_number(minute)}分"


_MINUTES = {0: "", 15: "一刻", 30: "半"}


@cache
def _group(n: int) -> str:
    """The digits and units of a number from 1 to 9999, before the rules between groups."""
    text, gap = "", False
    for unit, size in (("千", 1000), ("百", 100), ("十", 10), ("", 1)):
        digit, n = divmod(n, size)
        if digit == 0:
            gap = bool(text)
            continue
        text += ("零" if gap else "") + ("两" if digit == 2 and size == 1000 else DIGITS[digit]) + unit
        gap = False
    return text


def _head(text: str) -> str:
    """A number that begins with 一十 drops the 一: 十五, 十万."""
    return text[1:] if text.startswith("一十") else text
