"""Numerals in Chinese: digits with 万 and 亿, Chinese numerals, dates, times, percentages, signs, ordinals.

Single Chinese digits (三个) and idioms (千万, 万一, 十分) are read, but not as certain values.
"""

from __future__ import annotations

import re
from fractions import Fraction

from regard.text.numerals.numeral import JOINED, Date, Numeral, Scanner, Time, in_digits

_DIGIT = {char: i for i, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2, "○": 0}
_UNIT = {"十": 10, "百": 100, "千": 1000}
_BIG = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_WIDE = {ord("０") + i: ord("0") + i for i in range(10)}
_WIDE |= dict(zip(map(ord, "％．：／－，－"), map(ord, "%.:/-\0-"), strict=True))

_WIDE_COMMA = re.compile(r"(?<=\d)，(?=\d{3}(?!\d))")
_HAN = "零〇一二三四五六七八九两兩十百千万萬亿億"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
_METRIC = "克米瓦卡兆帕赫伏焦斯吨公字比"
"""What follows 千 or 百 in a unit: 千克, 千米, 百帕."""
_MORE = "[多余餘来几]"
_SMALL = rf"(?:\d{{1,2}}|[{_HAN}]{{1,3}})"
_SIGN = r"(?P<sign>零下|负的?|負|(?<![\dA-Za-z%)）\]-])[-−](?=\d)(?!\d+-))?"
_DAYTIME = (
    "(?P<daytime>上午|下午|早上|早晨|凌晨|清晨|中午|晚上|傍晚|夜间|夜里|午后|晚间"
    "|[当今昨明]晚|午夜|深夜|晚|早)"
)

