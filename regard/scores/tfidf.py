"""A baseline for classifiers: TF-IDF with logistic regression, which learns in seconds.

Weights are those of the usual libraries: sublinear counts, smoothed inverse document frequencies, rows of
length 1. Words with pairs of words, and runs of characters, are both tried; held-out texts decide.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

MOST_TEXTS, MOST_CHARACTERS, MOST_FEATURES = 10_000, 300, 50_000
"""Training texts and features that are used, and characters of a text: the baseline must not take long."""
LEAST_TEXTS = 2
"""Texts that a feature must be in."""
STRENGTHS = (3.0, 30.0)
"""Inverse strengths of the penalty that are tried."""
LONGEST_RUN = 4
ITERATIONS = 30
_WORD = re.compile(r"\w\w+")


class Rows(NamedTuple):
    """A sparse matrix with a row for each text."""

    starts: Tensor
    """Where each row begins among the values."""
    columns: Tensor
    values: Tensor

    def times(self, weights_FY: Tensor) -> Tensor:
        """The product with a dense matrix."""
        return F.embedding_bag(
            self.columns, weights_FY, self.starts, mode="sum", per_sample_weights=self.values
        )


Features = Callable[[str], Iterator[str]]
Texts = tuple[Sequence[str], Sequence[int]]
"""Texts, and the number of each one's label."""


def words(text: str) -> Iterator[str]:
    """Words, and pairs of neighbouring ones."""
    found = _WORD.findall(text.lower())
    yield from found
    yield from map(" ".join, pairwise(found))


def runs(text: str) -> Iterator[str]:
    """Runs of one to four characters."""
    text = " ".join(text.lower().split())
    for n in range(1, LONGEST_RUN + 1):
        yield from (text[i : i + n] for i in range(len(text) - n + 1))


@dataclass(frozen=True, slots=True)
class Tfidf:
    """Turns texts into rows of numbers."""

    features: Features
    columns: dict[str, int]
    """The column of each feature."""
    rarity: tuple[float, ...]
    """The inverse document frequency of each column."""

    @staticmethod
    def of(texts: Sequence[str], features: Features) -> Tfidf:
        """The features that occur in at least `LEAST_TEXTS` of the texts."""
        counts = Counter(feature for text in texts for feature in {*features(_cut(text))})
        common = counts.most_common(MOST_FEATURES)
        frequent = sorted(feature for feature, n in common if n >= LEAST_TEXTS)
        rarity = (math.log((1 + len(texts)) / (1 + counts[feature])) + 1 for feature in frequent)
        return Tfidf(features, {feature: i for i, feature in enumerate(frequent)}, tuple(rarity))

    def rows(self, texts: Sequence[str]) -> Rows:
        """A row of length 1 for each text; of length 0 if it has no known feature."""
        starts, columns, values = list[int](), list[int](), list[float]()
        for text in texts:
            counts = Counter(self.columns[each] for each in self.features(_cut(text)) if each in self.columns)
            row = [(1 + math.log(n)) * self.rarity[column] for column, n in counts.items()]
            length = math.hypot(*row) or 1.0
            starts.append(len(columns))
            columns += counts
            values += [value / length for value in row]
        return Rows(torch.tensor(starts), torch.tensor(columns, dtype=torch.long), torch.tensor(values))


@dataclass(frozen=True, slots=True)
class Baseline:
    """A fitted baseline."""

    tfidf: Tfidf
    weights_FY: Tensor
    bias_Y: Tensor

    def labels(self, texts: Sequence[str]) -> list[int]:
        """The number of the likeliest label of each text."""
        scores_BY = self.tfidf.rows(texts).times(self.weights_FY) + self.bias_Y
        found: list[int] = scores_BY.argmax(1).tolist()
        return found

    def accuracy(self, held_out: Texts) -> float:
        """Share of texts that are given their label."""
        texts, right = held_out
        given = self.labels(texts)
        return sum(a == b for a, b in zip(given, right, strict=True)) / len(right)


def fit_baseline(train: Texts, valid: Texts, n_labels: int) -> Baseline:
    """The best baseline by its accuracy on the validation set."""
    texts, labels = train[0][:MOST_TEXTS], train[1][:MOST_TEXTS]
    tried = []
    for features in (words, runs):
        tfidf = Tfidf.of(texts, features)
        rows = tfidf.rows(texts)
        width = max(1, len(tfidf.columns))
        tried += [Baseline(tfidf, *_regression(rows, width, labels, n_labels, c)) for c in STRENGTHS]
    return max(tried, key=lambda each: each.accuracy(valid))


def _regression(
    rows: Rows, width: int, labels: Sequence[int], n_labels: int, strength: float
) -> tuple[Tensor, Tensor]:
    """Logistic regression with a quadratic penalty on its weights, by L-BFGS."""
    right = torch.tensor(labels)
    weights_FY = torch.zeros(width, n_labels, requires_grad=True)
    bias_Y = torch.zeros(n_labels, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights_FY, bias_Y], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        scores_BY = rows.times(weights_FY) + bias_Y
        loss = F.cross_entropy(scores_BY, right, reduction="sum") + weights_FY.square().sum() / (2 * strength)
        loss.backward()
        return loss

    optimizer.step(closure)
    return weights_FY.detach(), bias_Y.detach()


def _cut(text: str) -> str:
    return text[:MOST_CHARACTERS]
