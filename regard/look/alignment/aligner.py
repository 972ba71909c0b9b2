"""Aligning words by attention heads, and choosing these heads by links learned from pairs of texts.

`link_words` learns links by counting: IBM's first model (Brown et al., 1993) with a null word and, in later
rounds, a preference for the diagonal (Dyer et al., 2013), in both directions. A link counts where the two
directions agree: some are missed, few are wrong. `measure_heads` chooses the heads that find them best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import get_args

import numpy as np
import torch

from regard.engine.results import WordLink
from regard.errors import RequestError
from regard.look.alignment.alignment import (
    AligningHeads,
    Head,
    Link,
    Rows,
    best_heads,
    shares_of_words,
    words_of,
)
from regard.look.trace.blocks import address_of
from regard.look.trace.tokens import Tokens, Word, read_tokens
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.text.vocabularies.vocabulary import Vocabulary

Words = Sequence[str]
Ids = Sequence[int]
Pairs = Sequence[tuple[Sequence[int] | np.ndarray, ...]]
HeadChoice = tuple[Rows, tuple[Head, ...]]
"""Heads to average, and the rows in which to read them."""

EM_ROUNDS = 5
"""Rounds of expectation maximisation without the diagonal, and again with it."""
NULL_SHARE = 0.08
"""Probability that a word comes from the null word."""
TENSION = 4.0
"""Penalty on the distance from the diagonal."""
SMOOTHING = 0.01
"""Initial value of every count: a word seen once says little."""
BATCH = 32
"""Pairs in one batch."""
MEASURED = 1000
"""Most pairs that heads are measured on: half for the choice, half for its accuracy."""
TOGETHER = 4
"""Most heads that are averaged."""
LONGEST_TEXT = 64
"""Tokens; longer texts are skipped: they cost much and add little."""


def link_words(pairs: Sequence[tuple[Words, Words]]) -> list[frozenset[Link]]:
    """The links of each pair of lists of words; more pairs give better links."""
    forward = _linked(pairs)
    backward = _linked([(outputs, inputs) for inputs, outputs in pairs])
    return [frozenset(one) & {(i, j) for j, i in other} for one, other in zip(forward, backward, strict=True)]


def _linked(pairs: Sequence[tuple[Words, Words]]) -> list[set[Link]]:
    """For each word of the outputs the word of the inputs that it comes from, unless it is the null word."""
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
    """Every word of the outputs with every word of its inputs and the null word, for all pairs.

    Letters: `N` words of all outputs, `C` cells, `E` entries: distinct pairs of words in the cells.
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
        """Index of the word in its inputs; -1 for the null word."""
        # The null word comes before the inputs of each pair, and has number 0 everywhere.
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
        """The probability of each cell to be a link, after all rounds."""
        is_null_C = self.inputs_C < 0
        share_E = np.ones(len(self.word_E))
        likelihood_C = share_E[self.entry_C]
        for tension in (0.0, TENSION):
            near_C = np.where(is_null_C, 0.0, np.exp(-tension * self.distance_C))
            near_C *= (1 - NULL_SHARE) / self._sums(near_C).clip(1e-12)
            near_C[is_null_C] = NULL_SHARE
            for _ in range(EM_ROUNDS):
                likelihood_C = share_E[self.entry_C] * near_C
                likelihood_C /= self._sums(likelihood_C)
                counts_E = np.bincount(self.entry_C, likelihood_C, len(share_E)) + SMOOTHING
                share_E = counts_E / np.bincount(self.word_E, counts_E)[self.word_E]
        return likelihood_C

    def _sums(self, values_C: np.ndarray) -> np.ndarray:
        """For each cell the sum over the cells of its output word."""
        sums = np.bincount(self.outputs_C, values_C, len(self.starts_N))[self.outputs_C]
        return np.asarray(sums)


def _places(lengths: np.ndarray) -> np.ndarray:
    """0, 1, …, starting again for each length."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths)


def _numbered(words: Iterable[str]) -> np.ndarray:
    """A number for each word, ignoring case."""
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(word.casefold(), len(numbers)) for word in words]
    return np.array(found, dtype=np.int64)


@torch.inference_mode()
def cross_attention(
    model: Transformer, pairs: Sequence[tuple[Ids, Ids]], layers: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
    """Cross-attention of each pair in some layers: its index and (layers, heads, queries, keys).

    Ids are as the two stacks read them, with start and end tokens. Pairs come sorted by length.
    """
    device = model.output_probabilities.weight.device
    addresses = [f"{address_of('cross', layer)}.weights" for layer in layers]
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        inputs, outputs = (pack([pairs[i][side] for i in batch], device) for side in (0, 1))
        with recording(model, keep=set(addresses).__contains__) as seen:
            model.decode(outputs, model.encode(inputs))
        weights = torch.stack([seen[address] for address in addresses], dim=1).float().cpu().numpy()
        for i, of_pair in zip(batch, weights, strict=True):
            yield i, of_pair[:, :, : len(pairs[i][1]), : len(pairs[i][0])]


class WordAligner:
    """Aligns pairs of texts in one pass over both."""

    def __init__(self, model: Transformer, subwords: Vocabulary, heads: AligningHeads) -> None:
        self._model, self._subwords, self._heads = model, subwords, heads
        self.about = describe_heads(heads)

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair of texts: for each word written, the word with the most attention."""
        bos, eos = self._subwords.bos_id, self._subwords.eos_id
        read = [((*inputs, eos), (bos, *outputs)) for inputs, outputs in pairs]
        layers = sorted({layer for layer, _ in self._heads.heads})
        places = [(layers.index(layer), head) for layer, head in self._heads.heads]
        found: list[tuple[WordLink, ...]] = [()] * len(pairs)
        for i, weights in cross_attention(self._model, read, layers):
            mean_LM = np.mean([weights[place] for place in places], axis=0)
            found[i] = self._links(mean_LM, *(read_tokens(self._subwords, ids) for ids in read[i]))
        return found

    def _links(self, weights_LM: np.ndarray, inputs: Tokens, outputs: Tokens) -> tuple[WordLink, ...]:
        input_words, output_words = words_of(inputs), words_of(outputs)
        if not input_words or not output_words:
            return ()
        shares = shares_of_words(weights_LM, input_words, output_words, self._heads.rows)
        return tuple(
            _link((inputs, input_words[best]), (outputs, word), float(row[best]))
            for word, row, best in zip(output_words, shares, shares.argmax(axis=1).tolist(), strict=True)
        )


