"""The numbers themselves, as things that can be drawn: counts, ordinals, prices, shares, measures, sums."""

from collections.abc import Sequence
from math import gcd

from regard.data.numerals.chinese import (
    LIMIT,
    chinese_count,
    chinese_decimal,
    chinese_digits,
    chinese_fraction,
    chinese_number,
)
from regard.data.numerals.drawing import Dice, Draw, Pair
from regard.data.numerals.english import (
    english_decimal,
    english_digits,
    english_fraction,
    english_number,
    english_ordinal,
)
from regard.data.numerals.words import CURRENCIES, Noun


def plain(n: int) -> Pair:
    """A number by itself: 二, two."""
    return Pair(chinese_number(n), english_number(n))


def count(n: int, noun: Noun) -> Pair:
    """So many of a thing: 两本书, two books."""
    name = noun.english if n == 1 else noun.plural
    return Pair(chinese_count(n) + noun.counted, f"{english_number(n)} {name}")


def number(low: int = 0, high: int = LIMIT - 1) -> Draw:
    """A number by itself, mostly a small one."""
    return lambda dice: plain(dice.number(low, high))


def several(nouns: Sequence[Noun], low: int = 1, high: int = 1_000) -> Draw:
    """So many of one of these things, mostly few."""
    return lambda dice: count(dice.number(low, high), dice.pick(nouns))


def large(nouns: Sequence[Noun], low: int, high: int = LIMIT - 1) -> Draw:
    """Very many of one of these things, mostly a round number."""
    return lambda dice: count(dice.large(low, high), dice.pick(nouns))


def there_are(nouns: Sequence[Noun], high: int = 1_000) -> Draw:
    """有三本书, "there are three books": the verb follows the number."""

    def draw(dice: Dice) -> Pair:
        n = dice.number(1, high)
        pair = count(n, dice.pick(nouns))
        return Pair(f"有{pair.chinese}", f"there {'is' if n == 1 else 'are'} {pair.english}")

    return draw


def they_are(nouns: Sequence[Noun], high: int = 100) -> Draw:
    """三个学生, "three students are": the verb follows the number, and Chinese needs none."""

    def draw(dice: Dice) -> Pair:
        n = dice.number(1, high)
        pair = count(n, dice.pick(nouns))
        return Pair(pair.chinese, f"{pair.english} {'is' if n == 1 else 'are'}")

    return draw


def nth(high: int = 100) -> Draw:
    """第三, "third"."""

    def draw(dice: Dice) -> Pair:
        n = dice.number(1, high)
        return Pair(f"第{chinese_number(n)}", english_ordinal(n))

    return draw


def nth_page(high: int = 300) -> Draw:
    """第三, "three", as in 第三页, "page three"."""

    def draw(dice: Dice) -> Pair:
        n = dice.number(1, high)
        return Pair(f"第{chinese_number(n)}", english_number(n))

    return draw


def after_nth(nouns: Sequence[Noun]) -> tuple[Pair, ...]:
    """What follows an ordinal or 这: 本书, "book"."""
    return tuple(Pair(noun.counted, noun.english) for noun in nouns)


def all_of(nouns: Sequence[Noun]) -> tuple[Pair, ...]:
    """What a share is taken of: 书, "books"."""
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
