"""Figure 1: Add & Norm, the residual connection and normalisation around every sub-layer (3.1, 5.4)."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig, registries
from regard.model.dropout import Dropout
from regard.model.taps import tap


@registries.norms.register("layer")
class LayerNorm(nn.Module):
    """Layer normalisation: mean 0 and variance 1 over d_model, then a gain and a bias."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each token by itself."""
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return F.layer_norm(x, weight.shape, weight, bias, self.epsilon)


@registries.norms.register("rms")
class RMSNorm(nn.Module):
    """Departure 2: divide by the root mean square, no mean and no bias."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each token by itself."""
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.epsilon)


def new_norm(config: ModelConfig) -> nn.Module:
    """The normalisation that the configuration names."""
    norm: nn.Module = registries.norms[config.norm](config.d_model, config.norm_epsilon)
    return norm


class AddAndNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) as in the paper, or x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm_first = config.norm_position == "pre"  # Departure 1: the norm before the sub-layer
        self.norm = new_norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Run the sub-layer inside its residual connection."""
        if self.norm_first:
            added = self.dropout(sublayer(tap(self, "normed", self.norm(x))), added_to=x)
        else:
            added = self.norm(self.dropout(sublayer(x), added_to=x))
        return tap(self, "output", added)
