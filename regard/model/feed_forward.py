"""Figure 1: Feed Forward.

FFN(x) = max(0, x W₁ + b₁) W₂ + b₂                       (3.3, eq. 2)
"""

from __future__ import annotations

from typing import assert_never

import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.linear import Linear, side_by_side
from regard.model.taps import tap


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them, applied to each token by itself (3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.feed_forward
        self.widen = Linear(config.d_model, config.d_ff)
        if self.kind in ("swiglu", "geglu"):
            self.gate = Linear(config.d_model, config.d_ff)
        self.narrow = Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) to (…, d_model)."""
        hidden = tap(self, "hidden", self._hidden(x))
        return tap(self, "output", self.narrow(hidden))

    def _hidden(self, x: Tensor) -> Tensor:
        match self.kind:
            case "relu":
                return F.relu(self.widen(x))
            case "gelu":  # Departure 3
                return F.gelu(self.widen(x))
            case "gelu-tanh":  # Departure 3: GELU's first approximation, GPT-2's
                return F.gelu(self.widen(x), approximate="tanh")
            case "swish":  # Departure 3
                return F.silu(self.widen(x))
            case "swiglu":  # Departure 4: a second map decides how much of each hidden unit passes
                gate, hidden = side_by_side([self.gate, self.widen], x)
                return F.silu(gate) * hidden
            case "geglu":
                gate, hidden = side_by_side([self.gate, self.widen], x)
                return F.gelu(gate) * hidden
            case other:
                assert_never(other)
