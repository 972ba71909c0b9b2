"""Scores of labels against the right ones, and whether their probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.config.checking import counted
from regard.errors import ShapeError

BINS = 10
"""Groups of like confidence by which calibration is measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationScore:
    """What became of a labelled set; labels that it does not have count for nothing in the mean of F1."""

    labels: tuple[str, ...]
    accuracy: float
    macro_f1: float
    """The mean of F1 over the labels that the set has."""
    calibration_error: float
    """Expected calibration error: how far confidence is from accuracy, over groups of like confidence."""
    f1: tuple[float | None, ...]
    """Of each label; None where the set has none of it."""
    confusion: tuple[tuple[int, ...], ...]
    """How often each right label (row) was given each label (column)."""

    @property
    def n_texts(self) -> int:
        """Texts of the set."""
        return sum(map(sum, self.confusion))

    @property
    def n_each(self) -> tuple[int, ...]:
        """Texts that have each label."""
        return tuple(map(sum, self.confusion))

    @property
    def headline(self) -> str:
        """How good it is, in a few words."""
        return (
            f"accuracy {self.accuracy:.2%}, macro-F1 {self.macro_f1:.2%} of {counted(self.n_texts, 'text')}"
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Labels that the set has no text of."""
        return tuple(label for label, f1 in zip(self.labels, self.f1, strict=True) if f1 is None)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            "n_texts": self.n_texts,
            "f1": dict(zip(self.labels, self.f1, strict=True)),
            "labels": list(self.labels),
            "confusion": [list(row) for row in self.confusion],
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        missing = f"\nno text of the set is {', '.join(self.missing)}" if self.missing else ""
        return f"{self.headline}\nexpected calibration error {self.calibration_error:.3f}{missing}"


def score_labels(
    probs_BC: np.ndarray, right: Sequence[int] | np.ndarray, labels: Sequence[str]
) -> ClassificationScore:
    """Score probabilities of labels, a row a text, against the number of each text's label."""
    right_B = np.asarray(right, np.int64)
    if probs_BC.shape != (len(right_B), len(labels)) or len(right_B) == 0:
        raise ShapeError("probs", f"{len(right_B)} rows, at least one, of {len(labels)}", probs_BC.shape)
    given_B = probs_BC.argmax(axis=1)
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(confusion, (right_B, given_B), 1)
    f1 = _f1(confusion)
    return ClassificationScore(
        labels=tuple(labels),
        accuracy=float((given_B == right_B).mean()),
        macro_f1=float(np.mean([each for each in f1 if each is not None])),
        calibration_error=calibration_error(probs_BC.max(axis=1), given_B == right_B),
        f1=f1,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def calibration_error(confidence_B: np.ndarray, right_B: np.ndarray) -> float:
    """The mean distance between confidence and accuracy, over groups of equal width, by their size."""
    group_B = np.minimum((confidence_B * BINS).astype(np.int64), BINS - 1)
    sizes = np.bincount(group_B, minlength=BINS)
    gaps = np.bincount(group_B, weights=confidence_B - right_B, minlength=BINS)
    return float(np.abs(gaps).sum() / sizes.sum())


def _f1(confusion: np.ndarray) -> tuple[float | None, ...]:
    hits, given, there = np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1)
    every = zip(hits.tolist(), given.tolist(), there.tolist(), strict=True)
    return tuple(2 * hit / (g + t) if t else None for hit, g, t in every)
