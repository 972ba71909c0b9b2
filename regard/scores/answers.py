"""Answers against right ones: the same, or how many words they share, as SQuAD has it.

Case, punctuation and the articles a, an and the do not count; Han characters count as words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from regard.config.checking import counted
from regard.scores.translation import check_pairs
from regard.scores.wording import every, words_of

_ARTICLES = {"a", "an", "the"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerScore:
    """In percent, the mean over questions."""

    exact: float
    f1: float
    n_questions: int

    def __str__(self) -> str:
        return f"exact match {self.exact:.2f}, F1 {self.f1:.2f} of {counted(self.n_questions, 'answer')}"


def score_answers(outputs: Sequence[str], references: Sequence[str | Sequence[str]]) -> AnswerScore:
    """Score answers against the right ones; where there are several, against the nearest."""
    check_pairs(outputs, references)
    pairs = [
        (normal_words(output), [normal_words(right) for right in every(reference)])
        for output, reference in zip(outputs, references, strict=True)
    ]
    return AnswerScore(
        exact=100 * fmean(output in right for output, right in pairs),
        f1=100 * fmean(max(_f1(output, each) for each in right) for output, right in pairs),
        n_questions=len(pairs),
    )


def normal_words(text: str) -> list[str]:
    """The words of an answer that count."""
    return [word for word in words_of(text) if word not in _ARTICLES]


def _f1(output: list[str], reference: list[str]) -> float:
    if not output or not reference:
        return float(output == reference)
    shared = (Counter(output) & Counter(reference)).total()
    return 2 * shared / (len(output) + len(reference))
