"""Figure 1: Linear and Softmax, the output probabilities (3.4)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.model.linear import Linear
from regard.model.taps import tap


class OutputProbabilities(Linear):
    """A linear map to one score for each subword (or label), and a softmax over them."""

    taps = ("logits",)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, before the softmax: (N, V)."""
        return tap(self, "logits", super().forward(x))

    def among(self, ids_C: Tensor) -> OutputProbabilities:
        """This layer for some tokens only, as a new layer with copies of their weights: (N, C)."""
        part: OutputProbabilities = nn.utils.skip_init(
            OutputProbabilities, self.in_features, len(ids_C), bias=self.bias is not None
        )
        part.weight = nn.Parameter(self.weight.detach()[ids_C], requires_grad=False)
        if self.bias is not None:
            part.bias = nn.Parameter(self.bias.detach()[ids_C], requires_grad=False)
        return part

    def log_probs(self, x: Tensor) -> Tensor:
        """Log softmax(x W), in float32 at least."""
        logits = self(x)
        return torch.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
