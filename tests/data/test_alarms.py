"""Warnings about data: copies, other languages than files say, dropped lines, small held-out sets."""

from itertools import pairwise

import pytest

from regard.data.cleaning.alarms import (
    dropped_warning,
    language_warning,
    pair_warnings,
    share_uncertainty,
    small_set_warning,
)
from regard.text import Tally

PAIRS = [(f"第{i}只猫坐着", f"cat {i} sits") for i in range(50)]


def swapped(rows):
    return [(target, source) for source, target in rows]


@pytest.mark.parametrize(
    ("rows", "languages"),
    [
        (PAIRS, ("zh", "en")),
        (swapped(PAIRS), ("en", "zh")),
        ([*PAIRS[1:], ("Windows XP", "视窗")], ("zh", "en")),
        (PAIRS, ("inputs", "outputs")),
        ([("Hotel", "Hotel"), ("a cat", "eine Katze")], ("en", "de")),
        ([("English: the man is here", "Deutsch: der Mann ist hier")] * 30, ("en", "de")),
        ([("Berlin 2026", "Paris, NATO, 42")] * 50, ("en", "de")),
        ([("the dog is here", "il cane è qui")] * 50, ("tlh", "xx")),
    ],
)
def test_sound_pairs_raise_none(rows, languages):
    assert list(pair_warnings(rows, languages)) == []


@pytest.mark.parametrize("rows", [swapped(PAIRS), [*swapped(PAIRS[:5]), *PAIRS[5:]]])
def test_swapped_languages_are_reported(rows):
    (warning,) = pair_warnings(rows, ("zh", "en"))
    assert "of 50 sampled pairs" in warning
    assert "from en to zh" in warning


def test_a_side_that_is_a_copy_is_reported():
    (warning,) = pair_warnings([(target, target) for _, target in PAIRS], ("en", "de"))
    assert "50 of 50 sampled pairs have the same text" in warning


ENGLISH = [f"The {i} dogs are running through the green field with their ball" for i in range(47)]
GERMAN = [f"Die {i} Hunde laufen mit ihrem Ball durch das grüne Feld" for i in range(47)]


def test_german_in_an_english_file_is_reported_with_the_file():
    rows = [*pairwise(GERMAN)]
    (warning,) = pair_warnings(rows, ("en", "de"), ("train.en", "train.de"))
    assert warning.startswith(
        "train.en: 46 of 46 sampled texts seem to be in German (de), the language of the"
    )
    (warning,) = pair_warnings([*zip(ENGLISH, GERMAN, strict=True)], ("en", "fr"), ("a", "b"))
    assert warning.startswith("b: 47 of 47")
    assert "--target de" in warning


def test_latin_languages_that_are_swapped_are_one_warning():
    (warning,) = pair_warnings([*zip(GERMAN, ENGLISH, strict=True)], ("en", "de"), ("a", "b"))
    assert "swapped" in warning
    assert not [*pair_warnings([*zip(GERMAN, ENGLISH, strict=True)], ("de", "en"), ("a", "b"))]


def test_a_part_in_another_language_is_reported_from_a_fifth_on():
    few, many = [*GERMAN[:9], *ENGLISH[:38]], [*GERMAN[:23], *ENGLISH[:24]]
    assert not [*language_warning(few, "en", "a.en")]
    (warning,) = language_warning(many, "en", "a.en")
    assert warning.startswith("a.en: 23 of 47 sampled texts seem to be in German (de), not in English (en)")


def test_a_corpus_of_which_most_is_dropped_is_reported_with_the_reason():
    dropped = Tally()
    dropped.add("duplicate", "a.en", 7, count=980)
    dropped.add("empty", "a.en", 3, count=2)
    (warning,) = dropped_warning(dropped, 1000, {"duplicate": "The same sentence."})
    assert warning.startswith("982 of 1,000 lines (98%) were dropped, most of them (980) as 'duplicate'")
    assert "a.en:7 ('The same sentence.')" in warning
    assert "data.drop_duplicates=false" in warning
    assert not [*dropped_warning(dropped, 1964)]
    assert not [*dropped_warning(dropped, 1964, {})]
    assert not [*dropped_warning(Tally({"empty": 9}, {"empty": ["a:1"]}), 11)]


def test_small_held_out_sets_are_reported_with_what_to_do():
    (warning,) = small_set_warning({"validation": 24, "test": 24}, 200, share_uncertainty)
    assert "the validation set has 24 rows and the test set has 24 rows" in warning
    assert "±20 points" in warning
    assert "data.valid_lines" not in warning  # there are too few rows to hold out more
    (warning,) = small_set_warning({"validation": 100, "test": 99}, 700, share_uncertainty)
    assert "the test set has 99 rows" in warning
    assert "validation" not in warning
    assert "--set data.test_lines=100" in warning
    assert not [*small_set_warning({"validation": 100, "test": 2000}, 700, share_uncertainty)]
