"""Scores of labels, on numbers that one can do by hand."""

import numpy as np
import pytest

from regard.errors import ShapeError
from regard.scores.classification import calibration_error, score_labels

LABELS = ("cat", "dog", "hen")
PROBS = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.5, 0.4, 0.1]])


def test_accuracy_f1_and_confusion():
    score = score_labels(PROBS, [0, 0, 1, 1], LABELS)
    assert score.accuracy == 0.75
    assert score.confusion == ((2, 0, 0), (1, 1, 0), (0, 0, 0))
    assert score.f1 == (pytest.approx(4 / 5), pytest.approx(2 / 3), None)
    assert score.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_a_label_that_the_set_has_not_is_named_and_does_not_count():
    score = score_labels(PROBS, [0, 0, 1, 1], LABELS)
    assert score.missing == ("hen",)
    assert "no text of the set is hen" in str(score)
    assert score.as_dict()["f1"]["hen"] is None


def test_calibration_is_the_distance_between_confidence_and_accuracy():
    confidence, right = np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False])
    assert calibration_error(confidence, right) == pytest.approx((2 * 0.05 + 2 * 0.05) / 4)
    assert calibration_error(np.array([1.0]), np.array([False])) == 1.0


def test_rows_and_labels_must_fit():
    with pytest.raises(ShapeError):
        score_labels(PROBS, [0, 0, 1], LABELS)
