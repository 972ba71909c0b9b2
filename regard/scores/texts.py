"""Scores of generated texts: ROUGE of summaries, exact match and F1 of answers, perplexity.

ROUGE-N and ROUGE-L compare whole texts, as Lin (2004) defines them: F1, the mean over texts. Words are not
stemmed, and each Han character is a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from statistics import fmean

from regard.config.checking import counted
from regard.scores.translation import check_pairs

_WORDS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_\u3400-\u9fff]+")


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case, without punctuation."""
    return _WORDS.findall(text.lower())


def every(references: str | Sequence[str]) -> Sequence[str]:
    """The references as a sequence, whether one or several are given."""
    return [references] if isinstance(references, str) else references


def example_lines(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str | Sequence[str]]
) -> list[str]:
    """Each source with its output and its first reference, and whether the output is a reference."""
    lines = []
    for number, (source, output, right) in enumerate(zip(sources, outputs, references, strict=True), start=1):
        verdict = "the output is the reference" if output in every(right) else "the output differs"
        lines += [f"example {number}: {verdict}", f"  source     {source}", f"  output     {output}"]
        lines.append(f"  reference  {every(right)[0]}")
    return lines


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
    """Score outputs against references; of several references, the best one counts, for each measure."""
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
    """Length of the longest common subsequence, in words."""
    row = [0] * (len(reference) + 1)
    for word in output:
        before = 0
        for j, other in enumerate(reference, start=1):
            before, row[j] = row[j], before + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]


_ARTICLES = {"a", "an", "the"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerScore:
    """Exact match and F1 of answers in percent, the mean over questions."""

    exact: float
    f1: float
    n_questions: int

    def __str__(self) -> str:
        return f"exact match {self.exact:.2f}, F1 {self.f1:.2f} of {counted(self.n_questions, 'answer')}"


def score_answers(outputs: Sequence[str], references: Sequence[str | Sequence[str]]) -> AnswerScore:
    """Score answers against references; of several references, the best one counts."""
    check_pairs(outputs, references)
    pairs = [
        (normal_words(output), [normal_words(right) for right in every(reference)])
        for output, reference in zip(outputs, references, strict=True)
    ]
    return AnswerScore(
        exact=100 * fmean(output in right for output, right in pairs),
        f1=100 * fmean(max(_answer_f1(output, each) for each in right) for output, right in pairs),
        n_questions=len(pairs),
    )


def normal_words(text: str) -> list[str]:
    """The words of an answer without articles."""
    return [word for word in words_of(text) if word not in _ARTICLES]


def _answer_f1(output: list[str], reference: list[str]) -> float:
    if not output or not reference:
        return float(output == reference)
    shared = (Counter(output) & Counter(reference)).total()
    return 2 * shared / (len(output) + len(reference))


@dataclass(frozen=True, kw_only=True, slots=True)
class Perplexity:
    """Perplexity of a held-out text."""

    nll: float
    """Negative log-likelihood of the text and of the end token of each document, in nats."""
    n_tokens: int
    n_bytes: int
    """Size of the text in UTF-8."""
    held_out: str = "test"
    """Name of the set that it was measured on."""

    @property
    def per_token(self) -> float:
        """Perplexity per token."""
        return exp(self.nll / self.n_tokens)

    @property
    def per_byte(self) -> float:
        """Perplexity per byte."""
        return exp(self.nll / self.n_bytes)

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte of the text."""
        return self.nll / log(2) / self.n_bytes

    def measures(self) -> dict[str, float]:
        """The scores by the names under which they are saved."""
        return {
            "perplexity_per_token": self.per_token,
            "perplexity_per_byte": self.per_byte,
            "bits_per_byte": self.bits_per_byte,
        }

    def __str__(self) -> str:
        of = f"{counted(self.n_tokens, 'token')}, {counted(self.n_bytes, 'byte')}"
        return (
            f"perplexity {self.per_token:,.2f} a token, {self.per_byte:.3f} a byte\n"
            f"{self.bits_per_byte:.3f} bits a byte\n"
            f"measured on the {self.held_out} set: {of}"
        )
