"""Which values of a source its translation does not have.

Only certain values of the source count, and only if they are certainly absent: half may be 50%, 3 pm may be
15:00, 28日 may be "on Tuesday". Values that a translation adds are not reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from regard.text.numerals.chinese import read_chinese
from regard.text.numerals.english import read_english
from regard.text.numerals.numeral import Date, Numeral, Time

_DECREASE = re.compile(
    r"(?i)fall|fell|drop|declin|decreas|down|los[st]|below|minus|negative|reduc|deficit|lower|cut"
    r"|[降跌减亏损负缺低少]|零下|下滑|回落"
)
_SIGN_WORDS = re.compile(r"(?i)minus|negative|below|zero|零下|[负負]")
_DEGREES = re.compile(r"\s?(?:°|℃|℉|度|摄氏|华氏|degree)")
_RELATIVE_MONTH = re.compile(r"(?i)month|[本当同上下这]个?月")
_DAYTIME = re.compile(r"(?i)\b[ap]\.?\s?m\b|morning|noon|evening|night|dawn|dusk|[早晚夜午晨]")
_PERCENT = re.compile(r"(?i)[%％]|per\s?cent|百分|成|points?\b")
_RELATIVE_DAY = re.compile(r"(?i)day\b|today|yesterday|tomorrow|tonight|星期|周|[今昨明当]|date")
_DIGITS = re.compile(r"\d+(?:[.,'\s]\d+)*", re.ASCII)
_WHOLE = re.compile(r"[1-9]\d*|[1-9]\d{0,2}(?:[.,]\d{3})+", re.ASCII)
_SMALLEST_SURE = 100
"""Smaller numbers are often written in words, and round ones with a word such as million."""


def read_digits(text: str) -> list[Numeral]:
    """The numbers that a text has in digits; the separators of thousands and decimals are not told apart.

    >>> [each.written for each in read_digits("1.418 Menschen, 12,5 Prozent") if each.sure]
    ['1418']
    """
    found = []
    for match in _DIGITS.finditer(text):
        value = Fraction(re.sub(r"\D", "", match[0]))
        sure = _WHOLE.fullmatch(match[0]) is not None and value >= _SMALLEST_SURE and value % 10 != 0
        found.append(Numeral(match[0], *match.span(), "number", value, sure))
        for part in re.finditer(r"\d+", match[0]) if not match[0].isdigit() else ():
            span = (match.start() + part.start(), match.start() + part.end())
            found.append(Numeral(part[0], *span, "number", Fraction(part[0]), sure=False))
    return found


_READERS: dict[str, Callable[[str], list[Numeral]]] = {"en": read_english, "zh": read_chinese}


@dataclass(frozen=True, slots=True)
class Change:
    """A value of a source that its translation does not have."""

    source: Numeral
    target: Numeral | None
    """What the translation has instead; None if the value is lost."""

    @property
    def same_digits(self) -> bool:
        """Whether only the size is wrong: 14亿 and 14 billion."""
        one, other = self.source.amount, self.target.amount if self.target else None
        return one is not None and other is not None and _significant(one) == _significant(other)


def reads_words(language: str | None) -> bool:
    """Whether numerals of a language are read in words, too, not in digits only."""
    return _main(language) in _READERS


def numerals(text: str, language: str | None) -> list[Numeral]:
    """The values of a text, in order; of a language without a reader, those in digits."""
    return _READERS.get(_main(language), read_digits)(text)


def changes(source: list[Numeral], target: list[Numeral], texts: tuple[str, str]) -> list[Change]:
    """The values of a source that are absent in its translation, with what the translation has instead.

    Args:
        source: the values of the source.
        target: those of the translation.
        texts: source and translation.
    """
    lost = [each for each in source if each.sure and not _present(each, target, *texts)]
    if not lost:
        return []
    spare = added(source, target, texts)
    likeness = {
        (i, j): alike
        for i, one in enumerate(lost)
        for j, other in enumerate(spare)
        if (alike := _likeness(one, other)) > 0
    }
    instead: dict[int, Numeral] = {}
    for i, j in sorted(likeness, key=lambda pair: -likeness[pair]):
        if i not in instead and all(spare[j] is not taken for taken in instead.values()):
            instead[i] = spare[j]
    return [Change(each, instead.get(i)) for i, each in enumerate(lost)]


def added(source: list[Numeral], target: list[Numeral], texts: tuple[str, str]) -> list[Numeral]:
    """The values of a translation that its source does not have."""
    return [
        each
        for each in target
        # "noon" repeats a time; without am or pm, a time is another one if the source has them.
        if not (each.kind == "time" and not each.sure)
        and (not _present(each, source, *reversed(texts)) or _lacks_half(each, source, texts[1]))
    ]


def _lacks_half(time: Numeral, others: list[Numeral], text: str) -> bool:
    if not isinstance(time.value, Time) or time.value.half or _DAYTIME.search(text):
        return False
    return all(other.value.half for other in others if isinstance(other.value, Time))


def _main(language: str | None) -> str:
    return (language or "").split("-")[0].lower()


def _present(one: Numeral, others: list[Numeral], text: str, other_text: str) -> bool:
    """Whether a value may be one of others; `text` contains it, and `other_text` the others."""
    if len(one.text) > 1 and any(map(str.isalpha, one.text)) and one.text in other_text:
        return True  # copied as it is, words and all
    if isinstance(one.value, Date):
        return _date_present(one.value, others, other_text)
    if isinstance(one.value, Time):
        time = one.value
        return any(_same_time(time, each, other_text) for each in others)
    return any(_same(one, each, text, other_text) for each in others)


def _same(one: Numeral, other: Numeral, text: str, other_text: str) -> bool:
    """Whether two values are the same, the first of them a number."""
    value, others = one.amount, other.amount
    assert value is not None, "dates and times are compared apart"
    if others is None:
        return one.kind != "percent" and not one.scaled and value in _parts(other)
    if "decade" in (one.kind, other.kind):
        return value % 100 == others % 100
    percents = [each.kind == "percent" for each in (one, other)]
    if percents == [True, False]:
        return others * 100 == value or (others == value and bool(_PERCENT.search(other_text)))
    if percents == [False, True]:
        return value * 100 == others or (others == value and bool(_PERCENT.search(text)))
    if value == others:
        return True
    if value == -others:
        negative, its_text, rest = (one, text, other_text) if value < 0 else (other, other_text, text)
        exact = _SIGN_WORDS.search(negative.text) or _DEGREES.match(its_text[negative.end :])
        return not exact and one.kind == other.kind and bool(_DECREASE.search(rest))
    short, its_text, long = (one, text, others) if value < others else (other, other_text, value)
    return _short_year(short, its_text, long)


def _short_year(short: Numeral, text: str, long: Fraction) -> bool:
    """Whether a number may be a year in two digits: 17年, '98, 2017-18."""
    written = text[short.end : short.end + 1] == "年" or text[: short.start].endswith(
        ("'", "’", "-", "–", "/")
    )
    return written and 1900 <= long < 2100 and short.amount == long % 100


