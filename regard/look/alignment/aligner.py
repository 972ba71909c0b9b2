"""Links between the words of texts and their translations, by the heads that were chosen for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.engine.results import WordLink
from regard.look.alignment.alignment import shares_of_words, words_of
from regard.look.alignment.attended import Ids, attended
from regard.look.alignment.heads import AligningHeads
from regard.look.trace.tokens import Tokens, Word, read_tokens
from regard.model.transformer import Transformer
from regard.text.vocabularies.vocabulary import Vocabulary


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