_NAME = re.compile(r"(?<![A-Za-z\d])[A-Za-z]+-?(\d+)[A-Za-z\d]*|https?://\S+|\S+@\S+")
_ISO = re.compile(r"(?<!\d)(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?!\d)")
_YEAR = re.compile(r"(?P<year>\d{4}|[〇零○一二三四五六七八九]{4})\s?(?=年(?!代))")
_MONTH_DAY = re.compile(
    rf"(?:(?P<lunar>农历)\s?)?(?P<month>{_SMALL})\s?月\s?(?:份)?(?P<day>{_SMALL})\s?(?:[日号號]|(?(lunar)|(?!)))"
)
_MONTH = re.compile(rf"(?<!个)(?P<month>{_SMALL})\s?月(?!球|亮|光|饼|租|薪|费|票|经|色|刊|子|牙)(?:份)?")
_DAY = re.compile(
    rf"(?<![\d.{_HAN}第])(?P<day>{_SMALL})\s?[日号號](?!子|称|召|码|线|楼|院|机|令|牌|手|角|脉)"
)
_CLOCK = re.compile(
    rf"(?:{_DAYTIME}\s?)?(?<![\d.:])(?P<hour>{_SMALL})\s?(?P<mark>[点點时時:])(?:\s?(?P<half>半)|\s?(?P<quarter>[一三])刻"
    rf"|\s?(?P<minute>\d{{1,2}}|零?[{_HAN}]{{1,3}})(?P<minutes>\s?分(?!之|钟))?(?!\d|[.:]\d))?(?P<sharp>整|钟|鐘)?"
)
_BEFORE = re.compile(
    rf"(?:{_DAYTIME}\s?)?差(?P<minute>[{_HAN}]{{1,3}}|\d{{1,2}}|一刻)分?(?:钟)?(?P<hour>{_SMALL})点"
)
_DECADE = re.compile(
    rf"(?:(?P<century>\d\d|[{_HAN}]+)\s?世纪\s?)?(?P<digits>\d{{2,4}}|(?P<both>[一二三四五六七八九]?)[一二三四五六七八九]十)\s?年代"
)
_CENTURY = re.compile(
    rf"(?P<digits>\d\d|[{_HAN}]+)\s?世纪|双\s?(?P<double>11|12|十一|十二)|第?(?P<plan>十[一二三四])五"
)
_TENTHS = re.compile(
    r"(?P<digits>[一二三四五六七八九两\d])成(?![为功立员长本就都分果熟绩效])(?P<rest>[半一二三四五六七八九])?"
)
_BARE = re.compile(r"(?:[百千万十]?亿|[百千万]?万|(?<!十)[百千](?![分姓货度科克米瓦]))(?![一-九])")
_TWO = re.compile(r"(?P<one>[一二三四五六七八九])(?P<two>[二三四五六七八九])(?P<unit>[十百千万])")
_PERCENT_OF = re.compile(
    rf"{_SIGN}百分(?:之|(?=百))(?P<minus>负)?(?P<digits>{_DIGITS}|[{_HAN}]+(?:点[{_HAN}]+)?)"
)
_FRACTION = re.compile(rf"(?P<bottom>\d+|[{_HAN}]+)分之(?P<top>\d+|[{_HAN}]+)")
_ORDINAL = re.compile(rf"第\s?(?P<digits>\d+(?:,\d{{3}})*(?:\.\d+)?|[{_HAN}]+)")
_HUNDREDS = rf"[百千](?![{_METRIC}])"
_SCALES = rf"(?:\s?{_MORE}?个?\s?(?:{_HUNDREDS}|十)?(?:万亿|[万萬亿億])|\s?{_MORE}?{_HUNDREDS})"
_NUMBER = re.compile(
    rf"{_SIGN}\s?(?P<digits>{_DIGITS})(?P<scales>(?:{_SCALES}(?:零?{_DIGITS}(?={_SCALES}))?)*)(?P<percent>\s?%|\s?个?百分点)?"
)
_SHARED = re.compile(rf"\s?[-–—~至到、]\s?{_DIGITS}\s?(?:[%万亿百千]|年代)")
_NUMERAL = re.compile(
    rf"{_SIGN}(?P<digits>[{_HAN}]+(?:{_MORE}[万亿]+)?(?:点[零〇一二三四五六七八九]+[万亿]*)?)(?P<percent>\s?%|个?百分点)?"
)
_WEEKDAY = re.compile(r"(?:星期|礼拜|周)[一二三四五六日]|[两二三]+周年|(?<=[上下这每同])一[周月年天]")
_IDIOM = re.compile(
    r"十分(?!钟|之|[\d零一二三四五六七八九])|千万(?=别|不|要|记|注意|小心)|万一|亿万|成千上万|千千万万|万万|千家万户|百姓|百货|百度|百科|万物|万岁|万能|万象"
    r"|万里|万达|万科|万事|万历|千古|千禧|千方百计|百年|百合|百万富翁|三明治|三角|四川|五角大楼|四处|四周|四面八方|五花八门|七嘴八舌"
    r"|乱七八糟|一带一路|十字|十足|十全十美|二维码|三国|二战|一战|九龙|八卦|七夕|(?<![点零一二三四五六七八九十])(?:五一|六一)|双十一|三亚|四季|五星|三星|百事|千里|万众|万隆|万豪"
    r"|[数几][十百千万亿]+|十[多几来余]|百[多余]|千余|半"
)


def read_chinese(text: str) -> list[Numeral]:
    """The values of a Chinese text, in order."""
    scan = Scanner(text, _WIDE_COMMA.sub(",", text).translate(_WIDE))
    for pattern, read in _PASSES:
        for match in pattern.finditer(scan.rest):
            try:
                read(scan, match)
            except ValueError:  # 三四 is no number
                continue
    return scan.numerals()


def _name(scan: Scanner, match: re.Match[str]) -> None:
    if match[1]:
        scan.add(match.span(), "number", Fraction(match[1]), sure=False)
    else:
        scan.skip(match.span())


def _skipped(scan: Scanner, match: re.Match[str]) -> None:
    scan.skip(match.span())


