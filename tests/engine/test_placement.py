"""Phrases that take the place of the words they are asked for."""

from math import inf

from regard.engine.phrases.glossary import Glossary, Phrase
from regard.engine.phrases.placement import Draft, drafted
from regard.engine.results import WordLink

SOURCE, WRITTEN = "我喝咖啡。", "I drink the coffee."
LINKS = {
    "I": ("我", 0.9),
    "drink": ("喝", 0.8),
    "the": ("咖啡", 0.3),
    "coffee": ("咖啡", 0.9),
    ".": ("咖啡", 1.0),
}


def draft() -> Draft:
    links, place = [], 0
    for word, (source, strength) in LINKS.items():
        place, start = WRITTEN.index(word, place), SOURCE.index(source)
        end = place + len(word)
        links.append(
            WordLink(
                source=source,
                target=word,
                source_start=start,
                source_end=start + len(source),
                target_start=place,
                target_end=end,
                strength=strength,
            )
        )
    return Draft(WRITTEN, tuple(links))


def asked(**terms):
    return Glossary(terms).phrases(SOURCE)


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
