"""How many numbers a translation changes, and how many of them are corrected or reported.

    python benchmarks/numerals.py [--model zh-en] [--sentences 1000] [--seed 1] [--show FILE]
    python benchmarks/numerals.py --parallel newstest2018.zh newstest2018.en

The sentences are made from templates, half Chinese, half English, each with one known value. A translation is
right if it has one of the spellings of that value that are listed here; `regard.text.numerals`, which does
the checking, has no part in the judgement.

For parallel files, one in Chinese and one in English: what the model changes in each direction, with and
without the check; and how many of the human translations are reported, which are false alarms unless the
human translation does change a number (`--show` lists them).
"""

from __future__ import annotations

import argparse
import lzma
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import regard  # noqa: E402
from regard.data.numerals.chinese import chinese_number  # noqa: E402
from regard.data.numerals.english import MONTHS, english_number, english_ordinal, english_year  # noqa: E402
from regard.engine.direction import Direction  # noqa: E402
from regard.engine.numbers import CheckedSource  # noqa: E402
from regard.text.files.lines import read_lines  # noqa: E402

SCALES = {
    "zh": ((10**4, "万"), (10**8, "亿"), (10**12, "万亿")),
    "en": ((10**3, "thousand"), (10**6, "million")),
}
SCALES["en"] += ((10**9, "billion"), (10**12, "trillion"))
TEMPLATES = """
amount zh 公司去年的收入是{}元。|这座城市有{}人口。|政府今年投资了{}元。|图书馆藏有{}册图书。
amount zh 一共有{}人参加了活动。|工厂每年生产{}吨钢。
amount en The company earned {} dollars last year.|The city has {} inhabitants.|The library holds {} books.
amount en The government invested {} yuan this year.|About {} people took part.
amount en The factory makes {} tons of steel a year.
percent zh 价格上涨了{}。|{}的学生通过了考试。|失业率是{}。|出口比去年增长了{}。
percent en Prices rose by {}.|{} of the students passed the exam.|Exports grew by {}.
percent en The unemployment rate is {}.
negative zh 气温降到{}度。|昨天夜里是{}度。|北京今天最低气温{}度。|冰箱里的温度是{}度。
negative en The temperature fell to {}.|Last night it was {}.|It is {} in the fridge.
negative en The lowest temperature in Beijing is {} today.
date zh 会议定于{}举行。|他{}出生。|合同到{}为止。|{}商店不开门。
date en The meeting will be held on {}.|He was born on {}.|The contract ends on {}.|The shop is closed on {}.
time zh 会议定于{}开始。|火车{}出发。|航班{}到达。|比赛{}举行。
time en The meeting starts at {}.|The train leaves at {}.|The flight arrives at {}.|The match begins at {}.
year zh 他{}年来到中国。|公司成立于{}年。|这座桥是{}年建成的。
year en He came to China in {}.|The company was founded in {}.|The bridge was built in {}.
count zh 仓库里有{}个箱子。|学校有{}名学生。|这本书有{}页。|从这里到车站有{}米。
count en There are {} boxes in the warehouse.|The school has {} students.|The book has {} pages.
count en It is {} metres to the station.
"""


def templates(kind: str, language: str) -> list[str]:
    """The templates of one kind in one language."""
    lines = (line.split(" ", 2) for line in TEMPLATES.strip().split("\n"))
    return [
        each for one, other, text in lines if (one, other) == (kind, language) for each in text.split("|")
    ]


class Made(NamedTuple):
    """A generated sentence."""

    kind: str
    source: str
    target_language: str
    spellings: tuple[str, ...]
    """Regular expressions, of which a right translation matches one …"""
    more: tuple[str, ...] = ()
    """… and one of these, if there are any."""

    def is_right(self, output: str) -> bool:
        """Whether an output has the value, by the lists in this file."""
        text = re.sub(r"(?<=\d),(?=\d{3})", "", output.lower()).replace("−", "-")
        if self.target_language == "zh":
            text = text.replace(" ", "")
        groups = [self.spellings] + ([self.more] if self.more else [])
        return all(any(re.search(each, text) for each in group) for group in groups)


