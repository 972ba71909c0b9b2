import pytest

from regard.errors import ShapeError
from regard.scores.translation import score_translations

LINES = ["The cat sat on the mat.", "It is half past three in the afternoon.", "I have two hundred books."]


def test_a_perfect_output_scores_100_everywhere():
    score = score_translations(LINES, LINES, "en")
    assert (score.bleu, score.chrf, score.exact) == (pytest.approx(100), pytest.approx(100), 1.0)


def test_one_wrong_line_costs_an_exact_match_and_some_bleu():
    score = score_translations([*LINES[:2], "I have two books."], LINES, "en")
    assert score.exact == pytest.approx(2 / 3)
    assert 50 < score.bleu < 100


@pytest.mark.parametrize(("language", "cut"), [("en", "tok:13a"), ("zh", "tok:zh"), ("zh-CN", "tok:zh")])
def test_the_signature_says_how_the_language_was_cut(language, cut):
    score = score_translations(["猫坐在垫子上。"], ["猫坐在垫子上。"], language)
    assert cut in score.bleu_signature
    assert "exact matches: 100.0% of 1 line" in str(score)


def test_outputs_and_references_must_match():
    with pytest.raises(ShapeError, match="one for each of 3"):
        score_translations(LINES[:2], LINES)
    with pytest.raises(ShapeError, match="at least one"):
        score_translations([], [])


def test_outputs_that_end_in_a_space_and_a_stop_are_scored_without_advice_on_python(caplog):
    score_translations(["a cat ."] * 200, ["a cat."] * 200, "en")
    assert not caplog.records
