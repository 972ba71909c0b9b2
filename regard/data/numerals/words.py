"""The words of the corpus: nouns, places, owners. Every word has one translation in either direction."""

from typing import NamedTuple


class Pair(NamedTuple):
    """A text in two languages."""

    chinese: str
    english: str


class Noun(NamedTuple):
    """A countable noun."""

    chinese: str
    """By itself: 书."""
    counted: str
    """After a number, with its measure word: 本书."""
    english: str
    plural: str


def _nouns(table: str) -> tuple[Noun, ...]:
    """Entries of measure word, Chinese, English and, if irregular, the English plural.

    The measure word is - for nouns without one: 三天, not 三个天.
    """
    rows = [entry.split() for entry in _entries(table)]
    return tuple(
        Noun(chinese, measure.strip("-") + chinese, english, *(plural or [english + "s"]))
        for measure, chinese, english, *plural in rows
    )


def _pairs(table: str) -> tuple[Pair, ...]:
    """Entries of Chinese and English, separated by a space."""
    return tuple(Pair(*entry.split(" ", 1)) for entry in _entries(table))


def _entries(table: str) -> list[str]:
    return [entry.strip() for line in table.strip().splitlines() for entry in line.split("|")]


SMALL_THINGS = _nouns("""
    本 书 book | 本 词典 dictionary dictionaries | 张 票 ticket | 张 照片 photo | 把 刀 knife knives
    把 雨伞 umbrella | 支 铅笔 pencil | 朵 花 flower | 个 苹果 apple | 个 鸡蛋 egg | 个 杯子 cup
""")
LARGE_THINGS = _nouns("""
    张 桌子 table | 把 椅子 chair | 件 衬衫 shirt | 件 大衣 coat | 条 裙子 skirt | 台 电脑 computer
    辆 汽车 car | 辆 自行车 bicycle
""")
THINGS = (*SMALL_THINGS, *LARGE_THINGS)
ANIMALS = _nouns(
    "只 猫 cat | 只 狗 dog | 只 鸟 bird | 只 羊 sheep sheep | 头 牛 cow | 匹 马 horse | 条 鱼 fish fish"
)
PEOPLE = _nouns("个 学生 student | 个 孩子 child children | 位 老师 teacher | 位 医生 doctor")
SIGHTS = _nouns("座 桥 bridge | 座 山 mountain | 条 河 river | 棵 树 tree | 艘 船 ship | 架 飞机 plane")
NOUNS = (*THINGS, *ANIMALS, *PEOPLE, *SIGHTS)

TIMES = _nouns("- 分钟 minute | 个 小时 hour | - 天 day | 个 星期 week | 个 月 month | - 年 year")
PAGES = _nouns("- 页 page")
PERSONS = _nouns("- 人 person people")
METRES = _nouns("- 米 metre")
KILOMETRES = _nouns("- 公里 kilometre")
YEARS_OLD = (Noun("岁", "岁", "year old", "years old"),)
CURRENCIES = _nouns("- 块 yuan yuan | - 美元 dollar | - 欧元 euro | - 英镑 pound")

WEEKDAYS = _pairs("""
    星期一 Monday | 星期二 Tuesday | 星期三 Wednesday | 星期四 Thursday | 星期五 Friday | 星期六 Saturday
    星期日 Sunday
""")
CITIES = _pairs("北京 Beijing | 上海 Shanghai | 伦敦 London | 巴黎 Paris | 东京 Tokyo | 柏林 Berlin")
EVENTS = _pairs("会议 meeting | 考试 exam | 比赛 match | 音乐会 concert")
VEHICLES = _pairs("火车 train | 飞机 plane | 船 ship | 公共汽车 bus")
SHOPS = _pairs("商店 shop | 银行 bank | 图书馆 library | 博物馆 museum")
FOODS = _pairs("蛋糕 cake | 面包 bread | 西瓜 watermelon")
RISING = _pairs("价格 price | 房租 rent | 人口 population")
COLOURS = _pairs("红 red | 白 white | 黑 black | 蓝 blue")
OWNERS = _pairs("我 my | 你 your | 他 his | 她 her | 我们 our | 他们 their")
OWNED = _pairs("我的 mine | 你的 yours | 他的 his | 她的 hers | 我们的 ours | 他们的 theirs")
ROUTES = tuple(
    Pair(f"从{a.chinese}到{b.chinese}", f"from {a.english} to {b.english}")
    for a in CITIES
    for b in CITIES
    if a != b
)
HABITS = (
    ("起床", "get up", "gets up"),
    ("上班", "start work", "starts work"),
    ("睡觉", "go to bed", "goes to bed"),
)


def by_subject(chinese: str, i: str, *, he: str | None = None, we: str | None = None) -> tuple[Pair, ...]:
    """Subjects with a verb: its form for I, for he and she, and for the others, if they differ."""
    he, we = he or i, we or i
    return (
        Pair(f"我{chinese}", f"I {i}"),
        Pair(f"你{chinese}", f"you {we}"),
        Pair(f"他{chinese}", f"he {he}"),
        Pair(f"她{chinese}", f"she {he}"),
        Pair(f"我们{chinese}", f"we {we}"),
        Pair(f"他们{chinese}", f"they {we}"),
    )
