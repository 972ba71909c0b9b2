"""The losses that are learned: of the next token, of labels, and of hidden tokens.

An objective is a module that holds the model. It takes a batch and returns the loss, summed over targets, and
`[smoothed, nll, correct]` for reporting, without a gradient. Compiled, batches must have a fixed size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.data.batches.examples import LabelledBatch, PairsBatch, PlainBatch, TaggedBatch, TextBatch
from regard.loss import is_most_probable, label_smoothed_cross_entropy
from regard.model.classifier import Classifier
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer
from regard.packing import Boundaries, Packed

if TYPE_CHECKING:
    from regard.bundle.weights import Model

COMPILER: dict[str, Any] = {"triton.mix_order_reduction": False}
"""Fusing the norm's two reductions into one kernel was 8% slower on an H200 than two kernels."""
HIDDEN = 0.15
"""Share of tokens that are hidden."""
BLANK = 0
"""`<unk>`, which no text has, replaces a hidden token."""
FIRST_PIECE = 3
"""Ids below are for the unknown token, the start and the end."""
B = TypeVar("B", LabelledBatch, TaggedBatch)


class NextToken(nn.Module):
    """Loss of the next token, for models that write: with the encoder, or with the decoder alone."""

    def __init__(self, model: Model, smoothing: float, *, compiled: bool = False) -> None:
        super().__init__()
        assert isinstance(model, Transformer | LanguageModel), "a model that writes has a decoder"
        self.model, self.smoothing, self.compiled = model, smoothing, compiled
        if compiled:  # torch.compile alone takes a second, even before it compiles
            self._fixed = torch.compile(self._of_tensors, dynamic=False, fullgraph=True, options=COMPILER)

    def forward(self, batch: PairsBatch | TextBatch) -> tuple[Tensor, Tensor]:
        """The loss of a batch on the model's device, and the sums to report."""
        if not self.compiled or not self.training:
            return self._of_batch(batch.packs, batch.targets_T, batch.counted_T)
        assert batch.counted_T is not None, "a batch of fixed size has filler, which does not count"
        tensors = [tensor for pack in batch.packs for tensor in tensors_of(pack)]
        return self._fixed(*tensors, batch.targets_T, batch.counted_T)

    def _of_batch(
        self, packs: Sequence[Packed], targets_T: Tensor, counted_T: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        states_TD = self._states(*packs)
        output = self.model.output_probabilities
        smoothing = self.smoothing if self.training else 0.0
        loss = label_smoothed_cross_entropy(
            states_TD, output.weight, targets_T, smoothing, bias_V=output.bias, counted_N=counted_T
        )
        # torch 2.11 loses the gradient of a compiled function whose other outputs are not differentiable.
        # Sharded modules warn where they return a view, and the loss is one.
        return loss.smoothed.clone(), torch.stack([part.detach() for part in loss])

    def _of_tensors(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """From tensors alone: lengths, which only the host knows, must not decide what is compiled."""
        *packed, targets_T, counted_T = tensors
        packs = [
            Packed(ids, Boundaries(sequence, positions, None, None))
            for ids, sequence, positions in zip(packed[::3], packed[1::3], packed[2::3], strict=True)
        ]
        return self._of_batch(packs, targets_T, counted_T)

    def _states(self, *packs: Packed) -> Tensor:
        """The states before the output layer, from inputs and outputs, or from outputs alone."""
        if isinstance(self.model, LanguageModel):
            return self.model.decode(*packs)
        inputs, outputs = packs
        return self.model.decode(outputs, self.model.encode(inputs))


def tensors_of(packed: Packed) -> tuple[Tensor, Tensor, Tensor]:
    """What a compiled step sees of a pack, as int32: kernels read it again and again."""
    b = packed.boundaries
    return packed.ids_N.int(), b.sequence_N.int(), b.positions_N.int()


class _LabelLoss(nn.Module, ABC, Generic[B]):
    """Loss of labels, as the encoder alone gives them, summed over the texts of a batch."""

    weights_Y: Tensor
    """The weight of each label."""

    def __init__(self, model: Model, training: TrainingConfig, weights_Y: Tensor) -> None:
        super().__init__()
        assert isinstance(model, Classifier), "labels are read off the encoder alone"
        self.model, self.smoothing = model, training.label_smoothing
        self.hidden_tokens, self.agreement = training.hidden_tokens, training.agreement
        self.register_buffer("weights_Y", weights_Y, persistent=False)

    def forward(self, batch: B) -> tuple[Tensor, Tensor]:
        """The loss; and the sums to report, of which likelihood and hits are not weighted."""
        logits_BY = self._logits(batch.inputs)
        nll_B = self._nll(logits_BY, batch)
        minimised_B = self._minimised(logits_BY, batch) if self.training else nll_B
        counted_B = batch.counted_B.to(logits_BY.dtype)
        parts = minimised_B, nll_B, self._hits(logits_BY, batch).float()
        minimised, nll, hits = ((part_B * counted_B).sum() for part_B in parts)
        return minimised, torch.stack([minimised, nll, hits]).detach()

    def _logits(self, inputs: Packed) -> Tensor:
        """Logits of every label; in training, some tokens of the texts are hidden (Departure 14)."""
        if self.training and self.hidden_tokens:
            ids_N, starts_B = inputs.ids_N, inputs.boundaries.starts_B
            hidden_N = torch.rand(len(ids_N), device=ids_N.device) < self.hidden_tokens
            hidden_N[starts_B] = False  # the label is read from [CLS]
            inputs = Packed(ids_N.masked_fill(hidden_N, BLANK), inputs.boundaries)
        logits_BY: Tensor = self.model(inputs).float()
        return logits_BY

    def _minimised(self, logits_BY: Tensor, batch: B) -> Tensor:
        """The smoothed loss; with `agreement`, the mean of two passes and the divergence between them."""
        smoothed_B = self._smoothed(logits_BY, batch)
        if not self.agreement:
            return smoothed_B
        again_BY = self._logits(batch.inputs)  # Departure 15: other dropout, other hidden tokens
        mean_B = (smoothed_B + self._smoothed(again_BY, batch)) / 2
        return mean_B + self.agreement * self._divergence(logits_BY, again_BY)

    @abstractmethod
    def _nll(self, logits_BY: Tensor, batch: B) -> Tensor: ...

    @abstractmethod
    def _smoothed(self, logits_BY: Tensor, batch: B) -> Tensor:
        """Negative log-likelihood of smoothed labels, weighted."""

    @abstractmethod
    def _hits(self, logits_BY: Tensor, batch: B) -> Tensor: ...

    @abstractmethod
    def _divergence(self, one_BY: Tensor, other_BY: Tensor) -> Tensor:
        """The symmetric Kullback-Leibler divergence of two answers."""


class OneLabel(_LabelLoss[LabelledBatch]):
    """Loss of texts that have one label each."""

    def _nll(self, logits_BY: Tensor, batch: LabelledBatch) -> Tensor:
        return F.cross_entropy(logits_BY, batch.labels_B, reduction="none")

    def _smoothed(self, logits_BY: Tensor, batch: LabelledBatch) -> Tensor:
        smoothed_B = F.cross_entropy(
            logits_BY, batch.labels_B, reduction="none", label_smoothing=self.smoothing
        )
        return smoothed_B * self.weights_Y.to(logits_BY.device)[batch.labels_B]

    def _hits(self, logits_BY: Tensor, batch: LabelledBatch) -> Tensor:
        return is_most_probable(logits_BY, batch.labels_B)

    def _divergence(self, one_BY: Tensor, other_BY: Tensor) -> Tensor:
        one_BY, other_BY = one_BY.log_softmax(dim=-1), other_BY.log_softmax(dim=-1)
        return ((one_BY.exp() - other_BY.exp()) * (one_BY - other_BY)).sum(dim=-1) / 2


class SeveralLabels(_LabelLoss[TaggedBatch]):
    """Loss of texts that have any number of labels: each label is an independent decision."""

    def _nll(self, logits_BY: Tensor, batch: TaggedBatch) -> Tensor:
        nll_BY = F.binary_cross_entropy_with_logits(logits_BY, batch.labels_BY, reduction="none")
        return nll_BY.sum(dim=-1)

    def _smoothed(self, logits_BY: Tensor, batch: TaggedBatch) -> Tensor:
        smoothed_BY = F.binary_cross_entropy_with_logits(
            logits_BY,
            batch.labels_BY * (1 - self.smoothing) + self.smoothing / 2,
            pos_weight=self.weights_Y.to(logits_BY.device),
            reduction="none",
        )
        return smoothed_BY.sum(dim=-1)

    def _hits(self, logits_BY: Tensor, batch: TaggedBatch) -> Tensor:
        # A logit of zero decides neither way, and is not a hit.
        return (((logits_BY > 0) == (batch.labels_BY > 0)) & (logits_BY != 0)).sum(dim=-1)

    def _divergence(self, one_BY: Tensor, other_BY: Tensor) -> Tensor:
        # Summed over both outcomes: the difference of the log-odds is that of the logits.
        apart_BY = (one_BY.sigmoid() - other_BY.sigmoid()) * (one_BY - other_BY)
        return apart_BY.sum(dim=-1) / 2


class HiddenTokens(nn.Module):
    """Loss of hidden tokens, guessed from those around them: how the encoder alone learns from plain text.

    A share of a batch's tokens is hidden as BERT does it: eight in ten become a token that no text has, one
    in ten becomes another token, and one in ten stays. The labels of such a classifier are the subwords.
    """

    def __init__(self, model: Model, *, compiled: bool = False) -> None:
        super().__init__()
        assert isinstance(model, Classifier), "tokens are guessed by the encoder alone"
        self.model, self.compiled = model, compiled
        if compiled:
            self._fixed = torch.compile(self._of_tensors, dynamic=False, fullgraph=True, options=COMPILER)

    def forward(self, batch: PlainBatch) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and the sums to report.

        Hidden tokens are drawn from torch's generator, like dropout; every validation hides the same ones.
        """
        ids_N = batch.inputs.ids_N
        generator = None if self.training else torch.Generator().manual_seed(len(ids_N))
        places_T = self._chosen(batch, generator).to(ids_N.device)
        targets_T, hidden_N, hidden = ids_N[places_T], ids_N.clone(), batch.n_targets
        hidden_N[places_T[:hidden]] = self._hidden(targets_T[:hidden], generator)
        counted_T = torch.arange(len(places_T), device=ids_N.device) < hidden
        packed = Packed(hidden_N, batch.inputs.boundaries)
        if self.compiled and self.training:
            return self._fixed(*tensors_of(packed), places_T, targets_T, counted_T)
        return self._loss(packed, places_T, targets_T, counted_T)

    def _loss(
        self, inputs: Packed, places_T: Tensor, targets_T: Tensor, counted_T: Tensor
    ) -> tuple[Tensor, Tensor]:
        states_ND, output = self.model.encode(inputs), self.model.output_probabilities
        loss = label_smoothed_cross_entropy(
            states_ND[places_T], output.weight, targets_T, bias_V=output.bias, counted_N=counted_T
        )
        return loss.smoothed.clone(), torch.stack([part.detach() for part in loss])

    def _of_tensors(
        self,
        ids_N: Tensor,
        sequence_N: Tensor,
        positions_N: Tensor,
        places_T: Tensor,
        targets_T: Tensor,
        counted_T: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """From tensors alone, as in `NextToken`."""
        inputs = Packed(ids_N, Boundaries(sequence_N, positions_N, None, None))
        return self._loss(inputs, places_T, targets_T, counted_T)

    @staticmethod
    def _chosen(batch: PlainBatch, generator: torch.Generator | None) -> Tensor:
        """Places of the hidden tokens, at random; those that count come first, and none is a [CLS]."""
        draws_N = torch.rand(len(batch.open_N), generator=generator)
        draws_N[~batch.open_N] = -1.0
        return draws_N.topk(batch.n_places).indices

    def _hidden(self, ids_T: Tensor, generator: torch.Generator | None) -> Tensor:
        """What replaces these tokens."""
        draws_T = torch.rand(len(ids_T), generator=generator).to(ids_T.device)
        vocab_size = self.model.config.vocab_size
        others_T = torch.randint(FIRST_PIECE, vocab_size, (len(ids_T),), generator=generator).to(ids_T.device)
        ids_T = ids_T.where(draws_T >= 0.9, others_T)
        return ids_T.where(draws_T >= 0.8, BLANK)
