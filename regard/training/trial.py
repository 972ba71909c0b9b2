"""A trial at each validation: a few held-out sentences translated and scored, one of them shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from statistics import fmean
from typing import Any

import numpy as np

from regard.config import DecodingConfig, TaskConfig
from regard.data.store import Store
from regard.model.transformer import Transformer
from regard.scores.testing import translate
from regard.scores.translation import score_translations
from regard.text.vocabularies.vocabulary import Vocabulary

SENTENCES = 100
"""Of each direction: enough for a BLEU that moves the right way; few enough that nobody waits for them."""
SHOWN_LENGTH = 14
"""Tokens that the shown sentence has, about: long enough to be hard, short enough for a line."""


class Trial:
    """The same sentences of the validation set, each time."""

    def __init__(
        self, valid: Store, subwords: Vocabulary, task: TaskConfig, decoding: DecodingConfig
    ) -> None:
        self.subwords = subwords
        self.decoding = replace(decoding, beam_size=1)
        self.languages = [target for _, target in task.directions]
        ways = len(self.languages)
        # A pair is there once for each direction, one after the other.
        pairs = np.unique(np.linspace(0, len(valid) // ways - 1, SENTENCES).astype(np.int64))
        self.chosen = [pairs * ways + way for way in range(ways)]
        self.inputs = [_ids(valid, 0, chosen) for chosen in self.chosen]
        self.references = [[subwords.decode(ids) for ids in _ids(valid, 1, chosen)] for chosen in self.chosen]
        lengths = valid.lengths(0, self.chosen[0]).astype(np.int64)
        self.shown = int(np.argmin(np.abs(lengths - SHOWN_LENGTH)))

    def __call__(self, model: Transformer) -> dict[str, Any]:
        """BLEU of quick, greedy translations, the mean of all directions and each; and one of them."""
        was_training = model.training
        outputs = translate(model.eval(), self.subwords, [*chain(*self.inputs)], self.decoding)
        model.train(was_training)
        sample = {
            "source": self.subwords.decode(self.inputs[0][self.shown]),
            "output": outputs[self.shown],
            "reference": self.references[0][self.shown],
        }
        each_output = iter(outputs)
        scores = [
            score_translations([*islice(each_output, len(references))], references, language).bleu
            for references, language in zip(self.references, self.languages, strict=True)
        ]
        each = {f"valid_bleu_{language}": bleu for language, bleu in zip(self.languages, scores, strict=True)}
        return {"valid_bleu": fmean(scores), **(each if len(each) > 1 else {}), "sample": sample}


def _ids(store: Store, side: int, chosen: np.ndarray) -> list[tuple[int, ...]]:
    ids, lengths = store.gather(side, chosen)
    return [tuple(part.tolist()) for part in np.split(ids, np.cumsum(lengths)[:-1])]
