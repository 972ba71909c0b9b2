"""Values in Chinese and English texts, and which of them a translation changes."""

from itertools import pairwise

import pytest

from regard.data.numerals import sample
from regard.text.numerals import changes, numerals, rendered

CHINESE = """
14亿人 1400000000|3.2亿元 320000000|十二万册 120000|2.5万亿美元 2500000000000|3600万 36000000
45万元 450000|3亿2000万 320000000|1万5千 15000|5百 500|三千 3000|两百 200|两百五 250|三万五 35000
一万零三百 10300|一千零一 1001|二十一 21|十五 15|三百四十五百万 345000000|十五点二亿 1520000000
六十八点五一 68.51|1,234,567 1234567|１２３４ 1234|８，０００ 8000|12.5 12.5|0.08% 0.08%|45% 45%
百分之三十 30%|百分之三点五 3.5%|五个百分点 5%|3.6％ 3.6%|三成 30%|七成五 75%|三成半 35%|零下12.5度 -12.5
零下十二度 -12|负12 -12|-5℃ -5|为-1.28% -1.28%|三分之二 2/3|2/3 2/3;2;3|11月28日 11-28
十一月二十八日 11-28|2月3号 02-03|3月 03|28日 28|2026年11月28日 2026;11-28|二〇二六年 2026
一九九五年 1995|2016-11-28 2016;11-28|下午3点45分 15:45|上午9点 09:00|晚上8点22分 20:22|三点半 03:30
十点一刻 10:15|15:45 15:45|差五分九点 08:55|中午12点 12:00|凌晨2点 02:00|第三 3|第二十五次 25|第46周 46
90年代 90s|20世纪50年代 1950s|七八十年代 70s;80s|3-5天 3;5|10多万 100000|二十多万 200000
7000余万 70000000|4个亿 400000000|F-16 16|5千克 5|3千米 3|星期三 -|周一 -|十分好 -|万一 -|千万不要 -|三明治 -
四川 -|数十万人 -|3、4、5 3;4;5|2小时13分 2;13|一半 1;0.5|两年半 2;0.5|3:2 3;2|第51届 51|99.5 99.5
1.2.3 1;2;3|300 万 3000000|100亿 10000000000|五千二百万 52000000
红旗-16 16|降至-1200万 -12000000|过万亿 1000000000000|十二亿三百万 1203000000
""".replace("\n", "|").strip("|")

ENGLISH = """
1.4 billion people 1400000000|3.2 billion 3200000000|120,000 books 120000|45 million 45000000
$45m 45000000|2.5 trillion 2500000000000|£5bn 5000000000|RMB44.069 billion 44069000000
US$8.3 million 8300000|14 billions 14000000000|110-million-year-old 110000000
three hundred thousand 300000|two hundred and five 205|twelve thousand 12000|twenty-one 21
one million two hundred thousand 1200000|sixty-eight point five one 68.51|fourteen 14
half a billion 500000000|1,234,567 1234567|7,657,386, 7657386|12.5 12.5|.08% 0.08%|45% 45%|45 percent 45%
45 per cent 45%|thirty percent 30%|0.2 percentage points 0.2%|minus 12.5 degrees -12.5
minus twelve degrees -12|-12.5 -12.5|12.5 degrees below zero -12.5|ten degrees below zero -10
negative 5 -5|5-3 5;3|40%-50% 40%;50%|two-thirds 2/3|three quarters 0.75|1/2 0.5;1;2|one in five 0.2;1;5
November 28 11-28|November 28th 11-28|28 November 11-28|28th of November 11-28|Nov. 28 11-28
in November 11|May 3, 2020 05-03;2020|2016-11-28 2016;11-28|January 28, 11. 01-28|3:45 pm 15:45
3.45 p.m. 15:45|15:45 15:45|3 pm 15:00|11:7 am 11:07|half past three 03:30|a quarter to nine 08:45
ten past eleven 11:10|three o'clock 03:00|12 am 00:00|the 28th 28|third 3|twenty-fifth 25
one hundredth 100|3rd 3|the 1990s 1990s|'90s 90s|three decades 30|two dozen 24|twice 2
nineteen fifty-six 1956|twenty ten 2010|four three five three 4353|F-16 16|3M 3|24/7 24;7|1.2.3 1;2;3
4x200m 4;200|2:13:38 2;13;38|2-0 2;0|76 minus 4 76;4|a few million 1000000|two, three 2;3
77 million billion 77000000000000000|two thousand eighty thousand 2080000|6-7 million 6;7000000
$24,000, 24000|9,548, 19 9548;19
""".replace("\n", "|").strip("|")


def cases(table):
    pairs = (each.rsplit(" ", 1) for each in table.split("|"))
    return [(text, "" if wanted == "-" else wanted) for text, wanted in pairs]


def values(text, language):
    return ";".join(each.written for each in numerals(text, language))


@pytest.mark.parametrize(("text", "wanted"), cases(CHINESE))
def test_chinese_values(text, wanted):
    assert values(text, "zh") == wanted


@pytest.mark.parametrize(("text", "wanted"), cases(ENGLISH))
def test_english_values(text, wanted):
    assert sorted(values(text, "en").split(";")) == sorted(wanted.split(";"))


