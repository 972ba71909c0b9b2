"""ROUGE: how many words, pairs of words, and words in order an output shares with its reference.

As Lin (2004) defines ROUGE-N and ROUGE-L of whole texts: F1, the mean over texts. Words are not stemmed, and
Han characters count as words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from regard.config.checking import counted
from regard.scores.translation import check_pairs
from regard.scores.wording import every, words_of


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryScore:
    """ROUGE F1 in percent, the mean over texts."""

    rouge_1: float
    rouge_2: float
    rouge_l: float
    n_texts: int

    def __str__(self) -> str:
        rouge = f"ROUGE-1 {self.rouge_1:.2f}, ROUGE-2 {self.rouge_2:.2f}, ROUGE-L {self.rouge_l:.2f}"
        return f"{rouge}  (F1, not stemmed, {counted(self.n_texts, 'text')})"


def score_summaries(outputs: Sequence[str], references: Sequence[str | Sequence[str]]) -> SummaryScore:
    """Score outputs against a reference each, or where there are several, by each measure, the nearest."""
    check_pairs(outputs, references)
    pairs = [
        (words_of(output), [words_of(each) for each in every(reference)])
        for output, reference in zip(outputs, references, strict=True)
    ]
    return SummaryScore(
        rouge_1=_mean_of_best(_overlap, pairs),
        rouge_2=_mean_of_best(lambda o, r: _overlap(list(pairwise(o)), list(pairwise(r))), pairs),
        rouge_l=_mean_of_best(lambda o, r: _f1(_in_order(o, r), len(o), len(r)), pairs),
        n_texts=len(pairs),
    )


def _mean_of_best(
    measure: Callable[[list[str], list[str]], float], pairs: Sequence[tuple[list[str], list[list[str]]]]
) -> float:
    return 100 * fmean(max(measure(output, each) for each in references) for output, references in pairs)


def _overlap(output: Sequence[object], reference: Sequence[object]) -> float:
    shared = (Counter(output) & Counter(reference)).total()
    return _f1(shared, len(output), len(reference))


def _f1(shared: int, n_output: int, n_reference: int) -> float:
    return 2 * shared / (n_output + n_reference) if shared else 0.0


def _in_order(output: Sequence[str], reference: Sequence[str]) -> int:
    """Words of the longest common subsequence."""
    row = [0] * (len(reference) + 1)
    for word in output:
        before = 0
        for j, other in enumerate(reference, start=1):
            before, row[j] = row[j], before + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]
