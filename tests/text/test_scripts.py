import pytest

from regard.text.detection import is_in, language_among, words_by_script


@pytest.mark.parametrize(
    ("text", "languages", "language"),
    [
        ("猫坐在垫子上。", ("zh", "en"), "zh"),
        ("The cat sat on the mat.", ("zh", "en"), "en"),
        ("使用 Windows Server Active Directory 联合身份验证", ("zh", "en"), "zh"),
        ("The Chinese word 中华人民共和国 is long.", ("en", "zh"), "en"),
        ("我喜欢 machine learning 和 deep learning", ("zh", "en"), "zh"),  # by its grammar
        ("《Attention Is All You Need》这篇论文", ("zh", "en"), "zh"),  # a title is a name
        ("《Attention Is All You Need》", ("zh", "en"), "en"),  # unless there is nothing else
        ("ＡＢＣ　ｄｅｆ", ("zh", "en"), "en"),
        ("Привет, world of words", ("ru", "en"), "en"),
        ("Привет, мир", ("ru", "en"), "ru"),
        ("猫です", ("zh", "ja"), "ja"),
        ("猫", ("zh", "ja"), None),  # both are written so
        ("The cat", ("en", "de"), None),
        ("Привет", ("zh", "en"), None),
        ("12:30, 50%", ("zh", "en"), None),
        ("", ("zh", "en"), None),
        ("猫", ("zh-CN", "en-GB"), "zh-CN"),
        ("cat", ("zh", "tlh"), None),  # nobody knows how that is written
    ],
)
def test_letters_tell_the_language_or_do_not(text, languages, language):
    assert language_among(text, languages) == language
    assert language_among(text, languages[::-1]) == language


def test_words_are_runs_of_letters_or_a_few_letters_where_there_are_no_spaces():
    assert words_by_script("三只 cats, 2 dogs") == {"CJK": 2 / 1.5, "LATIN": 2.0}
    assert words_by_script("12 %") == {}


@pytest.mark.parametrize(
    ("text", "language", "is_so"),
    [
        ("你好，世界 2024！", "zh", True),
        ("我用 Python 写了一个程序。", "zh", True),  # with a name
        ("Thanks, 老王!", "zh", False),
        ("Hello, world.", "en", True),
        ("Microsoft Windows Server 版", "en", False),  # no English text has such a letter
        ("The word 世界 is Chinese.", "en", False),
        ("Hello, мир", "en", False),
        ("2024!", "en", False),
        ("2024!", "zh", False),
    ],
)
def test_a_text_is_in_a_language_by_most_words_and_in_one_of_latin_letters_by_all(text, language, is_so):
    assert is_in(text, language, ("zh", "en")) is is_so
    assert not is_in(text, "en", ("en", "de"))
