"""Scores of predicted labels, and the calibration of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.config.checking import counted
from regard.errors import ShapeError

BINS = 10
"""Number of confidence bins of the calibration error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationScore:
    """Scores on a labelled set."""

    labels: tuple[str, ...]
    accuracy: float
    macro_f1: float
    """Mean F1 of the labels that occur in the set."""
    calibration_error: float
    """Expected calibration error: mean gap between confidence and accuracy over confidence bins."""
    f1: tuple[float | None, ...]
    """F1 of each label; None if it does not occur in the set."""
    confusion: tuple[tuple[int, ...], ...]
    """Number of texts by correct label (row) and predicted label (column)."""

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return sum(map(sum, self.confusion))

    @property
    def n_each(self) -> tuple[int, ...]:
        """Number of texts with each label."""
        return tuple(map(sum, self.confusion))

    @property
    def headline(self) -> str:
        """The main scores in one line."""
        return (
            f"accuracy {self.accuracy:.2%}, macro-F1 {self.macro_f1:.2%} of {counted(self.n_texts, 'text')}"
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Labels that do not occur in the set."""
        return tuple(label for label, f1 in zip(self.labels, self.f1, strict=True) if f1 is None)

    def as_dict(self) -> dict[str, Any]:
        """The scores as JSON values."""
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
    probs_BY: np.ndarray, right: Sequence[int] | np.ndarray, labels: Sequence[str]
) -> ClassificationScore:
    """Score label probabilities, one row per text, against the index of each text's label."""
    right_B = np.asarray(right, np.int64)
    if probs_BY.shape != (len(right_B), len(labels)) or len(right_B) == 0:
        wanted = f"{len(right_B)} rows, at least one, of {len(labels)}"
        raise ShapeError("probs", wanted, probs_BY.shape, code="bad_shape")
    given_B = probs_BY.argmax(axis=1)
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(confusion, (right_B, given_B), 1)
    f1 = _f1(confusion)
    return ClassificationScore(
        labels=tuple(labels),
        accuracy=float((given_B == right_B).mean()),
        macro_f1=float(np.mean([each for each in f1 if each is not None])),
        calibration_error=calibration_error(probs_BY.max(axis=1), given_B == right_B),
        f1=f1,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def calibration_error(confidence_B: np.ndarray, right_B: np.ndarray) -> float:
    """Mean gap between confidence and accuracy over bins of equal width, weighted by their size."""
    group_B = np.minimum((confidence_B * BINS).astype(np.int64), BINS - 1)
    sizes = np.bincount(group_B, minlength=BINS)
    gaps = np.bincount(group_B, weights=confidence_B - right_B, minlength=BINS)
    return float(np.abs(gaps).sum() / sizes.sum())


def _f1(confusion: np.ndarray) -> tuple[float | None, ...]:
    hits, given, there = np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1)
    every = zip(hits.tolist(), given.tolist(), there.tolist(), strict=True)
    return tuple(2 * hit / (g + t) if t else None for hit, g, t in every)


@dataclass(frozen=True, kw_only=True, slots=True)
class TagScore:
    """Scores on a set whose texts have any number of labels."""

    labels: tuple[str, ...]
    exact: float
    """Share of texts whose predicted labels are exactly the correct ones."""
    micro_f1: float
    """F1 over all decisions together: frequent labels count more."""
    macro_f1: float
    """Mean F1 of the labels that occur in the set."""
    calibration_error: float
    """Expected calibration error over all decisions."""
    f1: tuple[float | None, ...]
    """F1 of each label; None if it does not occur in the set."""
    confusion: tuple[tuple[int, ...], ...]
    """Number of texts by correct label (row) and predicted label (column)."""
    n_each: tuple[int, ...]
    """Number of texts with each label."""
    n_texts: int

    @property
    def headline(self) -> str:
        """The main scores in one line."""
        return (
            f"exact match {self.exact:.2%}, micro-F1 {self.micro_f1:.2%} of {counted(self.n_texts, 'text')}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The scores as JSON values."""
        return {
            "exact": self.exact,
            "micro_f1": self.micro_f1,
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            "n_texts": self.n_texts,
            "f1": dict(zip(self.labels, self.f1, strict=True)),
            "labels": list(self.labels),
            "confusion": [list(row) for row in self.confusion],
        }

    def __str__(self) -> str:
        calibrated = f"expected calibration error {self.calibration_error:.3f}"
        return f"{self.headline}\nmacro-F1 {self.macro_f1:.2%}, {calibrated}"


def rows_of(numbers: Sequence[Sequence[int]], n_labels: int) -> np.ndarray:
    """The labels of each text as booleans, (texts, labels), from label indices."""
    right_BY = np.zeros((len(numbers), n_labels), bool)
    for row, own in zip(right_BY, numbers, strict=True):
        row[list(own)] = True
    return right_BY


def score_tags(
    probs_BY: np.ndarray, right_BY: np.ndarray, labels: Sequence[str], threshold: float = 0.5
) -> TagScore:
    """Score label probabilities, one row per text, against the labels of each text."""
    right_BY = np.asarray(right_BY, bool)
    if probs_BY.shape != right_BY.shape or right_BY.shape[1:] != (len(labels),) or not len(right_BY):
        wanted = f"{len(right_BY)} rows, at least one, of {len(labels)}"
        raise ShapeError("probs", wanted, probs_BY.shape, code="bad_shape")
    given_BY = probs_BY >= threshold
    hits, given, there = ((each).sum(axis=0) for each in (given_BY & right_BY, given_BY, right_BY))
    f1 = tuple(2 * float(h) / float(g + t) if t else None for h, g, t in zip(hits, given, there, strict=True))
    confidence_BY = np.maximum(probs_BY, 1 - probs_BY)
    sure_BY = probs_BY >= 0.5  # the more probable decision, whatever the threshold
    return TagScore(
        labels=tuple(labels),
        exact=float((given_BY == right_BY).all(axis=1).mean()),
        micro_f1=2 * float(hits.sum()) / max(1.0, float(given.sum() + there.sum())),
        macro_f1=float(np.mean([each for each in f1 if each is not None] or [0.0])),
        calibration_error=calibration_error(confidence_BY.ravel(), (sure_BY == right_BY).ravel()),
        f1=f1,
        confusion=tuple(
            tuple(row) for row in (right_BY.T.astype(np.int64) @ given_BY.astype(np.int64)).tolist()
        ),
        n_each=tuple(there.tolist()),
        n_texts=len(right_BY),
    )
