"""Languages told by script and by common words, and what is none of them."""

import pytest

from regard.serve.detection import detect


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
