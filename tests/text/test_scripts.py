import pytest

from regard.text.scripts import is_all_in, language_among, words_by_script


@pytest.mark.parametrize(
    ("text", "languages", "language"),
    [
        ("猫坐在垫子上。", ("zh", "en"), "zh"),
        ("The cat sat on the mat.", ("zh", "en"), "en"),
        ("使用 Windows Server Active Directory 联合身份验证", ("zh", "en"), "zh"),
        ("The Chinese word 中华人民共和国 is long.", ("en", "zh"), "en"),
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
    ("text", "language", "is_all"),
    [
        ("你好，世界 2024！", "zh", True),
        ("Hello, world.", "en", True),
        ("Hello, 世界", "zh", False),
        ("Hello, 世界", "en", False),
        ("Hello, мир", "en", False),
        ("2024!", "en", False),
    ],
)
def test_a_text_is_all_in_a_language_by_every_letter(text, language, is_all):
    assert is_all_in(text, language, ("zh", "en")) is is_all
    assert not is_all_in(text, "en", ("en", "de"))
