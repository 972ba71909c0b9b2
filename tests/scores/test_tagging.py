"""Scores of texts with several labels, on numbers that can be done by hand."""

import numpy as np
import pytest

from regard.errors import ShapeError
from regard.scores.classification import score_tags

LABELS = ("art", "sport", "war", "zoo")
RIGHT = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
PROBS = np.array([[0.9, 0.2, 0.1, 0.1], [0.1, 0.7, 0.6, 0.1], [0.1, 0.1, 0.8, 0.1]])


def test_exact_match_and_both_means_of_f1():
    score = score_tags(PROBS, RIGHT, LABELS)
    assert score.exact == pytest.approx(1 / 3)
    # given: art; sport and war; war. Right of those 3, of 4 that there are.
    assert score.micro_f1 == pytest.approx(2 * 3 / (4 + 4))
    assert score.f1 == (1.0, pytest.approx(2 / 3), pytest.approx(2 / 3), None)
    assert score.macro_f1 == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert score.n_each == (1, 2, 1, 0)
    assert "exact match 33.33%, micro-F1 75.00% of 3 texts" in str(score)


def test_what_texts_of_a_label_were_given():
    assert score_tags(PROBS, RIGHT, LABELS).confusion == (
        (1, 0, 0, 0),
        (1, 1, 1, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 0),
    )


def test_a_threshold_moves_what_is_given_and_not_the_calibration():
    low, high = (score_tags(PROBS, RIGHT, LABELS, threshold) for threshold in (0.15, 0.85))
    assert low.f1[1] == 1.0
    assert high.f1[1] == 0.0
    assert low.calibration_error == high.calibration_error


def test_sure_and_right_is_calibrated_and_sure_and_wrong_is_not():
    assert score_tags(RIGHT * 1.0, RIGHT, LABELS).calibration_error == 0.0
    assert score_tags(1.0 - RIGHT, RIGHT, LABELS).calibration_error == 1.0


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError):
        score_tags(PROBS[:2], RIGHT, LABELS)
