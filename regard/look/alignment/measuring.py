"""Which heads align best, measured on pairs of texts: their links are learned from the pairs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from regard.errors import RequestError
from regard.look.alignment.alignment import Head, Rows, best_heads, shares_of_words, words_of
from regard.look.alignment.attended import attended
from regard.look.alignment.heads import AligningHeads
from regard.look.alignment.word_links import Link, link_words
from regard.look.trace.tokens import Word, read_tokens
from regard.model.transformer import Transformer
from regard.text.vocabularies.vocabulary import Vocabulary

Pairs = Sequence[tuple[Sequence[int] | np.ndarray, ...]]
Choice = tuple[Rows, tuple[Head, ...]]
"""Heads to average, and where to read them."""

MEASURED = 1000
"""Pairs that heads are measured on, at most: half of them choose, half tell how good the choice is."""
TOGETHER = 4
"""Heads that are averaged, at most."""
LONGEST = 64
"""Tokens of a text; longer ones add much work and little knowledge."""


@dataclass(frozen=True, slots=True)
class _Pair:
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_words: tuple[Word, ...]
    output_words: tuple[Word, ...]

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """Both sides, as the aligner reads them."""
        return [word.text for word in self.input_words], [word.text for word in self.output_words]


@dataclass(frozen=True, slots=True)
class _Linked:
    pair: _Pair
    links: frozenset[Link]


def measure_heads(
    model: Transformer,
    subwords: Vocabulary,
    held_out: Pairs,
    others: Pairs = (),
) -> AligningHeads:
    """Choose the heads of cross-attention that align best.

    Args:
        model: out of training, on any device.
        subwords: its vocabulary.
        held_out: pairs that it has not learned from, as token ids without those that start and end them.
        others: more pairs to learn links from, such as some that it has learned from.

    Raises:
        RequestError: there are too few pairs to learn any link from.
    """
    pairs = [pair for pair in _read(subwords, held_out) if pair.input_words and pair.output_words][:MEASURED]
    known = link_words([pair.words for pair in (*pairs, *_read(subwords, others))])
    linked = [_Linked(pair, links) for pair, links in zip(pairs, known, strict=False) if links]
    if len(linked) < 2:
        raise RequestError(f"no links can be learned from {len(held_out) + len(others):,} pairs: give more")
    choosing, telling = linked[::2], linked[1::2]
    shape = (model.config.decoder_layers, model.config.n_heads)
    alone: list[Choice] = [(rows, (head,)) for rows in get_args(Rows) for head in np.ndindex(*shape)]
    accuracy = _accuracy(model, choosing, alone).reshape(-1, *shape)
    tried: list[Choice] = []
    for rows, of_heads in zip(get_args(Rows), accuracy, strict=True):
        ranked = best_heads(of_heads, TOGETHER)
        tried += [(rows, ranked[:n]) for n in range(1, len(ranked) + 1)]
    rows, heads = tried[int(_accuracy(model, choosing, tried).argmax())]
    (told,) = _accuracy(model, telling, [(rows, heads)])
    of_each_head = accuracy[get_args(Rows).index(rows)]
    return AligningHeads(
        heads=heads,
        rows=rows,
        accuracy=round(float(told), 4),
        n_pairs=len(telling),
        of_each_head=tuple(tuple(round(float(each), 4) for each in layer) for layer in of_each_head),
    )


def _read(subwords: Vocabulary, pairs: Pairs) -> list[_Pair]:
    """The pairs that are short enough, as the model reads them."""
    found = []
    for inputs, outputs in pairs:
        if max(len(inputs), len(outputs)) >= LONGEST:
            continue
        read = (*map(int, inputs), subwords.eos_id), (subwords.bos_id, *map(int, outputs))
        words = (words_of(read_tokens(subwords, ids)) for ids in read)
        found.append(_Pair(*read, *words))
    return found


def _accuracy(model: Transformer, linked: Sequence[_Linked], choices: Sequence[Choice]) -> np.ndarray:
    """(choices,): the share of the known links that each choice finds.

    Links are known where two directions agree, so a word of the outputs has one or none. Of the words that
    have one, this share is precision, recall and 1 - AER at once.
    """
    right = np.zeros(len(choices))
    read = [(each.pair.inputs, each.pair.outputs) for each in linked]
    for place, weights in attended(model, read, range(model.config.decoder_layers)):
        each, pair = linked[place], linked[place].pair
        by_rows = {
            rows: shares_of_words(weights, pair.input_words, pair.output_words, rows)
            for rows in {rows for rows, _ in choices}
        }
        inputs, outputs = np.array(sorted(each.links)).T
        for i, (rows, heads) in enumerate(choices):
            shares = np.mean([by_rows[rows][head] for head in heads], axis=0)
            right[i] += (shares[outputs].argmax(axis=-1) == inputs).sum()
    return right / sum(len(each.links) for each in linked)
