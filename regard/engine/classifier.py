"""Classification: the encoder alone, with the label read off [CLS]; one model or an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.bundle.bundle import Description, read_labels
from regard.engine.loading import load_onto, subword_model
from regard.engine.options import ClassifyOptions
from regard.engine.results import Classification
from regard.errors import BundleError, RequestError, TooLongError
from regard.packing import pack
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.vocabulary import Vocabulary, unseen_characters

if TYPE_CHECKING:
    from regard.model.classifier import Classifier

BATCH_TOKENS = 8192
"""Maximum number of tokens in a batch."""


@dataclass(frozen=True, eq=False)
class TextClassifier:
    """A classifier of texts. May be used by several threads."""

    model: Classifier
    subwords: Vocabulary
    labels: tuple[str, ...]
    several: bool = False
    """Whether a text may have several labels, with independent probabilities."""

    @staticmethod
    def load(described: Description, device: str = "auto") -> TextClassifier:
        """Read a classifier from a model folder.

        Raises:
            BundleError: the folder is damaged or without subwords.
        """
        model = load_onto(described.folder, device).model
        return TextClassifier(
            model,  # type: ignore[arg-type]  # the caller knows the task
            read_vocabulary(subword_model(described)),
            read_labels(described.folder, described.config.n_labels),
            described.task.label_separator is not None,
        )

    def classify(self, texts: Sequence[str], options: ClassifyOptions) -> list[Classification]:
        """The label of each text.

        Raises:
            RequestError: a text is empty, not a string, or too long.
        """
        read = [self._read(text, i, options) for i, text in enumerate(texts, start=1)]
        probs_BY = self.probabilities([ids for ids, _ in read])
        return [
            _classification(
                text,
                dict(zip(self.labels, row, strict=True)),
                options,
                several=self.several,
                cut=cut,
                unseen=unseen_characters(self.subwords, text),
            )
            for text, (_, cut), row in zip(texts, read, probs_BY.tolist(), strict=True)
        ]

    def raw_scores(self, texts: Sequence[str], options: ClassifyOptions) -> list[dict[str, float]]:
        """The logit of each label for each text.

        Raises:
            RequestError: see `classify`.
        """
        read = [self._read(text, i, options)[0] for i, text in enumerate(texts, start=1)]
        return [dict(zip(self.labels, row, strict=True)) for row in self._logits(read).tolist()]

    def probabilities(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """The probability of every label for each text in token ids, (texts, labels)."""
        logits_BY = torch.from_numpy(self._logits(texts))
        probs_BY = torch.sigmoid(logits_BY) if self.several else torch.softmax(logits_BY, dim=-1)
        found: np.ndarray = probs_BY.double().numpy()
        return found

    def n_tokens(self, text: str) -> int:
        """Number of tokens that are read for a text, including [CLS]."""
        return len(self.subwords.encode_one(text)) + 1

    @torch.inference_mode()
    def _logits(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        self.model.eval()
        device = self.model.output_probabilities.weight.device
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        logits_BY = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        for batch in _batches(order, [len(texts[i]) + 1 for i in order]):
            packed = pack([[self.subwords.cls_id, *texts[i]] for i in batch], device)
            logits_BY[batch] = self.model(packed).float().cpu().numpy()
        return logits_BY

    def _read(self, text: str, number: int, options: ClassifyOptions) -> tuple[list[int], int]:
        """The tokens of a text that are read, and the number of tokens that are cut off."""
        if not isinstance(text, str):
            raise RequestError(f"text {number} is a {type(text).__name__}, not a string", code="not_a_text")
        ids = self.subwords.encode_one(text)
        if not text.strip():
            raise RequestError(f"text {number} is empty: there is nothing to label", code="empty_text")
        room = self.model.config.max_length - 1
        most = room - len(self.subwords.closing)
        if len(ids) > most and options.too_long == "error":
            raise TooLongError(
                f"text {number} has {len(ids):,} tokens; the model reads at most {most:,}. Shorten it, or "
                "cut it (`too_long='cut'`)",
                code="too_long",
            )
        return self.subwords.closed(ids, room).tolist(), max(0, len(ids) - most)


@dataclass(frozen=True, eq=False)
class ClassifierEnsemble:
    """Classifiers with the same labels, each with its own vocabulary; probabilities are averaged."""

    members: tuple[TextClassifier, ...]

    @staticmethod
    def load(described: Sequence[Description], device: str = "auto") -> ClassifierEnsemble:
        """Read an ensemble from several model folders.

        Raises:
            BundleError: a folder is damaged, or its labels differ from those of the first.
        """
        members = tuple(TextClassifier.load(each, device) for each in described)
        first = members[0]
        for each, member in zip(described, members, strict=True):
            if set(member.labels) != set(first.labels) or member.several != first.several:
                raise BundleError(
                    f"has other labels than {described[0].folder}: an ensemble needs the same labels",
                    str(each.folder),
                    code="ensemble_mismatch",
                )
        return ClassifierEnsemble(members)

    def classify(self, texts: Sequence[str], options: ClassifyOptions) -> list[Classification]:
        """The label of each text.

        Raises:
            RequestError: a text is empty, not a string, or too long for a member.
        """
        by_member = [member.classify(texts, options) for member in self.members]
        return [self._mean(of_text, options) for of_text in zip(*by_member, strict=True)]

    def raw_scores(self, texts: Sequence[str], options: ClassifyOptions) -> list[dict[str, float]]:
        """The mean logit of each label for each text.

        Raises:
            RequestError: see `classify`.
        """
        by_member = [member.raw_scores(texts, options) for member in self.members]
        return [
            {label: sum(each[label] for each in of_text) / len(of_text) for label in of_text[0]}
            for of_text in zip(*by_member, strict=True)
        ]

    def n_tokens(self, text: str) -> int:
        """Number of tokens that all members read for a text."""
        return sum(member.n_tokens(text) for member in self.members)

    def _mean(self, results: Sequence[Classification], options: ClassifyOptions) -> Classification:
        mean = {
            label: sum(each.probabilities[label] for each in results) / len(results)
            for label in self.members[0].labels
        }
        return _classification(
            results[0].text,
            mean,
            options,
            several=self.members[0].several,
            cut=max(each.cut for each in results),
            unseen=tuple(dict.fromkeys(character for each in results for character in each.unseen)),
        )


def _classification(
    text: str,
    probabilities: Mapping[str, float],
    options: ClassifyOptions,
    *,
    several: bool,
    cut: int,
    unseen: tuple[str, ...],
) -> Classification:
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
    """Texts in this order, in batches of at most `BATCH_TOKENS`."""
    batches: list[list[int]] = []
    n_tokens = 0
    for i, length in zip(order, lengths, strict=True):
        if not batches or n_tokens + length > BATCH_TOKENS:
            batches.append([])
            n_tokens = 0
        batches[-1].append(i)
        n_tokens += length
    return batches
