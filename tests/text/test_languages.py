import pytest

from regard.text import LANGUAGES, known_code, language_in, language_name, language_of


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("train.zh", "zh"),
        ("data/train.zh.xz", "zh"),
        ("corpus.en.gz", "en"),
        ("corpus.en.ZST", "en"),
        ("train.zh.txt", "zh"),
        ("zh.txt", "zh"),
        ("europarl-v7.de-en.de", "de"),
        ("train.EN", "en"),
        ("train.deu", "de"),
        ("train.zh_cn", "zh-CN"),
        ("news.pt-BR.txt.gz", "pt-BR"),
        ("train.txt", None),
        ("train-zh.txt", None),
        ("de-en.txt", None),
        ("train.en-de", None),
        ("train.tsv", None),
        ("zh", None),
        ("is", None),
        ("-", None),
        ("train.zh.old", None),
        ("en.de/train", None),
    ],
)
def test_a_file_name_tells_the_language_or_does_not(name, code):
    assert language_of(name) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("zh", "zh"),
        ("ENG", "en"),
        ("zh_cn", "zh-CN"),
        ("translation.zh", "zh"),
        ("source_zh", "zh"),
        ("text-pt", "pt"),
        ("row.source_en", "en"),
        ("source", None),
        ("zh.text", None),
        ("en_de", None),
        ("", None),
    ],
)
def test_the_name_of_a_column_tells_the_language_or_does_not(name, code):
    assert language_in(name) == code


def test_names_are_in_english_and_chinese():
    assert (language_name("zh"), language_name("zh", chinese=True)) == ("Chinese", "中文")
    assert (language_name("DEU"), language_name("de", chinese=True)) == ("German", "德语")
    assert language_name("nb") == "Norwegian Bokmål"
    assert language_name("tlh") == "tlh"


def test_the_table_is_whole():
    assert len(LANGUAGES) > 90
    for code, language in LANGUAGES.items():
        assert language.code == code == known_code(code.upper())
        assert language.english[0].isupper()
        assert all("\u4e00" <= sign <= "\u9fff" or sign in "（）" for sign in language.chinese)
    assert len({language.chinese for language in LANGUAGES.values()}) == len(LANGUAGES)
