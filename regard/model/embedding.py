"""Figure 1: Input Embedding and Output Embedding (3.4)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ShapeError


class Embedding(nn.Module):
    """A learned vector for each subword, times √d_model (3.4)."""

    taps = ("embedded", "with_positions")

    def __init__(self, vocab_size: int, d_model: int, *, scaled: bool = True) -> None:
        super().__init__()
        # Unit variance after the scale, and a suitable start for an output layer that shares the weight.
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) * d_model**-0.5)
        self.scale = d_model**0.5 if scaled else 1.0

    def forward(self, ids_N: Tensor) -> Tensor:
        """(N,) ids to (N, d_model)."""
        self._check(ids_N)
        return F.embedding(ids_N, self.weight) * self.scale

    def _check(self, ids_N: Tensor) -> None:
        if ids_N.device.type != "cpu" or torch.compiler.is_compiling():
            return  # reading values would make an accelerator wait; it has an assertion of its own
        lowest, highest = (int(x) for x in ids_N.aminmax())
        if lowest < 0 or highest >= self.weight.shape[0]:
            wrong = lowest if lowest < 0 else highest
            expected = f"token ids from 0 to {self.weight.shape[0] - 1}"
            raise ShapeError("ids", expected, wrong, code="id_out_of_range")