# --- spellings --------------------------------------------------------------------------------------------


def plain(value: Decimal) -> str:
    """A decimal without an exponent and trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amounts(value: Decimal, language: str) -> Iterator[str]:
    """The spellings of a positive number."""
    yield plain(value)
    whole = int(value)
    if whole == value and whole < 10**12:
        yield chinese_number(whole) if language == "zh" else english_number(whole)
        if language == "zh":
            yield chinese_number(whole).replace("两", "二")
            yield re.sub("百一十$", "百零一十", chinese_number(whole))  # unusual, and no other number
            yield re.sub("二(?=[千百万亿])", "两", chinese_number(whole))
        else:
            yield english_number(whole).replace(" and ", " ")
    if other := {10**6: "million", 10**9: "billion"}.get(whole):
        yield other if language == "en" else "百万" if whole == 10**6 else "十亿"
    for scale, word in (*SCALES[language], *(((10**6, "百万"), (10**3, "千")) if language == "zh" else ())):
        scaled = value / scale
        if scaled < Decimal("0.01") or scaled > 10**6:
            continue
        for digits in {plain(scaled), f"{scaled:.1f}" if scaled * 10 == int(scaled * 10) else plain(scaled)}:
            yield f"{digits}{word}" if language == "zh" else f"{digits}[ -]{word}s?"
        if scaled == int(scaled) and scaled < 10**6:
            number = chinese_number(int(scaled)) if language == "zh" else english_number(int(scaled))
            yield f"{number}{word}" if language == "zh" else f"{number}[ -]{word}s?"
            if language == "zh":
                yield number.replace("二", "两", 1) + word


def bounded(spelling: str, language: str, *, negative: bool = False) -> str:
    """A pattern for a spelling that is not part of another number."""
    if language == "zh":
        before = (
            r"(?:零下|负|-|摄氏零下)"
            if negative
            else r"(?<![\d.零一二三四五六七八九十百千万亿])(?<!零下)(?<!负)(?<!-)"
        )
        return rf"{before}{spelling}(?![\d万亿千百十零一二三四五六七八九]|\.\d|点[一-九\d])"
    before = r"(?:minus |negative |-)" if negative else r"(?<![\d.a-z-])(?<!minus )(?<!negative )"
    after = r"(?!\d|\.\d|[ -](?:hundred|thousand|million|billion|trillion|point)|[a-z])"
    found = f"{before}{spelling}{after}"
    if negative:
        zero = (
            r"(?: degrees?)?(?: (?:celsius|centigrade))? (?:below zero|below freezing|under zero|sub-?zero)"
        )
        return rf"{found}|(?<![\d.]){spelling}{zero}|(?:below|sub-?)[ -]?zero(?: at| of|,)? {spelling}{after}"
    return found


def value_patterns(
    value: Decimal, language: str, *, negative: bool = False, after: str = ""
) -> tuple[str, ...]:
    """Patterns of all spellings of a number."""
    return tuple(
        bounded(each, language, negative=negative) + after for each in dict.fromkeys(amounts(value, language))
    )


def percent_patterns(value: Decimal, language: str) -> tuple[str, ...]:
    """Patterns of all spellings of a percentage."""
    after = r"(?:%|个?百分点)" if language == "zh" else r"(?:%|[ -]per ?cent| percentage)"
    found = [rf"(?<![\d.]){re.escape(each)}{after}" for each in amounts(value, language)]
    if language == "zh":
        found += [rf"百分之{re.escape(each)}(?![\d.点])" for each in amounts(value, language)]
    return tuple(found)


def date_patterns(month: int, day: int, language: str) -> tuple[str, ...]:
    """Patterns of all spellings of a day of the year."""
    if language == "zh":
        months, days = ({f"0?{each}", chinese_number(each)} for each in (month, day))
        return tuple(
            rf"(?<![\d一二十]){m}月{d}[日号]?(?![\d一二三四五六七八九十])" for m in months for d in days
        )
    name, last = MONTHS[month - 1].lower(), rf"0?{day}(?:st|nd|rd|th)?(?!\d)"
    names = rf"(?:{name}|{name[:3]}\.?|sept\.?)" if month == 9 else rf"(?:{name}|{name[:3]}\.?)"
    return (
        rf"{names} (?:the )?{last}",
        rf"(?<!\d){last}(?: of)? {names}",
        rf"{english_ordinal(day)} of {names}",
        rf"{names} (?:the )?{english_ordinal(day)}(?![a-z-])",
        rf"(?<!\d)0?{month}[-/]0?{day}(?!\d)",
    )


def time_patterns(hour: int, minute: int, language: str) -> tuple[str, ...]:
    """Patterns of all spellings of a time of day, on a clock of 24 hours."""
    twelve, late = (hour - 1) % 12 + 1, hour >= 12
    if language == "zh":
        part = "(?:下午|晚上|中午|傍晚|晚|午后)" if late else "(?:上午|早上|早晨|凌晨|清晨|早|清早)"
        hours, minutes = ({str(each), chinese_number(each)} for each in (twelve, minute))
        minutes |= {f"{minute:02}", "零" + chinese_number(minute)} if minute < 10 else set()
        minutes |= {30: {"半"}, 15: {"一刻"}, 45: {"三刻"}}.get(minute, set())
        ends = "(?![\\d一二三四五六七八九十])"
        found = [rf"{part}的?{h}[点时:：]{m}{ends}" for h in hours for m in minutes]
        return (*found, rf"(?<!\d){hour}[:点时：]{minute:02}(?!\d)", rf"{part}{twelve}:{minute:02}{ends}")
    part = (
        r" ?(?:p\.? ?m\.?|in the (?:afternoon|evening)|at night|noon)"
        if late
        else r" ?(?:a\.? ?m\.?|in the morning)"
    )
    ends = rf"(?:(?<!\d){hour}[:.]{minute:02}(?!\d))" if hour > 12 else r"(?!)"
    return (
        rf"(?<!\d)0?{twelve}[:.]{minute:02}{part}",
        rf"(?<!\d)0?{twelve}:{minute}{part}",
        ends,
        rf"(?:noon|midday).*(?<!\d)12:{minute:02}|(?<!\d)12:{minute:02}.*(?:noon|midday)"
        if hour == 12
        else r"(?!)",
        rf"(?:afternoon|evening|night).*(?<!\d){twelve}[:.]{minute:02}"
        if late
        else rf"morning.*(?<!\d){twelve}[:.]{minute:02}",
        rf"(?<!\d){twelve}[:.]{minute:02}.*(?:afternoon|evening)"
        if late
        else rf"(?<!\d){twelve}[:.]{minute:02}.*morning",
    )


# --- sentences --------------------------------------------------------------------------------------------


def made(kind: str, language: str, dice: random.Random) -> Made:
    """A sentence of one kind in one language."""
    other = "en" if language == "zh" else "zh"
    written, *patterns = WRITERS[kind](language, other, dice)
    template = dice.choice(templates(kind, language))
    source = template.format(written)
    return Made(kind, source[0].upper() + source[1:], other, *patterns)


def an_amount(language: str, other: str, dice: random.Random) -> tuple[str, tuple[str, ...]]:
    """An amount with 万, 亿, million, billion; in digits or in words."""
    scale, word = dice.choice(SCALES[language][: (3 if language == "zh" else 4)])
    style = dice.choice(("whole", "decimal", "decimal", "words"))
    if style == "decimal":
        number = Decimal(dice.randint(11, 999)) / 10
    else:
        number = Decimal(
            dice.choice((dice.randint(2, 99), 10 * dice.randint(1, 99), dice.randint(100, 9999)))
        )
        if language == "en":
            number = Decimal(dice.randint(2, 999))
    text = plain(number)
    if style == "words":
        text = chinese_number(int(number)) if language == "zh" else english_number(int(number))
    if scale == 10**3 and style == "whole":
        return f"{int(number * scale):,}", value_patterns(number * scale, other)
    return f"{text}{word}" if language == "zh" else f"{text} {word}", value_patterns(number * scale, other)


def a_percentage(language: str, other: str, dice: random.Random) -> tuple[str, tuple[str, ...]]:
    """A percentage."""
    number = Decimal(dice.choice((dice.randint(2, 99), dice.randint(11, 990) / Decimal(10))))
    ways = (f"{number}%", f"百分之{number}") if language == "zh" else (f"{number}%", f"{number} percent")
    return dice.choice(ways), percent_patterns(number, other)


def below_zero(language: str, other: str, dice: random.Random) -> tuple[str, tuple[str, ...]]:
    """A temperature below zero."""
    number = Decimal(dice.choice((dice.randint(3, 40), dice.randint(11, 400) / Decimal(10))))
    if language == "zh":
        written = f"零下{number}"
    else:
        ways = ("minus {} degrees", "{} degrees below zero", "-{} degrees", "minus {} degrees Celsius")
        written = dice.choice(ways).format(number)
    return written, value_patterns(number, other, negative=True)


def a_date(language: str, other: str, dice: random.Random) -> tuple[str, tuple[str, ...]]:
    """A day of the year."""
    month, day = dice.randint(1, 12), dice.randint(1, 28)
    if language == "zh":
        written = dice.choice(
            (f"{month}月{day}日", f"{month}月{day}号", f"{chinese_number(month)}月{chinese_number(day)}日")
        )
    else:
        ending = "th" if 10 <= day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
        name = MONTHS[month - 1]
        written = dice.choice((f"{name} {day}", f"{name} {day}{ending}", f"{day} {name}"))
    return written, date_patterns(month, day, other)


def a_date_and_time(
    language: str, other: str, dice: random.Random
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A day of the year, and a time of day."""
    date, dates = a_date(language, other, dice)
    hour, minute = dice.randint(7, 20), dice.randint(1, 59)
    twelve = (hour - 1) % 12 + 1
    if language == "zh":
        part = "上午" if hour < 12 else "中午" if hour == 12 else "下午" if hour < 18 else "晚上"
        return f"{date}{part}{twelve}点{minute}分", dates, time_patterns(hour, minute, other)
    written = f"{twelve}:{minute:02} {'am' if hour < 12 else 'pm'} on {date}"
    return written, dates, time_patterns(hour, minute, other)


