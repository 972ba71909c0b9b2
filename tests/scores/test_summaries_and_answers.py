"""ROUGE, exact match and F1, on texts that one can count by hand, in English and in Chinese."""

import pytest

from regard.errors import ShapeError
from regard.scores.texts import example_lines, normal_words, score_answers, score_summaries


def test_rouge_counts_words_pairs_and_words_in_order():
    score = score_summaries(["the cat sat on the mat"], ["The cat, on the mat, sat!"])
    assert score.rouge_1 == pytest.approx(100.0)
    assert score.rouge_2 == pytest.approx(100 * 2 * 3 / (5 + 5))  # the cat, on the, the mat
    assert score.rouge_l == pytest.approx(100 * 2 * 5 / (6 + 6))  # the cat on the mat


def test_rouge_of_chinese_counts_characters():
    assert score_summaries(["猫在垫子上"], ["猫上"]).rouge_l == pytest.approx(100 * 2 * 2 / 7)


def test_an_example_says_whether_its_output_is_one_of_the_references():
    lines = example_lines(["一", "二", "三"], ["one", "too", "3"], ["one", "two", ["three", "3"]])
    assert lines[:4] == [
        "example 1: the output is the reference",
        "  source     一",
        "  output     one",
        "  reference  one",
    ]
    assert lines[4::4] == ["example 2: the output differs", "example 3: the output is the reference"]
    assert lines[-1] == "  reference  three"


def test_an_empty_output_scores_nothing_and_means_are_over_texts():
    score = score_summaries(["", "one"], ["one", "one"])
    assert (score.rouge_1, score.rouge_2, score.n_texts) == (50.0, 0.0, 2)


def test_answers_are_compared_without_case_articles_and_punctuation():
    assert normal_words("The Cat's a-nap!") == ["cat", "s", "nap"]
    score = score_answers(["the Cat.", "a big dog", ""], ["cat", "dog", "hen"])
    assert score.exact == pytest.approx(100 / 3)
    assert score.f1 == pytest.approx(100 * (1 + 2 / 3 + 0) / 3)


def test_answers_in_chinese_are_compared_by_character():
    score = score_answers(["在北京。"], ["北京"])
    assert (score.exact, score.f1) == (0.0, pytest.approx(100 * 2 * 2 / 5))


def test_there_must_be_one_reference_for_each():
    with pytest.raises(ShapeError):
        score_answers(["a"], [])


def test_of_several_right_answers_the_nearest_counts():
    score = score_answers(["big cat", "dog"], [["the cat", "a big cat"], ["hen", "cow"]])
    assert (score.exact, score.f1) == (50.0, 50.0)
    assert score_answers(["cat"], [["cat hen", "cat dog cow"]]).f1 == pytest.approx(100 * 2 / 3)


def test_of_several_references_each_measure_takes_the_nearest():
    score = score_summaries(["one two"], [["two one", "one two three four"]])
    assert score.rouge_1 == pytest.approx(100.0)
    assert score.rouge_2 == pytest.approx(100 * 2 / 4)
    assert score.rouge_l == pytest.approx(100 * 2 * 2 / 6)
