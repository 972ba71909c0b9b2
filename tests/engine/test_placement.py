"""Phrases that take the place of the words they are asked for."""

from math import inf

from regard.engine.phrases.glossary import Glossary, Phrase
from regard.engine.phrases.placement import Draft, drafts
from regard.engine.results import WordLink

SOURCE, WRITTEN = "我喝咖啡。", "I drink the coffee."
LINKS = {
    "I": ("我", 0.9),
    "drink": ("喝", 0.8),
    "the": ("咖啡", 0.3),
    "coffee": ("咖啡", 0.9),
    ".": ("咖啡", 1.0),
}


def draft(written=WRITTEN, source=SOURCE, linked=None) -> Draft:
    """A draft whose words are linked to words of the source, or to characters in these places."""
    links, place = [], 0
    for word, (text, strength) in (linked or LINKS).items():
        start = source.index(text) if isinstance(text, str) else text
        word = word.rstrip("0123456789")
        place = written.index(word, place)
        links.append(
            WordLink(
                source=source[start],
                target=word,
                source_start=start,
                source_end=start + (len(text) if isinstance(text, str) else 1),
                target_start=place,
                target_end=(place := place + len(word)),
                strength=strength,
            )
        )
    return Draft(written, tuple(links))


def drafted(draft, phrases, likelihood):
    """The first draft with all phrases."""
    return next(drafts(draft, phrases, likelihood), None)


def asked(source=SOURCE, **terms):
    return Glossary(terms).phrases(source)


def longest(texts):
    return list(map(len, texts))


def shortest(texts):
    return [-len(text) for text in texts]


def test_a_phrase_replaces_the_words_of_its_source_and_the_model_says_how_many():
    assert drafted(draft(), asked(咖啡="tea"), longest).text == "I drink the tea."
    assert drafted(draft(), asked(咖啡="tea"), shortest).text == "I drink tea."


def test_several_phrases_each_find_their_place_and_one_begins_the_sentence():
    found = drafted(draft(), asked(我="everybody", 喝="drinks up", 咖啡="tea"), longest)
    assert found.text == "Everybody drinks up the tea."
    assert found.replaced == ("I", "drink", "coffee")


def test_what_is_there_stays_and_what_nothing_comes_from_has_no_place():
    assert drafted(draft(), asked(咖啡="coffee"), longest) == draft()
    assert drafted(draft(), [Phrase("tea", places=((4, 5),))], longest) is None
    assert drafted(draft(), asked(咖啡="tea"), lambda texts: [-inf] * len(texts)) is None


def test_an_output_that_still_says_what_was_replaced_only_added_the_phrase():
    found = drafted(draft(), asked(咖啡="tea"), longest)
    assert found.is_better_than("I drink Coffee. tea.")
    assert not found.is_better_than("I had a tea.")
    assert not draft().is_better_than("I drink coffee.")


CATS = "我的猫的猫是猫。"


def test_further_occurrences_follow_one_by_one_where_words_are_linked_most_strongly():
    """A neighbour that comes from another place of the source stays."""
    words = {
        "My": (0, 0.9),
        "cat": (4, 0.9),
        "is": (5, 0.8),
        "a": (6, 0.2),
        "cat2": (6, 0.8),
        "too": (2, 0.7),
    }
    found = drafts(draft("My cat is a cat too.", CATS, words), asked(CATS, 猫="kitten"), shortest)
    assert [each.text for each in found] == [
        "My kitten is a cat too.",
        "My kitten is kitten too.",
        "My kitten is kitten kitten.",
    ]


def test_an_occurrence_without_a_place_is_left_out_and_what_is_there_stays():
    words = {"My": (0, 0.9), "cat": (2, 0.9), "is": (5, 0.8), "a": (5, 0.2), "dog": (6, 0.1)}
    (first, second) = drafts(draft("My cat is a dog.", CATS, words), asked(CATS, 猫="cat"), longest)
    assert (first.text, first.replaced) == ("My cat is a dog.", ())
    assert (second.text, second.replaced) == ("My cat is a cat.", ("dog",))


def test_of_alternatives_the_likeliest_is_inserted():
    assert drafted(draft(), asked(咖啡="tea|teas|te"), longest).text == "I drink the teas."
    assert drafted(draft(), asked(咖啡="tea|teas|te"), shortest).text == "I drink te."


def test_no_phrase_is_inserted_into_another():
    """The words for both stand side by side; what is inserted first is not replaced."""
    words = {"the": ("咖啡", 0.5), "hot": ("喝", 0.9), "coffee": ("咖啡", 0.9)}
    found = drafted(draft("the hot coffee", SOURCE, words), asked(喝="sip", 咖啡="tea"), shortest)
    assert found.text == "the sip tea"


def test_few_occurrences_are_inserted_even_if_very_many_are_wanted():
    source, words = "猫" * 31, {f"w{i}": (i, 0.5) for i in range(31)}
    found = list(drafts(draft("w " * 31, source, words), asked(source, 猫="x"), longest))
    assert [each.text.lower().count("x") for each in found] == list(range(1, 17))
    source = "".join(map(chr, range(0x5000, 0x5011)))
    words = {f"w{i}": (i, 0.5) for i in range(17)}
    assert drafted(draft("w " * 17, source, words), asked(source, **dict.fromkeys(source[:16], "x")), longest)
    each_its_own = {sign: f"x{i}" for i, sign in enumerate(source)}
    assert drafted(draft("w " * 17, source, words), asked(source, **each_its_own), longest) is None


def test_phrases_know_all_of_their_places_also_behind_what_is_kept():
    (kept, phrase) = Glossary({"cat": "Katze"}, keep=["{cat}"]).phrases("a {cat}, a cat and a Cat")
    assert kept.places == ((2, 7),)
    assert phrase.places == ((11, 14), (21, 24))


def test_a_phrase_for_a_whole_sentence_is_tried_in_few_ways():
    words, tried = [f"w{i}" for i in range(99)], []
    written = " ".join(words)
    links = tuple(
        WordLink(
            source="x",
            target=word,
            source_start=0,
            source_end=1,
            target_start=(start := written.index(word)),
            target_end=start + len(word),
            strength=1.0 if word == "w50" else 0.5,
        )
        for word in words
    )
    drafted(
        Draft(written, links),
        [Phrase("y", places=((0, 1),))],
        lambda texts: tried.extend(texts) or longest(texts),
    )
    assert len(tried) == 25
