"""What labels texts: the encoder alone, reading the answer off [CLS]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.bundle.bundle import Description
from regard.bundle.labels import read_labels
from regard.engine.classification import Classification, Labelling
from regard.engine.generation import unseen_characters
from regard.engine.loading import load_onto, subword_model
from regard.errors import RequestError, TooLongError
from regard.model.classifier import Classifier
from regard.packing import pack
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

BATCH_TOKENS = 8192
"""Tokens that are read together."""


@dataclass(frozen=True, eq=False)
class TextClassifier:
    """A classifier of texts. May be used by several threads."""

    model: Classifier
    subwords: Vocabulary
    labels: tuple[str, ...]
    several: bool = False
    """Whether a text may have several labels, each with a probability of its own."""

    @staticmethod
    def of(described: Description, device: str = "auto") -> TextClassifier:
        """Read one from a model folder.

        Raises:
            RequestError: the model is for another task.
            BundleError: the folder is damaged or without subwords.
        """
        if described.config.architecture != "encoder":
            raise RequestError(f"{described.folder}: only a model of the encoder alone labels texts")
        model = load_onto(described.folder, device).model
        assert isinstance(model, Classifier), "the description says so"
        return TextClassifier(
            model,
            read_vocabulary(subword_model(described)),
            read_labels(described.folder, described.config.n_labels),
            described.task.label_separator is not None,
        )

    def classify(self, texts: Sequence[str], options: Labelling) -> list[Classification]:
        """Label texts.

        Raises:
            RequestError: a text is empty or no text; or too long, and that is an error.
        """
        read = [self._read(text, i, options) for i, text in enumerate(texts, start=1)]
        probs_BC = self.probabilities([ids for ids, _ in read])
        return [
            labelled(
                text,
                dict(zip(self.labels, row, strict=True)),
                options,
                several=self.several,
                cut=cut,
                unseen=unseen_characters(self.subwords, text),
            )
            for text, (_, cut), row in zip(texts, read, probs_BC.tolist(), strict=True)
        ]

    def raw_scores(self, texts: Sequence[str], options: Labelling) -> list[dict[str, float]]:
        """What speaks for each label of each text, before it is made a probability.

        Raises:
            RequestError: see `classify`.
        """
        read = [self._read(text, i, options)[0] for i, text in enumerate(texts, start=1)]
        return [dict(zip(self.labels, row, strict=True)) for row in self._logits(read).tolist()]

    def probabilities(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """The probability of every label for each text in tokens, (texts, labels), in their order."""
        logits_BC = torch.from_numpy(self._logits(texts))
        probs_BC = torch.sigmoid(logits_BC) if self.several else torch.softmax(logits_BC, dim=-1)
        found: np.ndarray = probs_BC.double().numpy()
        return found

    @torch.inference_mode()
    def _logits(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        self.model.eval()
        device = self.model.output_probabilities.weight.device
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        for batch in _batches(order, [len(texts[i]) + 1 for i in order]):
            packed = pack([[self.subwords.cls_id, *texts[i]] for i in batch], device)
            found[batch] = self.model(packed).float().cpu().numpy()
        return found

    def _read(self, text: str, number: int, options: Labelling) -> tuple[list[int], int]:
        """The tokens of a text that are read, and how many were cut off."""
        if not isinstance(text, str):
            raise RequestError(f"text {number} is no text but {type(text).__name__}")
        ids = self.subwords.encode_one(text)
        if not text.strip():
            raise RequestError(f"text {number} is empty: there is nothing to label")
        room = self.model.config.max_length - 1
        most = room - len(self.subwords.closing)
        if len(ids) > most and options.too_long == "error":
            told = f"text {number} has {len(ids):,} tokens, and the model reads {most:,} at most"
            raise TooLongError(f"{told}: shorten it, or have it cut (`too_long='cut'`)")
        return self.subwords.closed(ids, room).tolist(), max(0, len(ids) - most)

    def n_tokens(self, text: str) -> int:
        """Tokens that are read to label a text, [CLS] among them."""
        return len(self.subwords.encode_one(text)) + 1


def labelled(
    text: str,
    probabilities: Mapping[str, float],
    options: Labelling,
    *,
    several: bool,
    cut: int,
    unseen: tuple[str, ...],
) -> Classification:
    """What is told of a text whose labels are so probable."""
    ranked = sorted(probabilities.items(), key=lambda each: -each[1])
    probable = tuple(label for label, probability in ranked if probability >= options.threshold)
    return Classification(
        text=text,
        label=ranked[0][0],
        probability=ranked[0][1],
        labels=probable if several else (ranked[0][0],),
        probabilities=dict(ranked),
        cut=cut,
        unseen=unseen,
    )


def _batches(order: list[int], lengths: list[int]) -> list[list[int]]:
    """Texts in this order, as many at a time as fit."""
    batches: list[list[int]] = []
    n_tokens = 0
    for i, length in zip(order, lengths, strict=True):
        if not batches or n_tokens + length > BATCH_TOKENS:
            batches.append([])
            n_tokens = 0
        batches[-1].append(i)
        n_tokens += length
    return batches