def a_year(language: str, _other: str, dice: random.Random) -> tuple[str, tuple[str, ...]]:
    """A year."""
    year = str(dice.randint(1900, 2040))
    in_zh = dice.choice((year, "".join("零一二三四五六七八九"[int(digit)] for digit in year)))
    spellings = [year, english_year(int(year)), english_year(int(year)).replace(" and ", " ")] + (
        ["".join(c[int(d)] for d in year) for c in ("零一二三四五六七八九", "〇一二三四五六七八九")]
    )
    return in_zh if language == "zh" else year, tuple(rf"(?<!\d){each}(?!\d)" for each in spellings)


def a_count(language: str, other: str, dice: random.Random) -> tuple[str, tuple[str, ...]]:
    """A number below ten thousand; in digits or in words."""
    number = dice.choice((dice.randint(11, 99), dice.randint(100, 999), dice.randint(1000, 9999)))
    words = chinese_number(number) if language == "zh" else english_number(number)
    ways = [str(number), words] + ([f"{number:,}"] if language == "en" else [])
    return dice.choice(ways), value_patterns(Decimal(number), other)


WRITERS: dict[str, Callable[..., tuple[object, ...]]] = {
    "amount": an_amount,
    "percent": a_percentage,
    "negative": below_zero,
    "date": a_date,
    "time": a_date_and_time,
    "year": a_year,
    "count": a_count,
}


