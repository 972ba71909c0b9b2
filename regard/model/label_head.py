"""What a state goes through before the encoder alone tells its label. The plain way is: nothing."""

from __future__ import annotations

from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.add_and_norm import make_norm
from regard.model.linear import Linear


class LabelHead(nn.Module):
    """Nothing, or a map of its own (Departure 8: those of BERT)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.label_head
        if self.kind != "none":
            self.map = Linear(config.d_model, config.d_model)
        if self.kind == "gelu-norm":
            self.norm = make_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) to (…, d_model)."""
        match self.kind:
            case "none":
                return x
            case "tanh":
                return torch.tanh(self.map(x))
            case "gelu-norm":
                return self.norm(F.gelu(self.map(x)))
            case other:
                assert_never(other)
