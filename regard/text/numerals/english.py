"""Numerals in English: digits, number words, dates, times, percentages, signs, ordinals.

Small numbers in words (one, two, first), `dozen`, `half` and digits in names (F-16) are read, but not as
certain values.
"""

from __future__ import annotations

import re
from fractions import Fraction

from regard.text.numerals.numeral import JOINED, Date, Numeral, Scanner, Time, in_digits

_MONEY = ("yuan", "dollars", "pounds", "euros", "dollar", "pound")
_CARDINALS = """
zero one two three four five six seven eight nine ten
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety
"""
_ONES, _TENS = _CARDINALS.split()[:20], _CARDINALS.split()[20:]
_SMALL = {word: i for i, word in enumerate(_ONES)} | {word: 10 * i for i, word in enumerate(_TENS, start=2)}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
_UP_TO_TWENTIETH = """
first second third fourth fifth sixth seventh eighth ninth tenth
eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINALS = {word: i for i, word in enumerate(_UP_TO_TWENTIETH.split(), start=1)}
_ORDINALS |= {word[:-1] + "ieth": 10 * i for i, word in enumerate(_TENS, start=2)}
_ORDINALS |= {"hundredth": 100, "thousandth": 1000}
_PARTS = {word: i for word, i in _ORDINALS.items() if i > 2} | {"half": 2, "halve": 2, "quarter": 4}
_TIMES = {"once": 1, "twice": 2, "double": 2, "doubled": 2, "doubling": 2, "triple": 3, "tripled": 3}
_TIMES |= {"twofold": 2, "threefold": 3, "fourfold": 4, "fivefold": 5, "tenfold": 10, "quadrupled": 4}
_TIMES |= {"couple": 2, "pair": 2, "both": 2, "dozen": 12, "single": 1, "zero": 0, "nil": 0, "none": 0}
_TIMES |= {
    "decade": 10,
    "decades": 10,
    "century": 100,
    "centuries": 100,
    "fortnight": 14,
    "twin": 2,
    "twins": 2,
}
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTHS = {name[:n].lower(): i for i, name in enumerate(MONTHS, start=1) for n in (3, len(name))}
_MONTHS |= {"sept": 9}

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\dA-Za-z])\.\d+)"
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})(?![a-z])\.?"
_HALF = r"(?:\s?(?P<half>[ap])\.?\s?m\b\.?)"
_DAYTIME = r"(?:\s+(?:in the|at|on \w+day)\s+(?P<daytime>morning|afternoon|evening|night))"
_WORD = "|".join([*_SMALL, *_SCALES])
_PLURAL = "|".join(f"{scale}s" for scale in _SCALES)
_BOUND = r"(?<![A-Za-z\d\0])"
_SIGN = r"(?P<sign>(?:minus|negative)[\s-]+|[-−](?=[$€£¥]?\d))?"
_PERCENT = r"(?P<percent>\s?%|[\s-]+per\s?cent(?:age)?\b|\s+pct\b|\s+percentage\b)"
_BELOW = (
    r"(?P<below>(?:\s+degrees?|\s?°)?(?:\s?[CF]\b|\s+(?:Celsius|Fahrenheit|centigrade))?"
    r"\s+(?:below\s+zero|below\s+freezing|sub-?zero))"
)


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_NAME = re.compile(
    r"(?<![A-Za-z\d])(?:[A-Za-z]+|[A-Z][A-Za-z]*-)(\d+)[A-Za-z\d]*|(?<![A-Za-z\d])(\d+)[A-Z](?![A-Za-z])"
    r"|https?://\S+|\S+@\S+"
)
_CURRENCY = re.compile(
    r"(?<![A-Za-z])(?:USD|RMB|CNY|EUR|HKD|GBP|JPY|KRW|RUB|AUD|NZD|SGD|CHF|CAD|INR|THB|TWD|MYR|ZAR|AED|SAR|HUF|PLN|DKK|SEK|NOK|TRY|MXN|BRL|IDR|PHP|VND|ILS|NT|HK|US|A|Rs\.?)[$¥]?\s?(?=\d)"
)
_ISO = _pattern(r"(?<!\d)(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?!\d)")
_MONTH_DAY = _pattern(
    rf"{_BOUND}{_MONTH}\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:%]|\s?[ap]\.?m\b)(?:,\s\d{{1,2}}(?=\.?$))?"
)
_DAY_MONTH = _pattern(rf"{_BOUND}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?[\s-]+{_MONTH}")
_MONTH_ONLY = re.compile(
    rf"{_BOUND}(?P<month>{'|'.join(MONTHS)}|Jan|Feb|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?![A-Za-z])"
)
_CLOCK = _pattern(
    rf"(?<![\d.:])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d{{2}})(?::\d\d)?(?![\d.:]\d|\d)|:(?P<minute1>\d)(?!\d))(?:{_HALF}|{_DAYTIME})"
)
_CLOCK_24 = _pattern(rf"(?<![\d.:])(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::\d\d)?(?!:?\d){_DAYTIME}?")
_HOUR = _pattern(rf"(?<![\d.:,$])(?P<hour>\d{{1,2}}){_HALF}")
_OCLOCK = _pattern(rf"{_BOUND}(?P<hour>\d{{1,2}}|{'|'.join(_ONES[1:13])})\s+o['’]\s?clock{_DAYTIME}?")
_NOON = _pattern(r"\b(?P<word>noon|midday|midnight)\b")
_DECADE = re.compile(r"(?<![\dA-Za-z])(?:['’](?P<short>\d0)|(?P<year>\d{1,3}0))['’]?s\b")
_ORDINAL = _pattern(rf"{_BOUND}(?P<digits>\d{{1,3}}(?:,\d{{3}})+|\d+)(?:st|nd|rd|th)\b")
_FRACTION = _pattern(
    rf"{_BOUND}(?P<top>an?|{'|'.join(_ONES[1:])}|\d)[\s-](?P<part>half|(?:halve|{'|'.join(_PARTS)})s|(?<=[an1e][\s-])(?:third|quarter|fifth|tenth))\b"
)
_YEAR_WORDS = _pattern(
    rf"{_BOUND}(?P<century>{'|'.join(_ONES[13:])}|twenty)[\s-]+(?:(?P<oh>oh|o)[\s-]+(?P<small>{'|'.join(_ONES[1:10])})"
    rf"|(?P<tens>{'|'.join(_TENS)})(?:-(?P<ones>{'|'.join(_ONES[1:10])}))?|(?P<teens>{'|'.join(_ONES[10:])}))\b(?!\s+(?:{'|'.join(_SCALES)}))"
)
_MINUTES = rf"half|(?:a\s+)?quarter|(?:twenty-)?(?:{'|'.join(_ONES[1:])})|twenty|\d{{1,2}}"
_PAST = _pattern(
    rf"{_BOUND}(?P<minute>{_MINUTES})(?:\s+minutes?)?\s+(?P<way>past|to)\s+(?P<hour>{'|'.join(_ONES[1:13])}|\d{{1,2}})\b{_DAYTIME}?"
)
_CLOCK_WORDS = _pattern(
    rf"{_BOUND}(?P<hour>{'|'.join(_ONES[1:13])})\s+(?:oh\s+(?P<small>{'|'.join(_ONES[1:10])})"
    rf"|(?P<tens>{'|'.join(_TENS[:4])})(?:-(?P<ones>{'|'.join(_ONES[1:10])}))?|(?P<teens>{'|'.join(_ONES[10:])}))\b{_DAYTIME}?"
)
_ROW = _pattern(rf"{_BOUND}(?:{'|'.join(_ONES[:10])})(?:[\s-](?:{'|'.join(_ONES[:10])})){{2,}}\b")
_AND_HALF = _pattern(rf"{_BOUND}(?P<whole>{'|'.join(_ONES[1:13])}|\d+)(?P<unit>\s+\w+)?\s+and\s+a\s+half\b")
_HALF_SCALE = _pattern(
    rf"{_BOUND}(?:an?\s+)?half[\s-](?:an?\s+)?(?P<scale>hundred|thousand|million|billion|trillion)\b"
)
_DECADES = _pattern(
    rf"{_BOUND}(?P<n>{'|'.join(_ONES[1:13])}|\d+)\s+(?P<unit>decade|dozen|century|centurie)s?\b"
)
_ONE_IN = _pattern(
    rf"{_BOUND}(?P<top>{'|'.join(_ONES[1:10])}|\d+)\s+(?:in|out\s+of)(?:\s+every)?\s+(?P<bottom>{'|'.join(_ONES[2:11])}|\d+)\b(?!\s+(?:hundred|thousand|million|billion))"
)
_NUMBER = _pattern(
    rf"{_BOUND}{_SIGN}[$€£¥]?(?P<digits>{_DIGITS})(?:\+?[\s-]?(?P<scale>hundred|thousand|million|billion|trillion)s?\b(?P<scales>(?:\s+(?:million|billion|trillion)s?\b)*)"
    rf"|\s?(?P<short>bn|tn|mn)\b|(?P<letter>[kmb])\b)?(?:{_PERCENT}|{_BELOW})?"
)
_SHARED = _pattern(
    rf"(?:\s?[-–—~]\s?|\s+(?:to|or|and|through)\s+)[$€£¥]?{_DIGITS}[\s-]?(?:hundred|thousand|million|billion|trillion|bn|%|per\s?cent)"
)
_WORDS = _pattern(
    rf"{_BOUND}(?P<sign>(?:minus|negative)\s+)?(?P<words>(?:an?\s+(?=hundred|thousand|million|billion|trillion))?(?:{_WORD})\b"
    rf"(?:(?:[\s-]+|,\s+|\s+and\s+)(?:{_WORD}|{_PLURAL})\b)*(?:\s+point(?:\s+(?:{'|'.join(_ONES[:10])})\b)+)?)(?:{_PERCENT}|{_BELOW})?"
)
_AFTER_NUMBER = _pattern(rf"(?:{_WORD}|\d)\s*$")
_ORDINAL_WORD = _pattern(
    rf"{_BOUND}(?P<words>(?:(?:{_WORD})(?:\s+and\s+|[\s-]+))*)(?P<word>{'|'.join(_ORDINALS)})\b"
)
_OTHER = _pattern(rf"{_BOUND}(?P<word>{'|'.join(_TIMES)}|half|halves|halved|quarter)\b")


def read_english(text: str) -> list[Numeral]:
    """The values of an English text, in order."""
    scan = Scanner(text, _CURRENCY.sub(lambda match: " " * len(match[0]), text))
    _names(scan)
    _dates(scan)
    _times(scan)
    for match in _DECADE.finditer(scan.rest):
        value = Fraction(match["short"] or match["year"])
        scan.add(match.span(), "decade", value, sure=value % 100 > 0)
    for match in _ORDINAL.finditer(scan.rest):
        scan.add(match.span(), "ordinal", value := in_digits(match["digits"]), sure=value > 2)
    for match in _AND_HALF.finditer(scan.rest):
        scan.add(match.span(), "number", _count(match["whole"]) + Fraction(1, 2), sure=False)
    for match in _HALF_SCALE.finditer(scan.rest):
        scan.add(
            match.span(), "number", Fraction(_SCALES[match["scale"].lower()], 2), sure=False, scaled=True
        )
    for match in _DECADES.finditer(scan.rest):
        unit = {"de": 10, "do": 12, "ce": 100}[match["unit"][:2].lower()]
        scan.add(match.span(), "number", Fraction(unit * _count(match["n"])), sure=False)
    for match in _ONE_IN.finditer(scan.rest):
        top, bottom = (_count(match[name]) for name in ("top", "bottom"))
        if 0 < top < bottom <= 20:
            scan.add(match.span("top"), "number", Fraction(top), sure=False)
            scan.add(match.span("bottom"), "number", Fraction(bottom), sure=False)
            scan.add(match.span(), "number", Fraction(top, bottom), sure=False)
    for match in _FRACTION.finditer(scan.rest):
        article, part = match["top"].lower() in ("a", "an"), match["part"].lower()
        if bottom := _PARTS[part.removesuffix("s")]:
            value = Fraction(1 if article else _count(match["top"]), bottom)
            scan.add(match.span(), "number", value, sure=value.numerator > 1 and bottom != 4)
    for match in _NUMBER.finditer(scan.rest):
        _number(scan, match)
    for match in _ORDINAL_WORD.finditer(scan.rest):
        last = _ORDINALS[match["word"].lower()]
        words = [(word[0].lower(), word.span()) for word in re.finditer(r"[A-Za-z]+", match["words"])]
        before = _one_number(words)[2] if words else Fraction(last in (100, 1000))
        scan.add(match.span(), "ordinal", before * last if last in (100, 1000) else before + last, sure=False)
    for match in _WORDS.finditer(scan.rest):
        _words(scan, match)
    for match in _OTHER.finditer(scan.rest):
        word = match["word"].lower()
        value = Fraction(1, 4) if word == "quarter" else Fraction(_TIMES.get(word, Fraction(1, 2)))
        scan.add(match.span(), "number", value, sure=False)
    return scan.numerals()


def _count(word: str) -> int:
    """A small number in words or digits."""
    small = _SMALL.get(word.lower())
    return int(word) if small is None else small


def _names(scan: Scanner) -> None:
    for match in _NAME.finditer(scan.rest):
        if digits := match[1] or match[2]:
            scan.add(match.span(), "number", Fraction(digits), sure=False)
        else:
            scan.skip(match.span())
    for match in JOINED.finditer(scan.rest):
        if not _ISO.match(match[0]):
            scan.add_parts(match, ratio="/" in match[0])


def _dates(scan: Scanner) -> None:
    for match in _ISO.finditer(scan.rest):
        scan.add(match.span(1), "number", Fraction(match[1]))
        scan.add((match.start(3), match.end(4)), "date", Date(int(match[3]), int(match[4])))
    for pattern in (_MONTH_DAY, _DAY_MONTH):
        for match in pattern.finditer(scan.rest):
            if 1 <= int(match["day"]) <= 31 and match["month"] not in ("may", "mar", "sun"):
                date = Date(_MONTHS[match["month"].lower()], int(match["day"]))
                scan.add(match.span(), "date", date)
    for match in _MONTH_ONLY.finditer(scan.rest):
        sure = match["month"] not in ("May", "March", "August") and len(match["month"]) > 3
        scan.add(match.span(), "date", Date(_MONTHS[match["month"].lower()], None), sure=sure)


def _times(scan: Scanner) -> None:
    for match in _NOON.finditer(scan.rest):
        time = Time(0, 0, "am") if match["word"].lower() == "midnight" else Time(12, 0, "pm")
        scan.add(match.span(), "time", time, sure=False)
    _times_in_words(scan)
    for pattern in (_CLOCK, _CLOCK_24, _HOUR, _OCLOCK):
        for match in pattern.finditer(scan.rest):
            parts = match.groupdict()
            hour = _count(parts["hour"])
            minute = int(parts.get("minute") or parts.get("minute1") or 0)
            if hour > 24 or minute > 59:
                continue
            half = (parts.get("half") or "").lower() or _half(parts.get("daytime"))
            scan.add(match.span(), "time", _time(hour, minute, half))


def _times_in_words(scan: Scanner) -> None:
    """Half past three, ten to four, seven fifty-eight; and years: nineteen fifty-six."""
    for match in _PAST.finditer(scan.rest):
        word = match["minute"].lower()
        minute = 30 if word == "half" else 15 if word.endswith("quarter") else _in_words(word)
        hour, past = _count(match["hour"]), match["way"].lower() == "past"
        spelt = (
            word[-1].isalpha() and match["hour"].isalpha() and minute % 5 == 0 and minute < 30
        )  # 10 to 12 is a range
        if not (1 <= hour <= 12 and minute < 60) or not (past or spelt or word == "twenty-five"):
            continue
        hour, minute = (hour, minute) if past else ((hour - 2) % 12 + 1, 60 - minute)
        scan.add(match.span(), "time", _time(hour, minute, _half(match["daytime"])), sure=past)
    for match in _YEAR_WORDS.finditer(scan.rest):
        rest = sum(_SMALL[each.lower()] for each in match.group("small", "tens", "ones", "teens") if each)
        scan.add(match.span(), "number", Fraction(100 * _SMALL[match["century"].lower()] + rest), sure=False)
    for match in _CLOCK_WORDS.finditer(scan.rest):
        minute = sum(_SMALL[each.lower()] for each in match.group("small", "tens", "ones", "teens") if each)
        time = _time(_SMALL[match["hour"].lower()], minute, _half(match["daytime"]))
        scan.add(match.span(), "time", time, sure=bool(match["daytime"]))
    for match in _ROW.finditer(scan.rest):
        digits = "".join(str(_SMALL[each.lower()]) for each in re.findall("[A-Za-z]+", match[0]))
        scan.add(match.span(), "number", Fraction(digits), sure=False)


def _in_words(text: str) -> int:
    return sum(_count(each) for each in text.split("-"))


def _half(daytime: str | None) -> str:
    return "" if not daytime else "a" if daytime.lower() == "morning" else "p"


def _time(hour: int, minute: int, half: str) -> Time:
    if hour > 12 or hour == 0:
        return Time(hour % 24, minute, "pm" if hour > 12 else "am")
    if not half:
        return Time(hour, minute)
    return Time(hour % 12 + (12 if half == "p" else 0), minute, "pm" if half == "p" else "am")


def _number(scan: Scanner, match: re.Match[str]) -> None:
    value = in_digits(match["digits"])
    scale = _SCALES.get((match["scale"] or "").lower()) or _SHORT.get((match["short"] or "").lower())
    sure = True
    if scale is None and match["letter"]:  # 5m may be metres, 5k a race
        scale = _SHORT[match["letter"].lower()]
        sure = match[0].lstrip("-−")[0] in "$€£¥"
        if not sure and match["letter"] == "m":
            scale = 1
    for word in (match["scales"] or "").lower().split():  # models write "7 million billion"
        scale = (scale or 1) * _SCALES[word.removesuffix("s")]
    value *= scale or 1
    # After a digit, a hyphen makes a range, and minus a difference.
    hyphen = scan.text[: match.start()].rstrip()[-1:] in tuple("0123456789%")
    negative = bool(match["below"] or (match["sign"] and not hyphen))
    if negative:
        value = -value
    plain = scale is None and not match["percent"] and not negative
    following = scan.rest[match.end() :]
    # 6 to 7 million: the first number shares the word.
    sure = sure and not (plain and _SHARED.match(following))
    scan.add(
        match.span(),
        "percent" if match["percent"] else "number",
        value,
        sure=sure and not (plain and 0 <= value <= 2),
        scaled=scale is not None,
    )


def _words(scan: Scanner, match: re.Match[str]) -> None:
    """Number words; a list such as `two, three` has several values."""
    words = [(word[0].lower(), word.span()) for word in re.finditer(r"[A-Za-z]+", match["words"])]
    groups: list[tuple[int, int, Fraction, int]] = []
    while words:
        groups.append(_one_number(words))
    offset = match.start("words")
    for i, (start, end, value, n_words) in enumerate(groups):
        first, last = i == 0, i == len(groups) - 1
        span = (match.start() if first else offset + start, match.end() if last else offset + end)
        difference = _AFTER_NUMBER.search(scan.text[: match.start()])
        negative = (first and match["sign"] and not difference) or (last and match["below"])
        percent = bool(last and match["percent"])
        bare = match["words"][start:end].lower().startswith((*_SCALES, "a"))  # a hundred, a few million
        bare = bare or scan.text[: span[0]].rstrip().endswith(_MONEY)  # sixty-five yuan sixty
        sure = value > 10 and not bare and not (n_words == 2 and value in _SCALES.values())
        scan.add(
            span,
            "percent" if percent else "number",
            -value if negative else value,
            sure=sure or percent or bool(negative),
            scaled=value >= 1000,
        )


def _one_number(words: list[tuple[str, tuple[int, int]]]) -> tuple[int, int, Fraction, int]:
    """Take the words of one number from the front: where it is, its value, and the number of words."""
    start = words[0][1][0]
    end, total, current, used, lowest = start, 0, 0, 0, 10**15
    room = 10**15  # a following small number must be less than this
    point = ""
    while words:
        word, (_, word_end) = words[0]
        scale = _SCALES.get(word.rstrip("s"))
        if word in ("a", "an") and used == 0:
            current, room = 1, 1
        elif word == "and":
            following = words[1][0] if len(words) > 1 else ""
            if room not in (100, 1000) or _SMALL.get(following, 10**9) >= 100:
                words.pop(0)
                break
        elif word == "point":
            point = "."
        elif point:
            point += str(_SMALL[word])
        elif scale == 100:
            if used and not (0 < current % 1000 < 100):
                break
            current, room = (current or 1) * 100, 100
        elif scale:
            if used and (current == 0 or scale > lowest):
                break
            # Models write "two thousand eighty thousand".
            total = (total + current) * scale if scale == lowest else total + (current or 1) * scale
            current, room, lowest = 0, 1000, scale
        elif _SMALL[word] < room:
            current, small = current + _SMALL[word], _SMALL[word]
            room = 10 if small >= 20 else 1
        else:
            break
        words.pop(0)
        end, used = word_end, used + 1
    return start, end, total + current + Fraction(f"0{point}" if len(point) > 1 else 0), used
