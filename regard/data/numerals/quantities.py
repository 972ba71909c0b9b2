"""Random pairs of phrases: counts, ordinals, prices, shares, measures, sums, dates and times.

A `Draw` takes the dice and returns a pair. `one_of` draws from a list; `phrase` and `sentence` fill the gaps
of a template in each language.
"""

from collections.abc import Callable, Sequence
from datetime import date
from math import gcd
from random import Random
from typing import TypeVar

from regard.data.numerals.chinese import (
    LIMIT,
    chinese_clock,
    chinese_count,
    chinese_date,
    chinese_decimal,
    chinese_digits,
    chinese_fraction,
    chinese_number,
    chinese_year,
)
from regard.data.numerals.english import (
    english_clock,
    english_date,
    english_decimal,
    english_digits,
    english_fraction,
    english_number,
    english_ordinal,
    english_year,
)
from regard.data.numerals.words import CURRENCIES, WEEKDAYS, Noun, Pair

T = TypeVar("T")


# (cumulative share, bound): small numbers are common, and large ones show the rules of both languages. 1 and
# 2 have rules of their own, "one book" and 两本书, and would otherwise be rare.
SIZES = ((0.10, 2), (0.40, 20), (0.72, 100), (0.93, 1_000), (0.98, 10_000))

# Significant digits of a large number, which people mostly round: "320,000 inhabitants".
ROUNDINGS = (1, 1, 2, 2, 2, 2, 3, 9)


class Dice:
    """The source of randomness: only Python's `random()`, whose sequence is the same in all versions."""

    __slots__ = ("largest", "random")

    def __init__(self, seed: int, largest: int) -> None:
        self.random = Random(seed).random
        self.largest = largest

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """A number from low to high, inclusive."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of several, all equally likely."""
        return choices[int(self.random() * len(choices))]

    def number(self, low: int, high: int) -> int:
        """A number from low to high, rarely a large one, at most `largest`."""
        high = min(high, self.largest)
        u = self.random()
        for share, bound in SIZES:
            if u < share or bound >= high:
                return self.between(low, max(low, min(bound, high)))
        return self.large(SIZES[-1][1], high)

    def large(self, low: int, high: int) -> int:
        """A number from low to high, mostly round, all lengths equally likely, at most `largest`."""
        high = min(high, self.largest)
        low = min(low, high)
        n_digits = self.between(len(str(low)), len(str(high)))
        shortest = 10 ** (n_digits - 1)
        n = self.between(max(low, shortest), min(high, 10 * shortest - 1))
        return max(low, n - n % 10 ** max(0, n_digits - self.pick(ROUNDINGS)))


Draw = Callable[[Dice], Pair]
Gap = Draw | Sequence[Pair]


def one_of(pairs: Sequence[Pair]) -> Draw:
    """One of several pairs, all equally likely."""
    return lambda dice: dice.pick(pairs)


def phrase(chinese: str, english: str, *gaps: Gap) -> Draw:
    """A phrase with gaps {0}, {1} … in both languages; the gaps are drawn in this order."""
    draws = [gap if callable(gap) else one_of(gap) for gap in gaps]
    in_chinese, in_english = chinese.format, english.format

    def draw(dice: Dice) -> Pair:
        filled = [draw_gap(dice) for draw_gap in draws]
        return Pair(in_chinese(*[pair[0] for pair in filled]), in_english(*[pair[1] for pair in filled]))

    return draw


def sentence(chinese: str, english: str, *gaps: Gap) -> Draw:
    """A phrase that begins with a capital letter in English."""
    draw_phrase = phrase(chinese, english, *gaps)

    def draw(dice: Dice) -> Pair:
        pair = draw_phrase(dice)
        return Pair(pair.chinese, pair.english[0].upper() + pair.english[1:])

    return draw


def plain(n: int) -> Pair:
    """A number by itself: 二, two."""
    return Pair(chinese_number(n), english_number(n))


def count(n: int, noun: Noun) -> Pair:
    """A count of a thing: 两本书, two books."""
    name = noun.english if n == 1 else noun.plural
    return Pair(chinese_count(n) + noun.counted, f"{english_number(n)} {name}")


def number(low: int = 0, high: int = LIMIT - 1) -> Draw:
    """A number by itself, mostly a small one."""
    return lambda dice: plain(dice.number(low, high))


def several(nouns: Sequence[Noun], low: int = 1, high: int = 1_000) -> Draw:
    """A count of one of these things, mostly small."""
    return lambda dice: count(dice.number(low, high), dice.pick(nouns))