def _decade(scan: Scanner, match: re.Match[str]) -> None:
    if match["both"]:  # 七八十年代
        place = match.start("both") + 1
        scan.add((match.start(), place), "decade", Fraction(10 * _DIGIT[match["both"]]), sure=False)
        scan.add((place, match.end()), "decade", _value(match["digits"][1:]), sure=False)
        return
    century = int(_value(match["century"])) if match["century"] else 0
    value = _value(match["digits"]) + (100 * (century - 1) if century else 0)
    scan.add(match.span(), "decade", value)


def _unsure(scan: Scanner, match: re.Match[str]) -> None:
    """A century, a day such as 双11, a plan such as 十一五."""
    digits = next(each for each in match.groups() if each)
    scan.add(match.span(), "number", _value(digits), sure=False)


def _tenths(scan: Scanner, match: re.Match[str]) -> None:
    rest = _DIGIT.get(match["rest"] or "零", 5)  # 半 is five
    scan.add(match.span(), "percent", 10 * _value(match["digits"]) + rest, sure=False)


def _joined(scan: Scanner, match: re.Match[str]) -> None:
    if not _ISO.match(match[0]):
        scan.add_parts(match, ratio="/" in match[0])


def _bare(scan: Scanner, match: re.Match[str]) -> None:
    """百万, 近亿: about one of that unit."""
    value = Fraction(1)
    for char in match[0]:
        value *= _UNIT.get(char) or _BIG.get(char) or 1
    scan.add(match.span(), "number", value, sure=False, scaled=True)


def _two(scan: Scanner, match: re.Match[str]) -> None:
    """七八十: seventy or eighty."""
    unit = _UNIT.get(match["unit"]) or _BIG[match["unit"]]
    scan.add(match.span("one"), "number", Fraction(unit * _DIGIT[match["one"]]), sure=False)
    scan.add((match.start("two"), match.end()), "number", Fraction(unit * _DIGIT[match["two"]]), sure=False)


def _iso_date(scan: Scanner, match: re.Match[str]) -> None:
    scan.add(match.span(1), "number", Fraction(match[1]))
    scan.add((match.start(3), match.end(4)), "date", Date(int(match[3]), int(match[4])))


def _year(scan: Scanner, match: re.Match[str]) -> None:
    scan.add(match.span("year"), "number", _digits(match["year"]))


def _date(scan: Scanner, match: re.Match[str]) -> None:
    parts = {name: int(_value(each)) for name, each in match.groupdict().items() if name in ("month", "day")}
    month, day = parts.get("month"), parts.get("day")
    if 1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31 and (month or day):
        sure = bool(month and day) or match[0][0].isdigit()
        scan.add(match.span(), "date", Date(month, day), sure=sure)


def _percent(scan: Scanner, match: re.Match[str]) -> None:
    value = _value(match["digits"])
    scan.add(
        match.span(),
        "percent",
        -value if match["sign"] or match["minus"] else value,
        sure=match["digits"] != "百",  # 百分之百 is often "entirely"
    )


def _fraction(scan: Scanner, match: re.Match[str]) -> None:
    if bottom := _value(match["bottom"]):
        scan.add(match.span(), "number", _value(match["top"]) / bottom, sure=match["top"] != "一")


def _ordinal(scan: Scanner, match: re.Match[str]) -> None:
    scan.add(match.span(), "ordinal", value := _value(match["digits"]), sure=value > 10)


def _clock(scan: Scanner, match: re.Match[str]) -> None:
    hour, daytime = int(_value(match["hour"])), match["daytime"] or ""
    minute = 30 if match["half"] else 15 * int(_value(match["quarter"] or "零"))
    minute = int(_value(match["minute"])) if match["minute"] else minute
    exact = match["minutes"] or match["half"] or match["quarter"] or match["sharp"] or daytime
    if match["mark"] == ":":
        exact = match["minute"] and len(match["minute"]) == 2
    if match["mark"] in "时時":
        exact = match["minutes"] or daytime
    if exact and hour <= 24 and minute <= 59:
        scan.add(match.span(), "time", _time(hour, minute, daytime))


