"""The loss of hidden tokens, guessed from those around them: what the encoder alone learns from plain text.

A share of a batch's tokens is hidden, as BERT does it: eight in ten become a token that no text has, one in
ten becomes any other, and one in ten stays. The labels of such a classifier are the subwords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.data.examples import PlainBatch
from regard.loss import label_smoothed_cross_entropy
from regard.model.classifier import Classifier
from regard.packing import Packed

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

    def __init__(self, model: Model) -> None:
        super().__init__()
        assert isinstance(model, Classifier), "tokens are guessed by the encoder alone"
        self.model = model

    def forward(self, batch: PlainBatch) -> tuple[Tensor, Tensor]:
        """What is minimised; and, to be told, that, the likelihood and the hits.

        Draws come from torch's generator, as those of dropout do; each validation hides the same tokens.
        """
        ids_N = batch.inputs.ids_N
        generator = None if self.training else torch.Generator().manual_seed(len(ids_N))
        places_T = self._chosen(batch, generator).to(ids_N.device)
        hidden_N = ids_N.clone()
        hidden_N[places_T] = self._hidden(ids_N[places_T], generator)
        states_ND = self.model.encode(Packed(hidden_N, batch.inputs.boundaries))
        output = self.model.output_probabilities
        counted_T = torch.full_like(places_T, batch.n_targets > 0, dtype=torch.bool)
        loss = label_smoothed_cross_entropy(
            self.model.label_head(states_ND[places_T]),
            output.weight,
            ids_N[places_T],
            bias_V=output.bias,
            counted_N=counted_T,
        )
        return loss.smoothed.clone(), torch.stack([part.detach() for part in loss])

    @staticmethod
    def _chosen(batch: PlainBatch, generator: torch.Generator | None) -> Tensor:
        """Which tokens are hidden: as many as count, at random, and never a [CLS]."""
        draws_N = torch.rand(len(batch.inputs.ids_N), generator=generator)
        draws_N[batch.inputs.boundaries.starts_B.cpu()] = -1.0
        return draws_N.topk(max(1, batch.n_targets)).indices

    def _hidden(self, ids_T: Tensor, generator: torch.Generator | None) -> Tensor:
        """What stands where these tokens stood."""
        draws_T = torch.rand(len(ids_T), generator=generator).to(ids_T.device)
        vocab_size = self.model.config.vocab_size
        others_T = torch.randint(FIRST_PIECE, vocab_size, (len(ids_T),), generator=generator).to(ids_T.device)
        ids_T = ids_T.where(draws_T >= 0.9, others_T)
        return ids_T.where(draws_T >= 0.8, BLANK)