def large(nouns: Sequence[Noun], low: int, high: int = LIMIT - 1) -> Draw:
    """A large count of one of these things, mostly round."""
    return lambda dice: count(dice.large(low, high), dice.pick(nouns))


def there_are(nouns: Sequence[Noun], high: int = 1_000) -> Draw:
    """有三本书, "there are three books": the verb agrees with the number."""
    return _with_verb(nouns, high, "有{0}", "there {1} {0}")


def they_are(nouns: Sequence[Noun], high: int = 100) -> Draw:
    """三个学生, "three students are": the verb agrees with the number, and Chinese needs none."""
    return _with_verb(nouns, high, "{0}", "{0} {1}")


def _with_verb(nouns: Sequence[Noun], high: int, chinese: str, english: str) -> Draw:
    def draw(dice: Dice) -> Pair:
        n = dice.number(1, high)
        pair = count(n, dice.pick(nouns))
        return Pair(chinese.format(pair.chinese), english.format(pair.english, "is" if n == 1 else "are"))

    return draw


def nth(high: int = 100) -> Draw:
    """第三, "third"."""
    return _ordinal(high, english_ordinal)


def nth_page(high: int = 300) -> Draw:
    """第三, "three", as in 第三页, "page three"."""
    return _ordinal(high, english_number)


def _ordinal(high: int, in_english: Callable[[int], str]) -> Draw:
    def draw(dice: Dice) -> Pair:
        n = dice.number(1, high)
        return Pair(f"第{chinese_number(n)}", in_english(n))

    return draw


def after_nth(nouns: Sequence[Noun]) -> tuple[Pair, ...]:
    """What follows an ordinal or 这: 本书, "book"."""
    return tuple(Pair(noun.counted, noun.english) for noun in nouns)


def all_of(nouns: Sequence[Noun]) -> tuple[Pair, ...]:
    """The whole of a share: 书, "books"."""
    return tuple(Pair(noun.chinese, noun.plural) for noun in nouns)


def price(dice: Dice) -> Pair:
    """An amount of money; one in three is yuan and tenths: 十二块五, "twelve yuan fifty"."""
    if dice.below(3):
        return count(dice.number(1, 10_000), dice.pick(CURRENCIES))
    yuan, tenths = dice.number(1, 100), dice.between(1, 9)
    return Pair(
        f"{chinese_count(yuan)}块{chinese_number(tenths)}",
        f"{english_number(yuan)} yuan {english_number(10 * tenths)}",
    )


def decimal(dice: Dice) -> Pair:
    """三点一四, "three point one four", with one or two digits, the last of them never 0."""
    whole = dice.number(0, 100)
    digits = f"{dice.below(10) if dice.below(2) else ''}{dice.between(1, 9)}"
    return Pair(chinese_decimal(whole, digits), english_decimal(whole, digits))


def per_cent(dice: Dice) -> Pair:
    """百分之十五, "fifteen per cent"; one in four has a decimal: 百分之三点五."""
    n = dice.number(1, 99)
    if dice.below(4):
        return Pair(f"百分之{chinese_number(n)}", f"{english_number(n)} per cent")
    tenths = str(dice.between(1, 9))
    return Pair(f"百分之{chinese_decimal(n, tenths)}", f"{english_decimal(n, tenths)} per cent")


def fraction(dice: Dice) -> Pair:
    """三分之二, "two thirds", in lowest terms."""
    denominator = dice.between(2, 12)
    numerator = dice.between(1, denominator - 1)
    common = gcd(numerator, denominator)
    above, below = numerator // common, denominator // common
    return Pair(chinese_fraction(above, below), english_fraction(above, below))


def temperature(dice: Dice) -> Pair:
    """零下三度, "minus three degrees"."""
    n = dice.between(-30, 40)
    if n == 0:
        return Pair("零度", "zero degrees")
    size = abs(n)
    degrees = Pair(f"{chinese_count(size)}度", f"{english_number(size)} degree{'s' if size > 1 else ''}")
    return degrees if n > 0 else Pair(f"零下{degrees.chinese}", f"minus {degrees.english}")


def digits(length: int) -> Draw:
    """A row of digits that does not begin with 0, as in codes and room numbers: 三零五, "three zero five"."""

    def draw(dice: Dice) -> Pair:
        row = str(dice.between(10 ** (length - 1), 10**length - 1))
        return Pair(chinese_digits(row), english_digits(row))

    return draw


