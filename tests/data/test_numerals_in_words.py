"""Numbers, dates and clock times in words: tables checked by hand, and parsers that read numbers back."""

import random
import re

import pytest

from regard.data.numerals.chinese import (
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
from tests.refusals import refused

NUMBERS = [
    (0, "零", "zero"),
    (1, "一", "one"),
    (2, "二", "two"),
    (10, "十", "ten"),
    (11, "十一", "eleven"),
    (12, "十二", "twelve"),
    (13, "十三", "thirteen"),
    (14, "十四", "fourteen"),
    (15, "十五", "fifteen"),
    (16, "十六", "sixteen"),
    (17, "十七", "seventeen"),
    (18, "十八", "eighteen"),
    (19, "十九", "nineteen"),
    (20, "二十", "twenty"),
    (21, "二十一", "twenty-one"),
    (40, "四十", "forty"),
    (88, "八十八", "eighty-eight"),
    (100, "一百", "one hundred"),
    (101, "一百零一", "one hundred and one"),
    (102, "一百零二", "one hundred and two"),
    (110, "一百一十", "one hundred and ten"),
    (111, "一百一十一", "one hundred and eleven"),
    (200, "二百", "two hundred"),
    (222, "二百二十二", "two hundred and twenty-two"),
    (321, "三百二十一", "three hundred and twenty-one"),
    (1000, "一千", "one thousand"),
    (1001, "一千零一", "one thousand and one"),
    (1010, "一千零一十", "one thousand and ten"),
    (1100, "一千一百", "one thousand one hundred"),
    (1101, "一千一百零一", "one thousand one hundred and one"),
    (2000, "两千", "two thousand"),
    (2222, "两千二百二十二", "two thousand two hundred and twenty-two"),
    (9009, "九千零九", "nine thousand and nine"),
    (10000, "一万", "ten thousand"),
    (10001, "一万零一", "ten thousand and one"),
    (10010, "一万零一十", "ten thousand and ten"),
    (10100, "一万零一百", "ten thousand one hundred"),
    (10300, "一万零三百", "ten thousand three hundred"),
    (12000, "一万两千", "twelve thousand"),
    (20000, "两万", "twenty thousand"),
    (22022, "两万两千零二十二", "twenty-two thousand and twenty-two"),
    (100000, "十万", "one hundred thousand"),
    (105000, "十万五千", "one hundred and five thousand"),
    (120002, "十二万零二", "one hundred and twenty thousand and two"),
    (203040, "二十万三千零四十", "two hundred and three thousand and forty"),
    (1000000, "一百万", "one million"),
    (1000005, "一百万零五", "one million and five"),
    (1020000, "一百零二万", "one million twenty thousand"),
    (1100000, "一百一十万", "one million one hundred thousand"),
    (2000000, "二百万", "two million"),
    (
        9999999,
        "九百九十九万九千九百九十九",
        "nine million nine hundred and ninety-nine thousand nine hundred and ninety-nine",
    ),
    (10203040, "一千零二十万三千零四十", "ten million two hundred and three thousand and forty"),
    (20000000, "两千万", "twenty million"),
    (100000000, "一亿", "one hundred million"),
    (100000001, "一亿零一", "one hundred million and one"),
    (100001000, "一亿零一千", "one hundred million one thousand"),
    (100100000, "一亿零一十万", "one hundred million one hundred thousand"),
    (110000000, "一亿一千万", "one hundred and ten million"),
    (200020000, "两亿零二万", "two hundred million twenty thousand"),
    (1000000000, "十亿", "one billion"),
    (1012000000, "十亿一千二百万", "one billion twelve million"),
]

ORDINALS = {
    0: "zeroth",
    1: "first",
    2: "second",
    3: "third",
    4: "fourth",
    5: "fifth",
    8: "eighth",
    9: "ninth",
    10: "tenth",
    11: "eleventh",
    12: "twelfth",
    13: "thirteenth",
    20: "twentieth",
    21: "twenty-first",
    22: "twenty-second",
    40: "fortieth",
    99: "ninety-ninth",
    100: "one hundredth",
    101: "one hundred and first",
    112: "one hundred and twelfth",
    1000: "one thousandth",
    1005: "one thousand and fifth",
    1000000: "one millionth",
}

CLOCK = [
    ((3, 0), "三点", "three o'clock"),
    ((2, 0), "两点", "two o'clock"),
    ((12, 0), "十二点", "twelve o'clock"),
    ((3, 5), "三点零五分", "five past three"),
    ((3, 7), "三点零七分", "three oh seven"),
    ((2, 10), "两点十分", "ten past two"),
    ((3, 12), "三点十二分", "three twelve"),
    ((3, 15), "三点一刻", "a quarter past three"),
    ((3, 25), "三点二十五分", "twenty-five past three"),
    ((3, 30), "三点半", "half past three"),
    ((3, 35), "差二十五分四点", "twenty-five to four"),
    ((1, 40), "差二十分两点", "twenty to two"),
    ((3, 42), "三点四十二分", "three forty-two"),
    ((12, 45), "差一刻一点", "a quarter to one"),
    ((11, 55), "差五分十二点", "five to twelve"),
]

YEARS = {
    1900: ("一九零零年", "nineteen hundred"),
    1905: ("一九零五年", "nineteen oh five"),
    1987: ("一九八七年", "nineteen eighty-seven"),
    2000: ("二零零零年", "two thousand"),
    2001: ("二零零一年", "two thousand and one"),
    2010: ("二零一零年", "twenty ten"),
    2026: ("二零二六年", "twenty twenty-six"),
}

FRACTIONS = {
    (1, 2): ("二分之一", "one half"),
    (2, 3): ("三分之二", "two thirds"),
    (1, 4): ("四分之一", "one quarter"),
    (3, 4): ("四分之三", "three quarters"),
    (1, 5): ("五分之一", "one fifth"),
    (7, 12): ("十二分之七", "seven twelfths"),
}


@pytest.mark.parametrize(("n", "in_chinese", "in_english"), NUMBERS)
def test_numbers(n, in_chinese, in_english):
    assert (chinese_number(n), english_number(n)) == (in_chinese, in_english)


@pytest.mark.parametrize("n", [-1, 10**12])
@pytest.mark.parametrize("say", [chinese_number, english_number])
def test_numbers_out_of_reach_are_refused(say, n):
    with refused("out_of_range", "from 0 to 999999999999"):
        say(n)


def test_two_before_a_measure_word():
    counts = {1: "一", 2: "两", 12: "十二", 22: "二十二", 102: "一百零二", 200: "二百", 2000: "两千"}
    assert {n: chinese_count(n) for n in counts} == counts


def test_ordinals():
    assert {n: english_ordinal(n) for n in ORDINALS} == ORDINALS


@pytest.mark.parametrize(("time", "in_chinese", "in_english"), CLOCK)
def test_clock_times(time, in_chinese, in_english):
    assert (chinese_clock(*time), english_clock(*time)) == (in_chinese, in_english)


def test_every_clock_time_has_a_form_of_its_own():
    times = [(hour, minute) for hour in range(1, 13) for minute in range(60)]
    assert len({chinese_clock(*time) for time in times}) == len(times)
    assert len({english_clock(*time) for time in times}) == len(times)


def test_years_and_dates():
    assert {year: (chinese_year(year), english_year(year)) for year in YEARS} == YEARS
    assert (chinese_date(11, 15), english_date(11, 15)) == ("十一月十五日", "the fifteenth of November")
    assert (chinese_date(2, 2), english_date(2, 2)) == ("二月二日", "the second of February")


def test_fractions_decimals_and_digits():
    assert {part: (chinese_fraction(*part), english_fraction(*part)) for part in FRACTIONS} == FRACTIONS
    assert (chinese_decimal(3, "14"), english_decimal(3, "14")) == ("三点一四", "three point one four")
    assert (chinese_decimal(0, "05"), english_decimal(0, "05")) == ("零点零五", "zero point zero five")
    assert (chinese_digits("305"), english_digits("305")) == ("三零五", "three zero five")


# OutputLine out once more, so that a slip in the package's own lists is found.
SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
VALUES = {word: n for n, word in enumerate([*SMALL.split(), "seventeen", "eighteen", "nineteen"])}
VALUES |= {word: 10 * n for n, word in enumerate(TENS.split(), 2)}

# 零 doubled, at an end, before a unit; 两 where 二 belongs, and the reverse; 一十 at the head; 十 of nothing.
ILL_FORMED = re.compile(
    "零零|零[千百十万亿]|.零$|^零.|两(?![千万亿])|二千|^二[万亿]|^一十|[^一二三四五六七八九]十"
)


def from_chinese(text: str) -> int:
    """The value of a numeral, found the other way: split at the largest unit, and multiply and add."""
    for unit, size in (("亿", 10**8), ("万", 10**4), ("千", 1000), ("百", 100), ("十", 10)):
        if unit in text:
            before, after = text.split(unit, 1)
            return (from_chinese(before) if before.strip("零") else 1) * size + from_chinese(after)
    text = text.strip("零")
    return "一二三四五六七八九".index(text.replace("两", "二")) + 1 if text else 0


def from_english(text: str) -> int:
    """The value of number words: each is added, or multiplies what stands before it."""
    total = group = 0
    for word in text.replace("-", " ").split():
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million", "billion"):
            total += group * 1000 ** (1 + ("thousand", "million", "billion").index(word))
            group = 0
        elif word != "and":
            group += VALUES[word]
    return total + group


def some_numbers() -> list[int]:
    """All the small ones, and some of every length, half of them full of zeros."""
    rng = random.Random(3)
    lengths = [rng.randint(5, 12) for _ in range(4000)]
    full = [rng.randrange(10**length) for length in lengths]
    sparse = [int("".join(rng.choice("0001234567892") for _ in range(length))) for length in lengths]
    return [*range(12_000), *full, *sparse]


def test_numbers_mean_what_they_should():
    for n in some_numbers():
        assert from_chinese(chinese_number(n)) == n, chinese_number(n)
        assert from_english(english_number(n)) == n, english_number(n)


def test_chinese_numbers_are_well_formed():
    assert [text for text in map(chinese_number, some_numbers()) if ILL_FORMED.search(text)] == []


@pytest.mark.parametrize("text", ["一千零零五", "一百零", "二千", "二万", "两十", "两", "一十五", "一百十五"])
def test_ill_formed_numbers_are_found(text):
    assert ILL_FORMED.search(text)
