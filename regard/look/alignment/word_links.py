"""Which words of a pair of texts belong together, learned from many pairs by counting alone.

IBM's first model (Brown et al., 1993) with a null word and, once it knows the words, a liking for the
diagonal (Dyer et al., 2013), in both directions. A link counts where the two agree: some are missed, and
hardly any is wrong, which is what somebody needs who has no links to measure with. No torch here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

Link = tuple[int, int]
"""A word of the inputs and a word of the outputs, by their numbers."""
Words = Sequence[str]

ROUNDS = 5
"""Of learning, first without the diagonal and then with it."""
NULL = 0.08
"""How likely a word is to come from none."""
TENSION = 4.0
"""How much a link off the diagonal is disliked."""
SMOOTHING = 0.01
"""What every count starts from: a word seen once says little."""


def link_words(pairs: Sequence[tuple[Words, Words]]) -> list[frozenset[Link]]:
    """The links of each pair of lists of words; the more pairs, the better they are."""
    forward = _linked(pairs)
    backward = _linked([(outputs, inputs) for inputs, outputs in pairs])
    return [frozenset(one) & {(i, j) for j, i in other} for one, other in zip(forward, backward, strict=True)]


def _linked(pairs: Sequence[tuple[Words, Words]]) -> list[set[Link]]:
    """For each word of the outputs the word of the inputs that it comes from, if any."""
    cells = _Cells(pairs)
    likelihood_C = cells.learned()
    best_N = np.maximum.reduceat(likelihood_C, cells.starts_N) if len(cells.starts_N) else likelihood_C
    is_best_C = likelihood_C == best_N[cells.outputs_C]
    outputs_N, first_N = np.unique(cells.outputs_C[is_best_C], return_index=True)
    inputs_N = cells.inputs_C[is_best_C][first_N]
    links: list[set[Link]] = [set() for _ in pairs]
    for output, source in zip(outputs_N.tolist(), inputs_N.tolist(), strict=True):
        if source >= 0:
            links[cells.pair_N[output]].add((source, int(cells.place_N[output])))
    return links


class _Cells:
    """Every word of the outputs beside every word of its inputs and the null word, all pairs in a row.

    Letters: `N` words of all outputs, `C` cells, `E` entries: different pairs of words that meet in a cell.
    """

    def __init__(self, pairs: Sequence[tuple[Words, Words]]) -> None:
        lengths = np.array([(len(inputs), len(outputs)) for inputs, outputs in pairs], dtype=np.int64)
        n_inputs, n_outputs = lengths.reshape(-1, 2).T
        self.pair_N = np.repeat(np.arange(len(pairs)), n_outputs)
        self.place_N = _places(n_outputs)
        width_N = n_inputs[self.pair_N] + 1
        self.starts_N = np.cumsum(width_N) - width_N
        self.outputs_C = np.repeat(np.arange(len(width_N)), width_N)
        self.inputs_C = _places(width_N) - 1
        """The word's number in its inputs; -1 for the null word."""
        # The null word stands before the inputs of each pair, and has number 0 everywhere.
        numbers = _numbered(chain.from_iterable(("", *inputs) for inputs, _ in pairs))
        first = np.cumsum(n_inputs + 1) - (n_inputs + 1)
        words_C = numbers[first[self.pair_N][self.outputs_C] + self.inputs_C + 1]
        written = _numbered(chain.from_iterable(outputs for _, outputs in pairs))
        entries, self.entry_C = np.unique(
            words_C * (written.max(initial=0) + 1) + written[self.outputs_C], return_inverse=True
        )
        self.word_E = entries // (written.max(initial=0) + 1)
        self.distance_C = np.abs(
            (self.inputs_C + 0.5) / n_inputs[self.pair_N][self.outputs_C].clip(1)
            - ((self.place_N + 0.5) / n_outputs[self.pair_N])[self.outputs_C]
        )

    def learned(self) -> np.ndarray:
        """How likely each cell is to be a link, after all rounds."""
        is_null_C = self.inputs_C < 0
        share_E = np.ones(len(self.word_E))
        likelihood_C = share_E[self.entry_C]
        for tension in (0.0, TENSION):
            near_C = np.where(is_null_C, 0.0, np.exp(-tension * self.distance_C))
            near_C *= (1 - NULL) / self._sums(near_C).clip(1e-12)
            near_C[is_null_C] = NULL
            for _ in range(ROUNDS):
                likelihood_C = share_E[self.entry_C] * near_C
                likelihood_C /= self._sums(likelihood_C)
                counts_E = np.bincount(self.entry_C, likelihood_C, len(share_E)) + SMOOTHING
                share_E = counts_E / np.bincount(self.word_E, counts_E)[self.word_E]
        return likelihood_C

    def _sums(self, values_C: np.ndarray) -> np.ndarray:
        """For each cell the sum over its word of the outputs."""
        sums = np.bincount(self.outputs_C, values_C, len(self.starts_N))[self.outputs_C]
        return np.asarray(sums)


def _places(lengths: np.ndarray) -> np.ndarray:
    """0, 1, … anew for each length."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths)


def _numbered(words: Iterable[str]) -> np.ndarray:
    """A number for each word, the same for the same word whatever its case."""
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(word.casefold(), len(numbers)) for word in words]
    return np.array(found, dtype=np.int64)
