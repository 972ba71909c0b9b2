"""Languages told by script and by common words, and what is none of them."""

import pytest

from regard.text.detection import detect, language_among


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
    assert (
        detect("Bonjour, le monde", ["zh", "en"]).confidence < detect("Good morning", ["zh", "en"]).confidence
    )
    assert detect("Rio de Janeiro", ["zh", "en"]).language == "en"
