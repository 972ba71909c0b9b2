"""Which word of the inputs a word of the outputs comes from, by the heads that are chosen for it.

The row that predicts a token counts, unless told otherwise: there our small models find two to three times as
many links as in the token's own row, which is the better one elsewhere (Chen et al., 2020). So this choice is
measured as the heads are (`measuring_heads.py`). Words are those of `Tokens.words`, without special tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from regard.errors import RequestError
from regard.look.alignment.gold import AlignmentScore, Gold, alignment_error_rate
from regard.look.alignment.word_links import Link
from regard.look.trace.tokens import Tokens, Word

if TYPE_CHECKING:
    from regard.look.trace.trace import Trace

Head = tuple[int, int]
"""Layer and head of cross-attention."""
Rows = Literal["own", "predicting"]
"""Where a token's attention is read: in its own row, or in the row before, which predicts it."""


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """Words of the outputs, each with its share in every word of the inputs."""

    inputs: tuple[Word, ...]
    outputs: tuple[Word, ...]
    shares: np.ndarray
    """(outputs, inputs); what special tokens of the inputs drew is missing from a row's sum."""

    @property
    def links(self) -> tuple[Link, ...]:
        """For each word of the outputs the word of the inputs with the largest share."""
        return tuple((int(row.argmax()), i) for i, row in enumerate(self.shares))

    @property
    def coverage(self) -> np.ndarray:
        """How much all the outputs together took from each word of the inputs."""
        total: np.ndarray = self.shares.sum(axis=0)
        return total

    @property
    def untouched(self) -> tuple[Word, ...]:
        """Words of the inputs that no output comes from: perhaps left untranslated."""
        linked = {i for i, _ in self.links}
        return tuple(word for i, word in enumerate(self.inputs) if i not in linked)

    def score(self, gold: Gold) -> AlignmentScore:
        """How well the links fit those that are known, which count words as `inputs` and `outputs` do.

        Raises:
            RequestError: one of those names a word that there is not, or none of them is sure.
        """
        for i, j in sorted(gold.possible):
            if i >= len(self.inputs) or j >= len(self.outputs):
                there = f"{len(self.inputs)} words of the inputs and {len(self.outputs)} of the outputs"
                raise RequestError(f"no link {i}-{j}: there are {there}, which count from 0")
        return alignment_error_rate([(self.links, gold)])


def align(trace: Trace, heads: Collection[Head], rows: Rows = "predicting") -> Alignment:
    """Align by the mean of some heads of cross-attention.

    Raises:
        RequestError: no head was chosen, or the model has none of that kind.
    """
    if trace.inputs is None or trace.outputs is None:
        raise RequestError("only an encoder-decoder model aligns outputs with inputs")
    if not heads:
        raise RequestError("choose at least one head to align by, such as (3, 5): layer 3, head 5")
    weights_LM = np.mean([trace.attention("cross", layer, head) for layer, head in heads], axis=0)
    inputs, outputs = words_of(trace.inputs), words_of(trace.outputs)
    if not inputs or not outputs:
        raise RequestError("there is nothing to align: one side has no words")
    return Alignment(inputs, outputs, shares_of_words(weights_LM, inputs, outputs, rows))


def shares_of_words(
    weights: np.ndarray, inputs: Sequence[Word], outputs: Sequence[Word], rows: Rows = "predicting"
) -> np.ndarray:
    """Attention between tokens, (…, queries, keys), as attention between words, (…, outputs, inputs).

    A word draws what its tokens draw, and looks where its tokens look on average.
    """
    shift = 0 if rows == "own" else 1
    columns = [weights[..., word.first : word.last + 1].sum(axis=-1) for word in inputs]
    joined = np.stack(columns, axis=-1)
    looking = [joined[..., word.first - shift : word.last + 1 - shift, :].mean(axis=-2) for word in outputs]
    return np.stack(looking, axis=-2)


def words_of(side: Tokens) -> tuple[Word, ...]:
    """The words that can be aligned."""
    return tuple(word for word in side.words if not side[word.first].special)


def accuracy_of_each_head(
    traces: Sequence[Trace], links: Sequence[Collection[Link]], rows: Rows = "predicting"
) -> np.ndarray:
    """(layers, heads): how often a head's link of a word is one of the links known to be right.

    Words without a known link are not counted.

    Raises:
        RequestError: there is not one collection of links for each trace, or no link at all.
    """
    if not traces or len(traces) != len(links):
        raise RequestError(
            f"{len(traces)} traces and {len(links)} collections of links: one of each is a pair"
        )
    config = traces[0].config
    right = np.zeros((config.decoder_layers, config.n_heads))
    counted = sum(len({output for _, output in known}) for known in links)
    if not counted:
        raise RequestError("no link is known: give pairs of an input word and an output word")
    for trace, known in zip(traces, links, strict=True):
        for layer, head in np.ndindex(right.shape):
            right[layer, head] += len(set(align(trace, [(layer, head)], rows).links) & set(known))
    return right / counted


def best_heads(accuracy: np.ndarray, n: int) -> tuple[Head, ...]:
    """The n heads that align best, the best first."""
    order = np.argsort(-accuracy, axis=None, kind="stable")[:n]
    return tuple((int(i) // accuracy.shape[1], int(i) % accuracy.shape[1]) for i in order)
