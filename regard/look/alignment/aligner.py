"""Links between the words of texts and their translations, by the heads that were chosen for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch

from regard.engine.results import WordLink
from regard.errors import RequestError
from regard.look.alignment.alignment import AligningHeads, Head, Rows, best_heads, shares_of_words, words_of
from regard.look.alignment.word_links import Link, link_words
from regard.look.trace.blocks import address_of
from regard.look.trace.tokens import Tokens, Word, read_tokens
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.packing import pack
from regard.text.vocabularies.vocabulary import Vocabulary

Ids = Sequence[int]
BATCH = 32
"""Pairs that the model reads together."""


@torch.inference_mode()
def attended(
    model: Transformer, pairs: Sequence[tuple[Ids, Ids]], layers: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
    """The cross-attention of each pair in these layers: its number and (layers, heads, queries, keys).

    Ids are as the two stacks read them, ends included. Pairs of like length come together, not in order.
    """
    device = model.output_probabilities.weight.device
    wanted = [f"{address_of('cross', layer)}.weights" for layer in layers]
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        inputs, outputs = (pack([pairs[i][side] for i in batch], device) for side in (0, 1))
        with recording(model, keep=set(wanted).__contains__) as seen:
            model.decode(outputs, model.encode(inputs))
        weights = torch.stack([seen[address] for address in wanted], dim=1).float().cpu().numpy()
        for i, of_pair in zip(batch, weights, strict=True):
            yield i, of_pair[:, :, : len(pairs[i][1]), : len(pairs[i][0])]


class WordAligner:
    """Aligns pairs in one pass over what is already written."""

    def __init__(self, model: Transformer, subwords: Vocabulary, heads: AligningHeads) -> None:
        self._model, self._subwords, self._heads = model, subwords, heads
        self.about = described(heads)

    def __call__(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[WordLink, ...]]:
        """The links of each pair of inputs and outputs: of each word written, the word that drew it most."""
        bos, eos = self._subwords.bos_id, self._subwords.eos_id
        read = [((*inputs, eos), (bos, *outputs)) for inputs, outputs in pairs]
        layers = sorted({layer for layer, _ in self._heads.heads})
        places = [(layers.index(layer), head) for layer, head in self._heads.heads]
        found: list[tuple[WordLink, ...]] = [()] * len(pairs)
        for i, weights in attended(self._model, read, layers):
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


def described(heads: AligningHeads) -> str:
    """What an alignment goes by, for people."""
    names = ", ".join(f"{layer}.{head}" for layer, head in heads.heads)
    if heads.measured:
        return f"heads {names} (layer.head), which found {heads.accuracy:.0%} of known links"
    return f"heads {names} (layer.head), unmeasured: LoadedModel.measure_alignment finds better ones"


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
    """The characters of a word, without the space before it."""
    start, end = side[word.first].start, side[word.last].end
    return start + len(side.text[start:end]) - len(side.text[start:end].lstrip()), end


Pairs = Sequence[tuple[Sequence[int] | np.ndarray, ...]]
HeadChoice = tuple[Rows, tuple[Head, ...]]
"""Heads to average, and where to read them."""

MEASURED = 1000
"""Pairs that heads are measured on, at most: half of them choose, half tell how good the choice is."""
TOGETHER = 4
"""Heads that are averaged, at most."""
LONGEST_TEXT = 64
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
    alone: list[HeadChoice] = [(rows, (head,)) for rows in get_args(Rows) for head in np.ndindex(*shape)]
    accuracy = _accuracy(model, choosing, alone).reshape(-1, *shape)
    tried: list[HeadChoice] = []
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
        if max(len(inputs), len(outputs)) >= LONGEST_TEXT:
            continue
        read = (*map(int, inputs), subwords.eos_id), (subwords.bos_id, *map(int, outputs))
        words = (words_of(read_tokens(subwords, ids)) for ids in read)
        found.append(_Pair(*read, *words))
    return found


def _accuracy(model: Transformer, linked: Sequence[_Linked], choices: Sequence[HeadChoice]) -> np.ndarray:
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