def describe_heads(heads: AligningHeads) -> str:
    """The heads of an alignment and their accuracy, in words."""
    names = ", ".join(f"{layer}.{head}" for layer, head in heads.heads)
    if heads.measured:
        return f"heads {names} (layer.head), which found {heads.accuracy:.0%} of known links"
    return f"heads {names} (layer.head), not measured: LoadedModel.measure_alignment finds better ones"


def _link(source: tuple[Tokens, Word], target: tuple[Tokens, Word], strength: float) -> WordLink:
    (source_start, source_end), (target_start, target_end) = _span(*source), _span(*target)
    return WordLink(
        source=source[1].text,
        target=target[1].text,
        source_start=source_start,
        source_end=source_end,
        target_start=target_start,
        target_end=target_end,
        strength=strength,
    )


def _span(side: Tokens, word: Word) -> tuple[int, int]:
    """The characters of a word, without a leading space."""
    start, end = side[word.first].start, side[word.last].end
    return start + len(side.text[start:end]) - len(side.text[start:end].lstrip()), end


@dataclass(frozen=True, slots=True)
class _TextPair:
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_words: tuple[Word, ...]
    output_words: tuple[Word, ...]

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """The texts of the words of both sides."""
        return [word.text for word in self.input_words], [word.text for word in self.output_words]


@dataclass(frozen=True, slots=True)
class _Linked:
    pair: _TextPair
    links: frozenset[Link]


def measure_heads(
    model: Transformer,
    subwords: Vocabulary,
    held_out: Pairs,
    others: Pairs = (),
) -> AligningHeads:
    """Choose the heads of cross-attention that align best.

    Args:
        model: in evaluation mode, on any device.
        subwords: its vocabulary.
        held_out: pairs that it was not trained on, as token ids without start and end tokens.
        others: more pairs to learn links from, such as training pairs.

    Raises:
        RequestError: there are too few pairs to learn links from.
    """
    pairs = [pair for pair in _read(subwords, held_out) if pair.input_words and pair.output_words][:MEASURED]
    known = link_words([pair.words for pair in (*pairs, *_read(subwords, others))])
    linked = [_Linked(pair, links) for pair, links in zip(pairs, known, strict=False) if links]
    if len(linked) < 2:
        n = len(held_out) + len(others)
        raise RequestError(f"no links can be learned from {n:,} pairs: give more", code="too_few_pairs")
    choosing, testing = linked[::2], linked[1::2]
    shape = (model.config.decoder_layers, model.config.n_heads)
    alone: list[HeadChoice] = [(rows, (head,)) for rows in get_args(Rows) for head in np.ndindex(*shape)]
    accuracy = _accuracy(model, choosing, alone).reshape(-1, *shape)
    tried: list[HeadChoice] = []
    for rows, of_heads in zip(get_args(Rows), accuracy, strict=True):
        ranked = best_heads(of_heads, TOGETHER)
        tried += [(rows, ranked[:n]) for n in range(1, len(ranked) + 1)]
    rows, heads = tried[int(_accuracy(model, choosing, tried).argmax())]
    (measured,) = _accuracy(model, testing, [(rows, heads)])
    of_each_head = accuracy[get_args(Rows).index(rows)]
    return AligningHeads(
        heads=heads,
        rows=rows,
        accuracy=round(float(measured), 4),
        n_pairs=len(testing),
        of_each_head=tuple(tuple(round(float(each), 4) for each in layer) for layer in of_each_head),
    )


def _read(subwords: Vocabulary, pairs: Pairs) -> list[_TextPair]:
    """The pairs that are short enough, with start and end tokens."""
    found = []
    for inputs, outputs in pairs:
        if max(len(inputs), len(outputs)) >= LONGEST_TEXT:
            continue
        read = (*map(int, inputs), subwords.eos_id), (subwords.bos_id, *map(int, outputs))
        words = (words_of(read_tokens(subwords, ids)) for ids in read)
        found.append(_TextPair(*read, *words))
    return found


def _accuracy(model: Transformer, linked: Sequence[_Linked], choices: Sequence[HeadChoice]) -> np.ndarray:
    """(choices,): the share of the known links that each choice finds.

    A word of the outputs has at most one known link. Over the words that have one, this share is precision,
    recall and 1 - AER at once.
    """
    right = np.zeros(len(choices))
    read = [(each.pair.inputs, each.pair.outputs) for each in linked]
    for place, weights in cross_attention(model, read, range(model.config.decoder_layers)):
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
