"""The losses of labels, as the encoder alone gives them: one to a text, or any number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.examples import LabelledBatch, TaggedBatch
from regard.model.classifier import Classifier

if TYPE_CHECKING:
    from regard.bundle.weights import Model


class _OfLabels(nn.Module):
    """A classifier, and how much each of its labels counts."""

    weights_C: Tensor

    def __init__(self, model: Model, smoothing: float, weights_C: Tensor) -> None:
        super().__init__()
        assert isinstance(model, Classifier), "labels are read off the encoder alone"
        self.model, self.smoothing = model, smoothing
        self.register_buffer("weights_C", weights_C, persistent=False)


class LabelObjective(_OfLabels):
    """How wrong a classifier is, summed over the texts of a batch."""

    def forward(self, batch: LabelledBatch) -> tuple[Tensor, Tensor]:
        """What is minimised; and, to be told, that, the likelihood and the hits, neither of them weighted."""
        logits_BC = self.model(batch.inputs).float()
        counted_B = batch.counted_B.to(logits_BC.dtype)
        nll_B = F.cross_entropy(logits_BC, batch.labels_B, reduction="none")
        smoothed_B = nll_B
        if self.training:
            smoothed_B = F.cross_entropy(
                logits_BC, batch.labels_B, reduction="none", label_smoothing=self.smoothing
            )
            smoothed_B = smoothed_B * self.weights_C.to(logits_BC.device)[batch.labels_B]
        hits_B = (logits_BC.argmax(dim=-1) == batch.labels_B).float()
        smoothed, nll, hits = ((each * counted_B).sum() for each in (smoothed_B, nll_B, hits_B))
        return smoothed, torch.stack([smoothed, nll, hits]).detach()


class TagObjective(_OfLabels):
    """How wrong a classifier is whose labels do not shut each other out, summed over decisions."""

    def forward(self, batch: TaggedBatch) -> tuple[Tensor, Tensor]:
        """What is minimised; and, to be told, that, the likelihood and the hits, neither of them weighted."""
        logits_BC = self.model(batch.inputs).float()
        labels_BC = batch.labels_BC
        nll_BC = F.binary_cross_entropy_with_logits(logits_BC, labels_BC, reduction="none")
        smoothed_BC = nll_BC
        if self.training:
            smoothed_BC = F.binary_cross_entropy_with_logits(
                logits_BC,
                labels_BC * (1 - self.smoothing) + self.smoothing / 2,
                pos_weight=self.weights_C.to(logits_BC.device),
                reduction="none",
            )
        hits_BC = ((logits_BC > 0) == (labels_BC > 0)).float()
        counted_B1 = batch.counted_B[:, None].to(logits_BC.dtype)
        smoothed, nll, hits = ((each * counted_B1).sum() for each in (smoothed_BC, nll_BC, hits_BC))
        return smoothed, torch.stack([smoothed, nll, hits]).detach()
