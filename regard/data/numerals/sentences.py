"""The grammar: all phrases and sentences of the corpus.

A frame has one meaning. Two frames never share a form in either language, nor do two ways of filling one
frame, so every sentence has exactly one translation, and exact match is a fair score.
"""

from regard.data.numerals.quantities import (
    Dice,
    Draw,
    after_nth,
    all_of,
    calculation,
    clock,
    date_and_weekday,
    day_of_year,
    decimal,
    digits,
    equation,
    fraction,
    full_date,
    large,
    named_day,
    nth,
    nth_page,
    number,
    per_cent,
    phrase,
    price,
    sentence,
    several,
    temperature,
    there_are,
    they_are,
    time_of_day,
    time_of_week,
    year,
)
from regard.data.numerals.words import (
    ANIMALS,
    CITIES,
    COLOURS,
    EVENTS,
    FOODS,
    HABITS,
    KILOMETRES,
    LARGE_THINGS,
    METRES,
    NOUNS,
    OWNED,
    OWNERS,
    PAGES,
    PEOPLE,
    PERSONS,
    RISING,
    ROUTES,
    SHOPS,
    SIGHTS,
    SMALL_THINGS,
    THINGS,
    TIMES,
    VEHICLES,
    YEARS_OLD,
    Pair,
    by_subject,
)

STARTS = (Pair("开始", "starts"), Pair("结束", "ends"))
LEAVES = (Pair("出发", "leaves"), Pair("到达", "arrives"))
OPENS = (Pair("开门", "opens"), Pair("关门", "closes"))
ROSE = (Pair("上涨了", "rose"), Pair("下降了", "fell"))
TODAY_IS = (Pair("今天是", "today is"), Pair("明天是", "tomorrow is"), Pair("昨天是", "yesterday was"))

PHRASES: tuple[Draw, ...] = (
    # A bare number shows all the rules, so it is more frequent than the rest.
    *(3 * [number()]),
    several(NOUNS, high=10_000),
    phrase("{0}{1}", "the {0} {1}", nth(), after_nth(NOUNS)),
    several(TIMES, high=100),
    time_of_day,
    clock,
    day_of_year,
    full_date,
    # Not the bare year, which from 2000 to 2009 is also a number.
    phrase("{0}", "the year {0}", year(1900, 2099)),
    price,
    per_cent,
    fraction,
    decimal,
    temperature,
)

COUNTING = (
    sentence("{0}{1}。", "{0} {1}.", by_subject("有", "have", he="has"), several((*THINGS, *ANIMALS))),
    sentence("{0}{1}。", "{0} {1}.", by_subject("只有", "only have", he="only has"), several(THINGS)),
    sentence("{0}{1}。", "{0} {1}.", by_subject("买了", "bought"), several(THINGS)),
    sentence("{0}{1}。", "{0} {1}.", by_subject("想买", "want to buy", he="wants to buy"), several(THINGS)),
    sentence("{0}{1}。", "{0} {1}.", by_subject("需要", "need", he="needs"), several((*THINGS, *PEOPLE))),
    sentence("{0}{1}。", "{0} {1}.", by_subject("看见了", "saw"), several((*ANIMALS, *PEOPLE, *SIGHTS))),
    sentence("请给我{0}。", "Please give me {0}.", several(THINGS)),
    sentence("你有{0}吗？", "Do you have {0}?", several(THINGS)),
    sentence("桌子上{0}。", "{0} on the table.", there_are(SMALL_THINGS)),
    sentence("教室里{0}。", "{0} in the classroom.", there_are((*LARGE_THINGS[:3], *PEOPLE))),
    sentence("公园里{0}。", "{0} in the park.", there_are((*ANIMALS, *PEOPLE))),
    sentence("{0}在等你。", "{0} waiting for you.", they_are(PEOPLE)),
    sentence("这{0}有{1}。", "This {0} has {1}.", after_nth(THINGS[:2]), several(PAGES)),
    sentence("这座城市有{0}。", "This city has {0}.", large(PERSONS, 1_000)),
    sentence("这家工厂生产了{0}。", "This factory made {0}.", large(LARGE_THINGS, 1_000)),
)

ORDINALS = (
    sentence("{0}{1}是{2}。", "The {0} {1} is {2}.", nth(), after_nth(THINGS), OWNED),
    sentence("这是{0}{1}次来{2}。", "This is {0} {1} visit to {2}.", OWNERS, nth(), CITIES),
    sentence("{0}{1}名。", "{0} {1}.", by_subject("得了", "came"), nth()),
    sentence(
        "{0}{1}排。",
        "{0} the {1} row.",
        by_subject("坐在", "am sitting in", he="is sitting in", we="are sitting in"),
        nth(),
    ),
    sentence("请看{0}页。", "Please look at page {0}.", nth_page()),
    sentence("{0}{1}课。", "{0} lesson {1}.", by_subject("学完了", "finished"), nth_page(100)),
)

