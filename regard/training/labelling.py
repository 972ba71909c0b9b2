"""The losses of labels, as the encoder alone gives them: one to a text, or any number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.data.batches.examples import LabelledBatch, TaggedBatch
from regard.model.classifier import Classifier
from regard.packing import Packed
from regard.training.guessing import BLANK

if TYPE_CHECKING:
    from regard.bundle.weights import Model

B = TypeVar("B", LabelledBatch, TaggedBatch)


class _OfLabels(nn.Module, ABC, Generic[B]):
    """A classifier and how wrong it is, summed over the texts of a batch."""

    weights_C: Tensor
    """How much each label counts."""

    def __init__(self, model: Model, training: TrainingConfig, weights_C: Tensor) -> None:
        super().__init__()
        assert isinstance(model, Classifier), "labels are read off the encoder alone"
        self.model, self.smoothing = model, training.label_smoothing
        self.hidden_tokens, self.agreement = training.hidden_tokens, training.agreement
        self.register_buffer("weights_C", weights_C, persistent=False)

    def forward(self, batch: B) -> tuple[Tensor, Tensor]:
        """What is minimised; and, to be told, that, the likelihood and the hits, neither of them weighted."""
        logits_BC = self._logits(batch.inputs)
        nll_B = self._nll(logits_BC, batch)
        minimised_B = self._minimised(logits_BC, batch) if self.training else nll_B
        counted_B = batch.counted_B.to(logits_BC.dtype)
        each = minimised_B, nll_B, self._hits(logits_BC, batch).float()
        minimised, nll, hits = ((each_B * counted_B).sum() for each_B in each)
        return minimised, torch.stack([minimised, nll, hits]).detach()

    def _logits(self, inputs: Packed) -> Tensor:
        """Of every label; in training, of texts of which some tokens are hidden (Departure 14)."""
        if self.training and self.hidden_tokens:
            ids_N, starts_B = inputs.ids_N, inputs.boundaries.starts_B
            hidden_N = torch.rand(len(ids_N), device=ids_N.device) < self.hidden_tokens
            hidden_N[starts_B] = False  # [CLS] is where the answer is read
            inputs = Packed(ids_N.masked_fill(hidden_N, BLANK), inputs.boundaries)
        logits_BC: Tensor = self.model(inputs).float()
        return logits_BC

    def _minimised(self, logits_BC: Tensor, batch: B) -> Tensor:
        """The smoothed loss; of two answers, where they must agree, and how far they are apart."""
        smoothed_B = self._smoothed(logits_BC, batch)
        if not self.agreement:
            return smoothed_B
        again_BC = self._logits(batch.inputs)  # Departure 15: other dropout, other hidden tokens
        mean_B = (smoothed_B + self._smoothed(again_BC, batch)) / 2
        return mean_B + self.agreement * self._divergence(logits_BC, again_BC)

    @abstractmethod
    def _nll(self, logits_BC: Tensor, batch: B) -> Tensor: ...

    @abstractmethod
    def _smoothed(self, logits_BC: Tensor, batch: B) -> Tensor:
        """The likelihood with smoothed labels, weighted."""

    @abstractmethod
    def _hits(self, logits_BC: Tensor, batch: B) -> Tensor: ...

    @abstractmethod
    def _divergence(self, one_BC: Tensor, other_BC: Tensor) -> Tensor:
        """The mean of the two answers' Kullback-Leibler divergences from each other."""


class LabelObjective(_OfLabels[LabelledBatch]):
    """Each text has one label."""

    def _nll(self, logits_BC: Tensor, batch: LabelledBatch) -> Tensor:
        return F.cross_entropy(logits_BC, batch.labels_B, reduction="none")

    def _smoothed(self, logits_BC: Tensor, batch: LabelledBatch) -> Tensor:
        smoothed_B = F.cross_entropy(
            logits_BC, batch.labels_B, reduction="none", label_smoothing=self.smoothing
        )
        return smoothed_B * self.weights_C.to(logits_BC.device)[batch.labels_B]

    def _hits(self, logits_BC: Tensor, batch: LabelledBatch) -> Tensor:
        return logits_BC.argmax(dim=-1) == batch.labels_B

    def _divergence(self, one_BC: Tensor, other_BC: Tensor) -> Tensor:
        one_BC, other_BC = one_BC.log_softmax(dim=-1), other_BC.log_softmax(dim=-1)
        return ((one_BC.exp() - other_BC.exp()) * (one_BC - other_BC)).sum(dim=-1) / 2


class TagObjective(_OfLabels[TaggedBatch]):
    """Each text has any number of labels, which do not shut each other out: every one is decided on."""

    def _nll(self, logits_BC: Tensor, batch: TaggedBatch) -> Tensor:
        nll_BC = F.binary_cross_entropy_with_logits(logits_BC, batch.labels_BC, reduction="none")
        return nll_BC.sum(dim=-1)

    def _smoothed(self, logits_BC: Tensor, batch: TaggedBatch) -> Tensor:
        smoothed_BC = F.binary_cross_entropy_with_logits(
            logits_BC,
            batch.labels_BC * (1 - self.smoothing) + self.smoothing / 2,
            pos_weight=self.weights_C.to(logits_BC.device),
            reduction="none",
        )
        return smoothed_BC.sum(dim=-1)

    def _hits(self, logits_BC: Tensor, batch: TaggedBatch) -> Tensor:
        return ((logits_BC > 0) == (batch.labels_BC > 0)).sum(dim=-1)

    def _divergence(self, one_BC: Tensor, other_BC: Tensor) -> Tensor:
        # With and without the label, summed: the logarithms' difference is that of the logits.
        apart_BC = (one_BC.sigmoid() - other_BC.sigmoid()) * (one_BC - other_BC)
        return apart_BC.sum(dim=-1) / 2
