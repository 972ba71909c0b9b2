"""Dates and clock times, as things that can be drawn."""

from datetime import date

from regard.data.numerals.chinese import chinese_clock, chinese_date, chinese_year
from regard.data.numerals.drawing import Dice, Draw, Pair
from regard.data.numerals.english import english_clock, english_date, english_year
from regard.data.numerals.words import WEEKDAYS

FIRST_DAY, LAST_DAY = date(1900, 1, 1).toordinal(), date(2099, 12, 31).toordinal()
NEW_YEAR = date(2024, 1, 1).toordinal()
"""Of a leap year, so that the 29th of February comes up."""

# In each part of the day only the hours that both languages give to it without doubt.
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
