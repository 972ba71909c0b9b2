"""Languages told by script and by common words, and what is none of them."""

import time
from pathlib import Path

import pytest

from regard.text.detection import detect, is_in, language_among, other_language


@pytest.mark.parametrize(
    ("text", "languages", "found"),
    [
        ("三月五日", ["zh", "en"], "zh"),
        ("Good morning", ["zh", "en"], "en"),
        ("A dog runs across the field.", ["en", "de", "fr"], "en"),
        ("Zwei Männer stehen am Herd und kochen.", ["en", "de", "fr"], "de"),
        ("Deux hommes sont dans la rue.", ["en", "de", "fr"], "fr"),
        ("日本語のテキスト", ["zh", "ja"], "ja"),
        ("三月五日", ["ja", "zh"], "zh"),
        ("Це не так, як ви думаєте, і це добре.", ["ru", "uk"], "uk"),
        ("iPhone 15 发布了", ["zh", "en"], "zh"),
        ("Reading 鲁迅 in translation", ["zh", "en"], "en"),
        ("Привет, как дела", ["zh", "en"], None),
        ("Der Hund ist nicht auf der Straße und das ist gut", ["zh", "en"], None),
        ("Bonjour tout le monde, comment allez-vous ?", ["zh", "en"], None),
        ("Hotel", ["en", "de"], None),
        ("12:30 — !?", ["zh", "en"], None),
        ("", ["zh", "en"], None),
        ("text", [], None),
    ],
)
def test_the_language_of_a_text(text, languages, found):
    guess = detect(text, languages)
    assert (guess and guess.language) == found


CHINESE_WITH_ENGLISH = [
    "我喜欢 machine learning 和 deep learning",
    "我喜欢machine learning",
    "请把这个 bug fix 一下",
    "Please 帮我 check 一下这个 pull request",
    "我用 Python 的 asyncio.gather 来 run 很多 tasks",
    "我昨天在 GitHub 上 push 了一个 commit，but CI failed 了。",
    "kubectl get pods 报错了",
    "Transformer 模型",
    "《Attention Is All You Need》这篇论文",
    "论文《Attention Is All You Need》的作者是谁？",
    "看 https://example.com/the/of/and 这个",
]
ENGLISH_WITH_CHINESE = [
    "I love 北京",
    "He said 你好 to me",
    "What does 加油 mean?",
    "How do you say 我爱你 in English?",
    "The word 缘分 has no English equivalent",
    "The Chinese word 中华人民共和国 is long.",
    "deep learning 深度学习 is fun",
]


@pytest.mark.parametrize(
    ("text", "found"),
    [(text, "zh") for text in CHINESE_WITH_ENGLISH] + [(text, "en") for text in ENGLISH_WITH_CHINESE],
)
def test_a_text_of_two_languages_is_in_the_one_whose_sentence_it_is(text, found):
    guess = detect(text, ["zh", "en"])
    assert guess is not None
    assert guess.language == found
    assert 0.5 <= guess.confidence <= 1.0
    assert detect(text, ["en", "zh"]) == guess
    assert language_among(text, ["zh", "en"]) == found, "who looks inside is told the same"


@pytest.mark.parametrize(
    "text", ["12:30", "¡¿…!?", "2024", "😀👍", "日本語です hello", "مرحبا بكم في كل مكان 你"]
)
def test_what_is_neither_stays_so_beside_a_word_of_ours(text):
    assert detect(text, ["zh", "en"]) is None


TAGGED = [
    '<p class="note" style="color: red">我<b>喜欢</b>苹果。</p>',
    "<!-- the old title of the page -->你好<br/>",
    "<script>if (the and of) then();</script>我们走吧",
    "你好&nbsp;&nbsp;&nbsp;世界",
    "运行 `git commit --amend and push` 命令",
    "[点击这里](docs/the-book-of-the-dead.html)",
    "\\section{} \\textbf{你好} {user_name} %(the)s ${of.the}",
    '<?xml version="1.0" encoding="utf-8"?>\n<string name="of_the_and">你好</string>',
]


@pytest.mark.parametrize("text", TAGGED)
def test_markup_is_in_no_language(text):
    assert detect(text, ["zh", "en"]).language == "zh"
    assert language_among(text, ["zh", "en"]) == "zh"
    assert other_language(text, ["zh", "en"]) is None
    assert is_in(text, "zh", ["zh", "en"])
    assert is_in(text.replace("你好", "Hello"), "zh", ["zh", "en"]) is ("你好" not in text)


def test_the_words_between_tags_count_and_comparisons_are_no_tags():
    assert detect("<p>The dog is on the mat.</p>", ["zh", "en"]).language == "en"
    assert named('<p lang="en">Je ne sais pas où il est.</p>') == "fr"
    assert detect("1 < 2 and 3 > 2", ["zh", "en"]).language == "en"
    assert detect("<br>", ["zh", "en"]).language == "en", "where there is nothing else"