def _clock_before(scan: Scanner, match: re.Match[str]) -> None:
    """差五分九点: five to nine."""
    minute = 15 if match["minute"] == "一刻" else int(_value(match["minute"]))
    hour = (int(_value(match["hour"])) - 2) % 12 + 1
    if 0 < minute < 60:
        scan.add(match.span(), "time", _time(hour, 60 - minute, match["daytime"] or ""))


def _time(hour: int, minute: int, daytime: str) -> Time:
    if hour > 12 or hour == 0 or not daytime:
        return Time(hour % 24, minute, "pm" if hour > 12 else "am" if hour == 0 else "")
    if daytime == "中午":
        return Time(hour if hour > 9 else hour + 12, minute, "am" if 9 < hour < 12 else "pm")
    if daytime in ("下午", "午后"):
        return Time(hour % 12 + 12, minute, "pm")
    if any(each in daytime for each in "晚傍夜"):  # 晚上12点 is midnight, 深夜2点 is in the morning
        late = 5 <= hour < 12
        return Time(hour + 12 if late else hour % 12, minute, "pm" if late else "am")
    return Time(hour % 12 if hour < 12 or daytime != "上午" else 12, minute, "am")


def _idiom(scan: Scanner, match: re.Match[str]) -> None:
    """Skip words that are no numerals; vague numbers such as 十多 keep their value, but not as certain."""
    word = match[0]
    before = scan.rest[max(0, match.start() - 1) : match.start()]
    after = scan.rest[match.end() : match.end() + 1]
    if word == "半":
        scan.add(match.span(), "number", Fraction(1, 2), sure=False)
    elif word[1:] in tuple("多几来余") and word[0] in _UNIT:
        if before not in _DIGIT and not before.isdigit() and (not after or after not in "万亿"):
            scan.add(match.span(), "number", _value(word[0]), sure=False)
    elif word == "百年":
        if before not in _DIGIT and not before.isdigit():
            scan.add(match.span(), "number", Fraction(100), sure=False)
    elif not (word[0] in _UNIT or word[0] in _BIG) or not (
        before in _DIGIT or before.isdigit() or before in tuple("十百千")
    ):
        scan.skip(match.span())


def _number(scan: Scanner, match: re.Match[str]) -> None:
    """Digits, with 万 and 亿 perhaps: 14亿, 3亿2000万, 10多万."""
    value = in_digits(match["digits"])
    if match["scales"]:
        value = _with_scales(match["digits"] + match["scales"])
    percent = bool(match["percent"])
    hyphen = match["sign"] in ("-", "−") and scan.text[: match.start()].rstrip()[-1:] in tuple("0123456789%")
    # 红旗-16 is a name, while 为-1.28% and 降至-1200 are negative.
    name_before = match["sign"] in ("-", "−") and re.search(
        "[一-龥](?<![为是达至到降升跌增减于约近过从由即])$", scan.text[: match.start()]
    )
    hyphen = hyphen or bool(name_before and not percent and not re.match("°|℃|度", scan.rest[match.end() :]))
    if negative := bool(match["sign"]) and not hyphen:
        value = -value
    following = scan.rest[match.end() : match.end() + 3]
    name = bool(re.match(r"[A-Za-z]", following)) and not re.match(
        r"(?:[kcm]?m|k?g|[KMGT]B|mg|ml|kW|GW|MW|kWh|[kMG]?Hz|h|t)(?![A-Za-z])", following
    )
    plain = not (match["scales"] or percent or negative)
    # 600-700万: the first number shares the unit.
    vague = following.startswith("几") or bool(plain and _SHARED.match(scan.rest[match.end() :]))
    scan.add(
        match.span(),
        "percent" if percent else "number",
        value,
        sure=not name and not vague and not (name_before and hyphen) and not (plain and 0 <= value <= 2),
        scaled=bool(match["scales"]),
    )


def _with_scales(text: str) -> Fraction:
    """The value of digits with units: 3亿2000万, 1万5千."""
    total = Fraction(0)
    for digits, units in re.findall(rf"({_DIGITS})([^\d,.]*)", text):
        value = in_digits(digits)
        for unit in units:
            value *= _UNIT.get(unit) or _BIG.get(unit) or 1
        total += value
    return total