def calculation(dice: Dice) -> Pair:
    """Two numbers and a sign: 三加五, "three plus five"."""
    return _calculation(dice)[0]


def equation(dice: Dice) -> Pair:
    """A calculation and its result, which is right: 三加五等于八, "three plus five equals eight"."""
    pair, result = _calculation(dice)
    return Pair(
        f"{pair.chinese}等于{chinese_number(result)}", f"{pair.english} equals {english_number(result)}"
    )


def _calculation(dice: Dice) -> tuple[Pair, int]:
    kind = dice.below(3)
    high = 20 if kind == 2 else 100
    a, b = dice.number(1, high), dice.number(1, high)
    if kind == 1 and a < b:
        a, b = b, a
    sign, word, result = (("加", "plus", a + b), ("减", "minus", a - b), ("乘以", "times", a * b))[kind]
    pair = Pair(
        f"{chinese_number(a)}{sign}{chinese_number(b)}", f"{english_number(a)} {word} {english_number(b)}"
    )
    return pair, result


FIRST_DAY, LAST_DAY = date(1900, 1, 1).toordinal(), date(2099, 12, 31).toordinal()
NEW_YEAR = date(2024, 1, 1).toordinal()
"""Of a leap year, so that the 29th of February comes up."""

# Only the hours that clearly belong to the part of the day in both languages.
PARTS_OF_DAY = (
    (Pair("上午", "morning"), 7, 11),
    (Pair("下午", "afternoon"), 1, 5),
    (Pair("晚上", "evening"), 6, 9),
)


def clock(dice: Dice) -> Pair:
    """A time without the part of the day: 三点半, "half past three"."""
    return _clock(dice, 1, 12)


def time_of_day(dice: Dice) -> Pair:
    """下午三点半, "half past three in the afternoon"."""
    part, first, last = dice.pick(PARTS_OF_DAY)
    time = _clock(dice, first, last)
    return Pair(part.chinese + time.chinese, f"{time.english} in the {part.english}")


def time_of_week(dice: Dice) -> Pair:
    """星期三下午三点半, "half past three on Wednesday afternoon"."""
    day, (part, first, last) = dice.pick(WEEKDAYS), dice.pick(PARTS_OF_DAY)
    time = _clock(dice, first, last)
    return Pair(
        f"{day.chinese}{part.chinese}{time.chinese}", f"{time.english} on {day.english} {part.english}"
    )


def _clock(dice: Dice, first: int, last: int) -> Pair:
    """A time from one hour to another; of the minutes, four in five are a multiple of five."""
    hour = dice.between(first, last)
    minute = 5 * dice.below(12) if dice.below(5) else dice.below(60)
    return Pair(chinese_clock(hour, minute), english_clock(hour, minute))


def day_of_year(dice: Dice) -> Pair:
    """十一月十五日, "the fifteenth of November"."""
    return _day(date.fromordinal(NEW_YEAR + dice.below(366)))


def named_day(dice: Dice) -> Pair:
    """十一月十五日星期日, "Sunday the fifteenth of November"; there is a year in which it is."""
    day, weekday = day_of_year(dice), dice.pick(WEEKDAYS)
    return Pair(day.chinese + weekday.chinese, f"{weekday.english} {day.english}")


def full_date(dice: Dice) -> Pair:
    """二零二六年十一月十五日, "the fifteenth of November twenty twenty-six"."""
    return _full(date.fromordinal(dice.between(FIRST_DAY, LAST_DAY)))


def date_and_weekday(dice: Dice) -> Pair:
    """A full date is its true weekday: "the fifteenth of November twenty twenty-six is a Sunday"."""
    day = date.fromordinal(dice.between(FIRST_DAY, LAST_DAY))
    full, weekday = _full(day), WEEKDAYS[day.weekday()]
    return Pair(f"{full.chinese}是{weekday.chinese}", f"{full.english} is a {weekday.english}")


def year(first: int, last: int) -> Draw:
    """二零二六年, "twenty twenty-six"."""

    def draw(dice: Dice) -> Pair:
        drawn = dice.between(first, last)
        return Pair(chinese_year(drawn), english_year(drawn))

    return draw


def _day(day: date) -> Pair:
    return Pair(chinese_date(day.month, day.day), english_date(day.month, day.day))


def _full(day: date) -> Pair:
    short = _day(day)
    return Pair(chinese_year(day.year) + short.chinese, f"{short.english} {english_year(day.year)}")
