"""Translations have the values of their sources, or say which they do not have."""

import json

import pytest

import regard
from regard.engine.direction import Direction
from regard.engine.numbers import CheckedSource
from tests.programs import run_regard

# What a translation must contain.
EXAMPLES = """
中国有14亿人。|1.4 billion
全球人口达到32亿。|3.2 billion
该馆藏有十二万册图书。|120,000
公司去年的收入是3.2亿元。|320 million
今年的利润增长了45万元。|450,000
一共有3600万人参加。|36 million
他们筹集了2.5万亿美元。|2.5 trillion
会议定于11月28日下午3点45分开始。|3:45 pm, November 28
气温降到零下12.5度。|minus 12.5
这座城市有82.3亿人口。|8.23 billion
这座城市有两千二百八十万人口。|22.8 million
航班五月二十二日晚上8点22分到达。|8:22 pm
价格上涨了45%。|45%
他一九九五年来到中国。|ninety-five
学校有1234名学生。|1234
The company earned 3.2 billion dollars last year.|32亿
The temperature fell to minus 12.5 degrees.|零下12.5度
About 1.4 billion people live there.|14亿
The city has 12.6 million inhabitants.|1260万
The library holds 120,000 books.|120,000
The budget is $45 million.|4500万
The loss was 350,000 yuan.|350,000
The train leaves at 3:45 pm on November 28th.|11月28日下午3点45
The change was -12.5 percent.|-12.5%
The company earned three hundred and twenty-seven billion dollars last year.|3270亿
About 80.5 thousand people took part.|8.05万
The factory makes three hundred and seventy million tons of steel a year.|3.7亿
The government invested 529 million yuan this year.|5.29亿
He came to China in 1995.|1995
Prices rose by 7.5%.|7.5%
""".strip()
LOST = "比赛1月6日上午8点30分举行。"
"""A date that no output of the bundled model has."""


@pytest.fixture(scope="module")
def model():
    return regard.load("zh-en", threads=1)


@pytest.fixture(scope="module")
def outputs(model):
    sources = [line.split("|")[0] for line in EXAMPLES.split("\n")]
    return dict(zip(sources, model.translate(sources), strict=True))


@pytest.mark.parametrize("line", EXAMPLES.split("\n"), ids=range(len(EXAMPLES.split("\n"))))
def test_a_translation_has_the_value_of_its_source(outputs, line):
    source, wanted = line.split("|")
    assert wanted in outputs[source].text
    assert outputs[source].numbers == ()


def test_without_the_check_the_model_changes_many_of_them(model, outputs):
    plain = model.translate(list(outputs), check_numbers=False)
    assert sum(one.text != other.text for one, other in zip(plain, outputs.values(), strict=True)) >= 12
    assert all(each.numbers == () for each in plain)


def test_a_value_that_cannot_be_corrected_is_reported(model):
    result = model.translate(LOST)
    (change,) = result.numbers
    assert (change.source, change.source_value, change.target) == ("1月6日", "01-06", "")
    assert LOST[change.source_start : change.source_end] == "1月6日"


def test_a_value_of_the_wrong_size_is_corrected_although_another_is_lost(model):
    result = model.translate("上世纪90年代，GDP增长了百分之八，印度有14亿人。")
    assert "1.4 billion" in result.text
    assert [(each.source, each.target) for each in result.numbers] == [("90年代", "")]


def test_what_became_of_a_value_is_the_one_most_like_it():
    source = CheckedSource("90年代有14亿人，2017年有3.5亿人。", Direction("zh", "en"))
    reported = source.reported("There were 3.5 billion and 14 billion people in 2016.")
    assert {each.source: each.target for each in reported} == {
        "90年代": "",
        "14亿": "14 billion",
        "2017": "2016",
        "3.5亿": "3.5 billion",
    }


def test_places_count_in_the_whole_text(model):
    text = f"你好。\n\n{LOST}中国有14亿人。"
    result = model.translate(text, sample=True, temperature=0.01)  # sampled, so reported and not corrected
    assert {text[each.source_start : each.source_end] for each in result.numbers} == {"1月6日", "14亿"}
    (change,) = (each for each in result.numbers if each.source == "14亿")
    assert result.text[change.target_start : change.target_end] == change.target
    assert change.target_value == "14000000000"


def test_a_prefix_stays_and_alternatives_report_their_own_values(model):
    result = model.translate("中国有14亿人。", prefix="China has 14 billion")
    assert result.text.startswith("China has 14 billion")
    assert [each.target_value for each in result.numbers] == ["14000000000"]
    best, *others = [result := model.translate("中国有14亿人。", n_best=3), *result.alternatives]
    assert best.numbers == ()
    assert all(each.numbers for each in others)


def test_glossary_phrases_and_verbatim_text_survive_a_correction(model):
    text = "中国有14亿人，见 https://a.org/14 。"
    result = model.translate(text, glossary={"中国": "the PRC"})
    assert result.missing == ()
    assert "1.4 billion" in result.text
    assert "https://a.org/14" in result.text


def test_a_stream_has_the_same_values(model):
    assert "1.4 billion" in "".join(model.stream("中国有14亿人。"))
    assert len(list(model.stream("我昨天在图书馆丢了我的钥匙。"))) > 3


def test_alignments_belong_to_the_corrected_text(model):
    result = model.translate("中国有14亿人。", alignment=True)
    assert result.text == "China has 1.4 billion people."
    assert {"1", "4", "billion"} <= {link.target for link in result.alignment}


@pytest.mark.parametrize("direction", [Direction(None, "en"), Direction("zh", None)])
def test_nothing_is_compared_where_a_language_is_unknown(direction):
    assert not CheckedSource("14亿", direction)


def test_other_languages_are_checked_by_digits_and_never_rewritten():
    values = CheckedSource("Es waren 1.418 Menschen.", Direction("de", "en"))
    assert values.reported("There were 1,418 people.") == ()
    assert [str(each) for each in values.reported("There were 1,481.")] == [
        "'1.418' (1418) became '1,481' (1481)"
    ]
    assert values.corrected("There were 1,481.") is None


def test_the_command_line_reports_changes():
    answer = run_regard("translate", "--threads", "1", LOST)
    assert "numbers changed: '1月6日' (01-06) is lost" in answer.stderr
    answer = run_regard("translate", "--threads", "1", "--json", LOST)
    (change,) = json.loads(answer.stdout)["numbers"]
    assert change["source_value"] == "01-06"
    answer = run_regard("translate", "--threads", "1", "--no-check-numbers", "中国有14亿人。")
    assert (answer.stdout.strip(), answer.stderr) == ("China has 14 billion people.", "")