def _numeral(scan: Scanner, match: re.Match[str]) -> None:
    """Chinese numerals; 万 or 百 alone has no value."""
    digits = match["digits"]
    percent, negative = bool(match["percent"]), bool(match["sign"])
    if (
        not any(char in _DIGIT or char == "十" for char in digits)
        or (digits[0] in _BIG)
        or digits[0] in "百千"
    ):
        return
    value = _value(re.sub(_MORE, "", digits))
    following, before = scan.rest[match.end() : match.end() + 1], scan.rest[match.start() - 1 : match.start()]
    listed = following == "、" or before == "、"  # 三、四百: about
    vague = bool(re.search(_MORE, digits)) or following in tuple("几来") or listed
    large = any(char in digits for char in "百千万萬亿億") or len(digits) > 2
    sure = (
        (large and not vague and digits not in ("一百", "一千", "一万", "一亿", "百万", "千万"))
        or percent
        or negative
    )
    scan.add(
        match.span(),
        "percent" if percent else "number",
        -value if negative else value,
        sure=sure,
        scaled=any(char in digits for char in "千万萬亿億"),
    )


def _digits(text: str) -> Fraction:
    if any(char in _UNIT or char in _BIG for char in text):
        raise ValueError(text)
    return Fraction("".join(str(_DIGIT.get(char, char)) for char in text))


def _value(text: str) -> Fraction:
    """The value of digits, or of Chinese numerals: 十二万, 二〇二六, 三点五.

    Raises:
        ValueError: it is no number, such as 三四.
    """
    if text[0].isascii():
        return in_digits(text)
    if "点" in text:
        whole, _, rest = text.partition("点")
        big = 1
        while rest and rest[-1] in _BIG:
            big *= _BIG[rest[-1]]
            rest = rest[:-1]
        return (_value(whole) + _digits(rest) / 10 ** len(rest)) * big
    if len(text) > 1 and all(char in _DIGIT for char in text):
        if len(text) < 3 and "零" not in text and "〇" not in text:
            raise ValueError(text)
        return _digits(text)
    if text.endswith("百万") and re.search("[十百]", text[:-2]) and not re.search("[万亿]", text[:-2]):
        # 三百四十五百万
        return _value(text[:-2]) * 10**6
    total = section = last = Fraction(0)
    unit = Fraction(10)
    for i, char in enumerate(text):
        if char in _DIGIT:
            last = Fraction(_DIGIT[char])
            unit = Fraction(1) if char in "零〇" else unit
            if last and i == len(text) - 1 and i and text[i - 1] in "百千万亿" and char not in "零〇":
                last *= unit / 10  # 两百五 is 250
        elif char in _UNIT:
            section += (last or 1) * _UNIT[char]
            unit, last = Fraction(_UNIT[char]), Fraction(0)
        else:
            big = _BIG[char]
            if big == 10**8 or not total:
                total = (total + section + last) * big
            else:
                total += (section + last) * big
            section, last, unit = Fraction(0), Fraction(0), Fraction(big)
    return total + section + last


_PASSES = (
    (_NAME, _name),
    (JOINED, _joined),
    (_DECADE, _decade),
    (_CENTURY, _unsure),
    (_ISO, _iso_date),
    (_YEAR, _year),
    (_MONTH_DAY, _date),
    (_MONTH, _date),
    (_DAY, _date),
    (_PERCENT_OF, _percent),
    (_FRACTION, _fraction),
    (_BEFORE, _clock_before),
    (_CLOCK, _clock),
    (_WEEKDAY, _skipped),
    (_ORDINAL, _ordinal),
    (_TENTHS, _tenths),
    (_IDIOM, _idiom),
    (_TWO, _two),
    (_NUMBER, _number),
    (_NUMERAL, _numeral),
    (_BARE, _bare),
)
"""What is read first is not read again as something else."""