DATES = (
    sentence("{0}{1}。", "{0} {1}.", TODAY_IS, day_of_year),
    sentence("{0}{1}。", "{0} {1}.", TODAY_IS, named_day),
    sentence("{0}。", "{0}.", date_and_weekday),
    sentence("{0}的生日是{1}。", "{0} birthday is on {1}.", OWNERS, day_of_year),
    sentence("{0}在{1}举行。", "The {0} is on {1}.", EVENTS, day_of_year),
    sentence("{0}{1}出生的。", "{0} born in {1}.", by_subject("是", "was", we="were"), year(1900, 2029)),
    sentence("{0}{1}来到了{2}。", "{0} {2} in {1}.", by_subject("在", "came to"), year(1950, 2029), CITIES),
    sentence(
        "{0}{1}去{2}。",
        "{0} to {2} on {1}.",
        by_subject("", "am going", he="is going", we="are going"),
        day_of_year,
        CITIES,
    ),
)

CLOCKS = (
    sentence("现在是{0}。", "It is {0}.", time_of_day),
    sentence("现在是{0}吗？", "Is it {0}?", clock),
    sentence("{0}在{1}{2}。", "The {0} {2} at {1}.", EVENTS, time_of_day, STARTS),
    sentence("{0}在{1}{2}。", "The {0} {2} at {1}.", EVENTS, time_of_week, STARTS),
    sentence("{0}{1}{2}。", "The {0} {2} at {1}.", VEHICLES, clock, LEAVES),
    sentence("{0}{1}{2}。", "The {0} {2} at {1}.", SHOPS, time_of_day, OPENS),
    *(
        sentence("{0}{1}" + does + "。", "{0} at {1}.", by_subject("", i, he=he), clock)
        for does, i, he in HABITS
    ),
)

PRICES = (
    sentence("这{0}{1}。", "This {0} costs {1}.", after_nth(THINGS), price),
    sentence("{0}一共{1}。", "{0} cost {1} in all.", several(THINGS, low=2, high=100), price),
    sentence("{0}{1}。", "{0} {1}.", by_subject("花了", "spent"), price),
    sentence("房租每个月{0}。", "The rent is {0} a month.", price),
)

SHARES = (
    sentence("{0}的{1}来自{2}。", "{0} of the {1} are from {2}.", per_cent, all_of(PEOPLE), CITIES),
    sentence("{0}{1}{2}。", "The {0} {1} by {2}.", RISING, ROSE, per_cent),
    sentence("{0}的{1}是{2}色的。", "{0} of the {1} are {2}.", fraction, all_of(LARGE_THINGS), COLOURS),
    sentence("{0}{1}的{2}。", "{0} {1} of the {2}.", by_subject("吃了", "ate"), fraction, FOODS),
)

MEASURES = (
    sentence(
        "{0}{1}。", "{0} {1}.", by_subject("", "am", he="is", we="are"), several(YEARS_OLD, low=1, high=100)
    ),
    sentence("{0}有{1}。", "It is {1} {0}.", ROUTES, large(KILOMETRES, 100, 20_000)),
    sentence("这座山高{0}。", "This mountain is {0} high.", large(METRES, 100, 8_848)),
    sentence("这条河长{0}。", "This river is {0} long.", large(KILOMETRES, 10, 6_400)),
    sentence("{0}的气温是{1}。", "The temperature in {0} is {1}.", CITIES, temperature),
    sentence("这{0}重{1}公斤。", "This {0} weighs {1} kilograms.", after_nth(ANIMALS), decimal),
    sentence("{0}{1}。", "{0} {1}.", by_subject("等了", "waited for"), several(TIMES, high=100)),
    sentence("{0}{1}中文。", "{0} {1}.", by_subject("学了", "studied Chinese for"), several(TIMES, high=100)),
    sentence("{0}{1}后开始。", "The {0} starts in {1}.", EVENTS, several(TIMES, high=100)),
    sentence(
        "{0}{1}前来到了{2}。", "{0} {2} {1} ago.", by_subject("", "came to"), several(TIMES, high=100), CITIES
    ),
)

SUMS_AND_DIGITS = (
    sentence("{0}。", "{0}.", equation),
    sentence("{0}等于多少？", "What is {0}?", calculation),
    sentence("{0}的密码是{1}。", "{0} code is {1}.", OWNERS, digits(4)),
    sentence(
        "{0}{1}号房间。",
        "{0} room {1}.",
        by_subject("住在", "am staying in", he="is staying in", we="are staying in"),
        digits(3),
    ),
)

SENTENCES: tuple[Draw, ...] = (
    *COUNTING,
    *ORDINALS,
    *DATES,
    *CLOCKS,
    *PRICES,
    *SHARES,
    *MEASURES,
    *SUMS_AND_DIGITS,
)


def any_pair(dice: Dice) -> Pair:
    """A phrase in one case of four, otherwise a sentence; all frames of a kind are equally likely."""
    return dice.pick(SENTENCES if dice.below(4) else PHRASES)(dice)