def _parts(numeral: Numeral) -> set[Fraction]:
    """The numbers of which a date or time is made."""
    if isinstance(numeral.value, Date):
        return {Fraction(part) for part in numeral.value if part is not None}
    if isinstance(numeral.value, Time):
        hour, minute, _ = numeral.value
        return {Fraction(hour), Fraction(minute), Fraction(hour % 12), Fraction(hour % 12 + 12)}
    return set()


def _same_time(time: Time, other: Numeral, other_text: str) -> bool:
    if isinstance(other.value, Time):
        if time.minute != other.value.minute:
            return False
        both = time.half and other.value.half
        hours = time.hour % 24, other.value.hour % 24
        if both:
            return hours[0] == hours[1]
        said = not time.half or bool(_DAYTIME.search(other_text))
        return said and hours[0] % 12 == hours[1] % 12
    return time.minute == 0 and other.amount is not None and other.amount % 12 == time.hour % 12


def _date_present(date: Date, others: list[Numeral], other_text: str) -> bool:
    dates = [each.value for each in others if isinstance(each.value, Date)]
    numbers = {each.amount for each in others if each.amount is not None}
    if date.day is None:
        return any(date.month == each.month for each in dates) or date.month in numbers
    if any(
        date.day == each.day and (None in (date.month, each.month) or date.month == each.month)
        for each in dates
    ):
        return True
    months = {each.month for each in dates if each.month}
    days = {each.amount for each in others if each.kind == "ordinal"} | {
        each.day for each in dates if not each.month
    }
    if date.day in days and (date.month is None or (not months and _RELATIVE_MONTH.search(other_text))):
        return True
    if date.day in numbers | days and (date.month is None or date.month in months | numbers):
        return True
    # "on Tuesday" for the 28th
    return (
        date.month is None and not any(each.day for each in dates) and bool(_RELATIVE_DAY.search(other_text))
    )


def _likeness(one: Numeral, other: Numeral) -> int:
    """How likely one value was written for another: 0 is not at all."""
    if one.amount is not None and other.amount is not None:
        digits = [_significant(each) for each in (one.amount, other.amount)]
        if not (other.sure or other.scaled or digits[0] == digits[1]):
            return 0  # "century", "the second"
        alike = 1 + 4 * (digits[0] == digits[1]) + 2 * (digits[0][0] == digits[1][0])
        return alike + 2 * (one.kind == other.kind) + (one.scaled == other.scaled) + other.sure
    return 10 * (one.kind == other.kind)


def _significant(value: Fraction) -> str:
    """The digits of a value without zeros at either end: 1400 and 0.14 have 14."""
    scaled = abs(value)
    while scaled.denominator != 1 and scaled < 10**15:
        scaled *= 10
    return str(int(scaled)).strip("0") or "0"