# --- measuring --------------------------------------------------------------------------------------------


def generated(model: str, n: int, seed: int, show: Path | None) -> None:
    """Measure generated sentences."""
    dice = random.Random(seed)
    kinds = list(WRITERS)
    sentences = [made(kinds[i // 2 % len(kinds)], ("zh", "en")[i % 2], dice) for i in range(n)]
    translator = regard.load(model)
    sources = [each.source for each in sentences]
    before = translator.translate(sources, check_numbers=False, whole_lines=True)
    after = translator.translate(sources, whole_lines=True)
    table: dict[str, Counter[str]] = {kind: Counter() for kind in [*kinds, "all"]}
    lines = []
    for sentence, old, new in zip(sentences, before, after, strict=True):
        was, now, reported = sentence.is_right(old.text), sentence.is_right(new.text), bool(new.numbers)
        counted = Counter(n=1, wrong=not was, mended=not was and now and not reported)
        counted += Counter(
            reported=reported and not now, silent=not now and not reported, false=now and reported
        )
        counted += Counter(broken=was and not now)
        for kind in (sentence.kind, "all"):
            table[kind] += counted
        lines.append(
            "\t".join(map(str, (sentence.kind, was, now, reported, sentence.source, old.text, new.text)))
        )
    columns = ("n", "wrong", "mended", "reported", "silent", "false", "broken")
    print(f"{'':14}" + "".join(f"{name:>10}" for name in columns))
    for kind, counts in table.items():
        print(f"{kind:14}" + "".join(f"{counts[name]:10,}" for name in columns))
    total = table["all"]
    print(f"silent {total['silent'] / n:.2%}, false alarms {total['false'] / n:.2%}")
    if show:
        show.write_text("\n".join(lines) + "\n", encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    """The lines of a file."""
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8").read().split("\n")[:-1]
    return [line for block in read_lines(path) for line in block.columns[0]]


def parallel(model: str, chinese: Path, english: Path, show: Path | None) -> None:
    """Measure parallel files, in both directions."""
    translator = regard.load(model)
    texts = {"zh": lines_of(chinese), "en": lines_of(english)}
    found = []
    for source, target in (("zh", "en"), ("en", "zh")):
        sources, references = texts[source], texts[target]
        checked = [CheckedSource(each, Direction(source, target)) for each in sources]
        alarms = [
            (text, reference, changes)
            for text, reference, values in zip(sources, references, checked, strict=True)
            if (changes := values.reported(reference))
        ]
        found += [f"{source}\t{text}\t{other}\t{'; '.join(map(str, each))}" for text, other, each in alarms]
        seconds, outputs = [], []
        for check in (False, True):
            begun = time.process_time()
            outputs.append(translator.translate(sources, to=target, check_numbers=check, whole_lines=True))
            seconds.append(time.process_time() - begun)
        wrong = sum(bool(each.reported(one.text)) for each, one in zip(checked, outputs[0], strict=True))
        left = sum(bool(one.numbers) for one in outputs[1])
        print(f"{source}-{target}: {len(sources):,} lines, {sum(map(bool, checked)):,} with values")
        print(f"  reported human translations   {len(alarms):6,} ({len(alarms) / len(sources):.2%})")
        print(f"  changed by the model          {wrong:6,} ({wrong / len(sources):.2%})")
        print(f"  of these corrected, reported  {wrong - left:6,}, {left:,}")
        print(
            f"  CPU seconds without, with check {seconds[0]:.1f}, {seconds[1]:.1f}",
            f"(x {seconds[1] / seconds[0]:.2f})",
        )
    if show:
        show.write_text("\n".join(found) + "\n", encoding="utf-8")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="zh-en")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parallel", type=Path, nargs=2, metavar=("CHINESE", "ENGLISH"))
    parser.add_argument("--show", type=Path)
    given = parser.parse_args()
    if given.parallel:
        parallel(given.model, *given.parallel, given.show)
    else:
        generated(given.model, given.sentences, given.seed, given.show)


if __name__ == "__main__":
    main()