@pytest.mark.parametrize("part", ["<!--", "a", "《", "<script>", "<a", "a.b-", "&a", "`", "](", "{{a", "%(a"])
def test_markup_without_an_end_is_read_in_time(part):
    text, started = part * (1 << 16), time.process_time()
    is_in(text, "zh", ["zh", "en"])
    language_among(text, ["zh", "en"], most=1 << 14)
    assert time.process_time() - started < 1


def test_names_tell_a_language_where_there_is_nothing_else():
    assert detect("《红楼梦》", ["zh", "en"]).language == "zh"
    assert detect("https://example.org", ["zh", "en"]).language == "en"


def test_confidence_is_less_where_less_speaks_for_it():
    sure = detect("the dog is on the mat and it is happy to be there", ["en", "de"])
    unsure = detect("the Hund", ["en", "de"])
    assert unsure is None or unsure.confidence < sure.confidence <= 1
    mixed = detect("三月五日四月六日 March", ["zh", "en"])
    assert 0.5 <= mixed.confidence < 1


def test_confidence_is_less_where_more_speaks_for_a_language_that_is_not_served():
    rio, morning = detect("Rio de Janeiro", ["zh", "en"]), detect("Good morning", ["zh", "en"])
    assert rio.language == morning.language == "en"
    assert rio.confidence < morning.confidence


# --- texts in none of the languages -------------------------------------------------------------------------

LINES = Path(__file__).with_name("lines_of_languages.tsv").read_text(encoding="utf-8").splitlines()
FOREIGN = [tuple(line.split("\t")) for line in LINES]


def named(text, languages=("zh", "en")):
    other = other_language(text, languages)
    return other.language if other else ""


def test_most_lines_of_other_languages_are_found_and_most_of_them_named():
    found = [(code, named(text)) for code, text in FOREIGN]
    assert sum(bool(name) for _, name in found) >= 0.96 * len(found)
    assert sum(code == name for code, name in found) >= 0.93 * len(found)
    assert not any(code == "ja" != name for code, name in found), "no Japanese may pass for Chinese"


@pytest.mark.parametrize("code", sorted({code for code, _ in FOREIGN}))
def test_no_line_is_foreign_to_its_own_language(code):
    assert {named(text, [code]) for own, text in FOREIGN if own == code} == {""}
    assert {named(text, ["zh", code]) for own, text in FOREIGN if own == code} == {""}


SHORT = """
iPhone 15 Pro|OK|Café|café au lait|Rio de Janeiro|São Paulo|El Niño|Pokémon|naïve|déjà vu|Les Misérables|I|x
Deutsche Bank|Angela Merkel|kubectl get pods|print('la la la')|SELECT * FROM t|const x = 1;|yyyy-MM-dd|LGTM
π ≈ 3.14|μ|α-helix|3.5 kg|Die Hard|I die a little inside|A man, a plan, a canal|No|Da capo|k1, k2, k3|U.S.A.
The Bundestag is the German parliament.|He said c'est la vie and left the room.|Where is the Champs-Élysées?
你好|OK啦|我爱你|東京|經濟部|今天天氣很好，我們去公園散步吧。|學而時習之，不亦說乎？|鲜の每日|好好用ヾ(＠⌒ー⌒＠)ノ
他说「ありがとう」是谢谢的意思|的β值|《红楼梦》|我用 Python 的 asyncio|三萬五千|長崎縣立美術館|唔……|点解这道题
"""


@pytest.mark.parametrize("text", [text for line in SHORT.strip().splitlines() for text in line.split("|")])
def test_names_terms_and_short_texts_are_not_taken_for_another_language(text):
    assert named(text) == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Bonjour", "fr"),
        ("Danke schön", "de"),
        ("Muchas gracias", "es"),
        ("駅前広場", "ja"),
        ("経済産業省", "ja"),
        ("カタカナ", "ja"),
        ("关于这个问题，我们明天再讨论。", ""),
        ("關於這個問題，我們明天再討論。", ""),
        ("佢哋今日唔喺屋企。", "yue"),
        ("The word is spelt это слово так пишется по-русски", "ru"),
    ],
)
def test_short_texts_and_texts_in_chinese_characters(text, code):
    assert named(text) == code


def test_what_another_language_is_depends_on_the_expected_ones():
    french = "Je ne sais pas encore si nous pourrons venir demain."
    assert [named(french, codes) for codes in (["fr"], ["en", "fr"], ["en"], ["de"], ["ru"])] == [
        "", "", "fr", "fr", "fr",
    ]  # fmt: skip
    assert named(french, ["sl"]) == named(french, ["xal"]) == "", "languages whose words are not known"
    assert named(french, []) == named("", ["en"]) == named("12:30", ["en"]) == ""
    assert named("我们明天再讨论这个问题。", ["ja"]) == named("我们明天再讨论。", ["en"]) == "zh"
    assert named("明日行きます。", ["en", "de"]) == "ja"
    assert named("佢哋今日唔喺屋企。", ["yue"]) == named("我们明天再讨论。", ["yue"]) == ""


def test_the_beginning_of_a_long_text_is_enough():
    assert named("the dog is on the mat and " * 1000 + "je ne sais pas où il est " * 5000) == ""
    assert named("je ne sais pas où il est et " * 1000) == "fr"