@pytest.mark.parametrize("language", ["zh", "en", "de"])
def test_a_numeral_stands_where_it_says(language):
    text = "Am 28. November 2026 um 3:45 pm: 14亿人, 1.418 and minus 12.5 degrees"
    for each in numerals(text, language):
        assert text[each.start : each.end] == each.text


def lost(source, target, languages=("zh", "en")):
    found = [numerals(text, language) for text, language in zip((source, target), languages, strict=True)]
    return [
        (each.source.written, each.target.written if each.target else "")
        for each in changes(*found, (source, target))
    ]


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("中国有14亿人。", "China has 14 billion people.", [("1400000000", "14000000000")]),
        ("该馆藏有十二万册图书。", "It has twelve thousand books.", [("120000", "12000")]),
        ("会议11月28日开始。", "It starts on January 28th.", [("11-28", "01-28")]),
        ("会议11月28日下午3点45分开始。", "It starts at 3:45 on November 28.", [("15:45", "03:45")]),
        ("气温降到零下12.5度。", "It fell to 12.5 degrees.", [("-12.5", "12.5")]),
        ("增长了45%。", "It grew by 45.", [("45%", "45")]),
        ("有300人。", "There are people.", [("300", "")]),
        ("他1998年出生。", "He was born in 98 days.", [("1998", "98")]),
    ],
)
def test_a_changed_value_is_found(source, target, wanted):
    assert lost(source, target) == wanted


@pytest.mark.parametrize(
    ("chinese", "english"),
    [
        ("有一个人，两只狗。", "There is a man with a couple of dogs."),
        ("千万别忘了，万一下雨。", "Be sure not to forget, in case it rains."),
        ("他十分高兴，我们一起去四川。", "He is very happy; we go to Sichuan together."),
        ("一半的人，百分之五十。", "Half of the people."),
        ("周一，十几个人吃三明治。", "On Monday a dozen people ate sandwiches."),
        ("32亿美元，1.5万亿元。", "$3.2 billion, 1,500 billion yuan."),
        ("90年代，1998年到2001年。", "In the 1990s, from '98 to 2001."),
        ("下午3点，15:45，晚上12点。", "At 3 in the afternoon, at a quarter to four, at midnight."),
        ("28日宣布。", "It was announced on Tuesday."),
        ("2月3日和4日。", "On 3 and 4 February."),
        ("二十国集团，F-16，iPhone 8。", "The G20, an F-16, the iPhone 8."),
        ("下降了12.5%，三成。", "It changed by -12.5%, down by thirty percent."),
        ("第三季度，第二名，第五次。", "The third quarter, the runner-up, the fifth time."),
        ("5、10和15%。", "5%, 10% and 15%."),
        ("超过百万，三十年。", "More than one million, three decades."),
        ("每年600-700万。", "6 to 7 million a year."),
    ],
)
def test_what_may_be_the_same_is_not_reported(chinese, english):
    assert lost(chinese, english) == []
    assert lost(english, chinese, ("en", "zh")) == []


def test_no_pair_of_the_built_in_corpus_is_reported_and_a_swapped_one_is():
    pairs = list(sample("test", 300, 5))
    for pair in pairs:
        assert lost(pair.chinese, pair.english) == []
        assert lost(pair.english, pair.chinese, ("en", "zh")) == []
    with_values = [pair for pair in pairs if any(each.sure for each in numerals(pair.chinese, "zh"))]
    shifted = pairwise(with_values)
    assert sum(bool(lost(one.chinese, other.english)) for one, other in shifted) > 0.9 * len(with_values)


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("14亿", "en", "1.4 billion"),
        ("12万", "en", "120,000"),
        ("4500", "en", "4500"),
        ("3.2 billion", "zh", "32亿"),
        ("12.6 million", "zh", "1260万"),
        ("2.5 trillion", "zh", "2.5万亿"),
        ("123,456", "zh", "123456"),
        ("百分之四十五", "en", "45%"),
        ("11月28日", "en", "November 28"),
        ("November 28th", "zh", "11月28日"),
        ("下午3点45分", "en", "3:45 pm"),
        ("3:45 pm", "zh", "下午3点45分"),
        ("15:45", "zh", "15:45"),
        ("第23", "en", "23rd"),
        ("90年代", "en", "90s"),
        ("-7", "en", "-7"),
    ],
)
def test_a_value_is_written_as_a_language_writes_it(text, language, wanted):
    other = "zh" if language == "en" else "en"
    (numeral,) = numerals(text, other)
    assert rendered(numeral, language) == wanted
    (again,) = numerals(wanted, language)
    assert again.written == numeral.written


def test_a_negative_temperature_is_written_in_words():
    (numeral,) = numerals("minus 12.5 degrees", "en")
    assert rendered(numeral, "zh", after="度") == "零下12.5"
    assert rendered(numeral, "en", after=" degrees") == "minus 12.5"
    assert rendered(numeral, "de") is None


def test_other_languages_are_compared_by_digits():
    for german, english in [
        ("Es sind 12 000 Euro.", "It is EUR 12,000."),
        ("Die 1.418 Menschen kamen 1960.", "The 1,418 people came in the 1960s."),
        ("Um 19.15 Uhr.", "At 7.15 p.m."),
    ]:
        assert lost(german, english, ("de", "")) == []
    assert lost("Es sind 1.418.", "There are 1,481.", ("de", "")) == [("1418", "1481")]
