"""The loss of hidden tokens, guessed from those around them: what the encoder alone learns from plain text.

A share of a batch's tokens is hidden, as BERT does it: eight in ten become a token that no text has, one in
ten becomes any other, and one in ten stays. The labels of such a classifier are the subwords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.data.batches.examples import PlainBatch
from regard.loss import label_smoothed_cross_entropy
from regard.model.classifier import Classifier
from regard.packing import Boundaries, Packed
from regard.training.objective import COMPILER, tensors_of

if TYPE_CHECKING:
    from regard.bundle.weights import Model

HIDDEN = 0.15
"""Share of tokens that are hidden."""
BLANK = 0
"""`<unk>`, which no text gives, stands where a token is hidden."""
FIRST_PIECE = 3
"""Ids below are for the unknown, the start and the end."""


class GuessingObjective(nn.Module):
    """A classifier of subwords and how badly it guesses, summed over the hidden tokens of a batch."""

    def __init__(self, model: Model, *, compiled: bool = False) -> None:
        super().__init__()
        assert isinstance(model, Classifier), "tokens are guessed by the encoder alone"
        self.model, self.compiled = model, compiled
        if compiled:  # only to name the compiler takes a second
            self._fixed = torch.compile(self._of_tensors, dynamic=False, fullgraph=True, options=COMPILER)

    def forward(self, batch: PlainBatch) -> tuple[Tensor, Tensor]:
        """What is minimised; and, to be told, that, the likelihood and the hits.

        Draws come from torch's generator, as those of dropout do; each validation hides the same tokens.
        Compiled, the batch must have been filled to a fixed size.
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
        """The same of tensors alone: what only the host knows, lengths, must not decide what is compiled."""
        inputs = Packed(ids_N, Boundaries(sequence_N, positions_N, None, None))
        return self._loss(inputs, places_T, targets_T, counted_T)

    @staticmethod
    def _chosen(batch: PlainBatch, generator: torch.Generator | None) -> Tensor:
        """Which tokens are hidden, at random; those that count come first, and are never a [CLS]."""
        draws_N = torch.rand(len(batch.open_N), generator=generator)
        draws_N[~batch.open_N] = -1.0
        return draws_N.topk(batch.n_places).indices

    def _hidden(self, ids_T: Tensor, generator: torch.Generator | None) -> Tensor:
        """What stands where these tokens stood."""
        draws_T = torch.rand(len(ids_T), generator=generator).to(ids_T.device)
        vocab_size = self.model.config.vocab_size
        others_T = torch.randint(FIRST_PIECE, vocab_size, (len(ids_T),), generator=generator).to(ids_T.device)
        ids_T = ids_T.where(draws_T >= 0.9, others_T)
        return ids_T.where(draws_T >= 0.8, BLANK)
