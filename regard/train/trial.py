"""A trial at each validation: a few held-out sentences translated and scored, one of them shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from regard.config import DecodingConfig
from regard.data.store import Store
from regard.evaluate.translation import score_translations
from regard.model.transformer import Transformer
from regard.text.subwords import Subwords
from regard.train.testing import translate

SENTENCES = 100
"""Enough for a BLEU that moves the right way; few enough that nobody waits for them."""
SHOWN_LENGTH = 14
"""Tokens that the shown sentence has, about: long enough to be hard, short enough for a line."""


class Trial:
    """The same sentences of the validation set, each time."""

    def __init__(
        self, valid: Store, subwords: Subwords, language: str | None, decoding: DecodingConfig
    ) -> None:
        self.subwords, self.language = subwords, language
        self.decoding = replace(decoding, beam_size=1)
        chosen = np.unique(np.linspace(0, len(valid) - 1, SENTENCES).astype(np.int64))
        self.sources, self.references = (self._texts(valid, side, chosen) for side in (0, 1))
        self.shown = int(np.argmin(np.abs(valid.lengths(0, chosen).astype(np.int64) - SHOWN_LENGTH)))

    def __call__(self, model: Transformer) -> dict[str, Any]:
        """BLEU of quick, greedy translations, and one of them."""
        was_training = model.training
        outputs = translate(model.eval(), self.subwords, self.sources, self.decoding)
        model.train(was_training)
        sample = {
            "source": self.sources[self.shown],
            "output": outputs[self.shown],
            "reference": self.references[self.shown],
        }
        bleu = score_translations(outputs, self.references, self.language).bleu
        return {"valid_bleu": bleu, "sample": sample}

    def _texts(self, store: Store, side: int, chosen: np.ndarray) -> list[str]:
        ids, lengths = store.gather(side, chosen)
        parts = np.split(ids, np.cumsum(lengths)[:-1])
        return [self.subwords.decode(part.tolist()) for part in parts]
