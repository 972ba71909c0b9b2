"""Figure 1: Positional Encoding (3.5).

    PE(pos, 2i)   = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))

Sinusoids and learned positions are added to the embeddings. Rotary positions add nothing: they turn queries
and keys inside self-attention, so that a product of the two depends on their distance alone.
"""

from __future__ import annotations

from typing import assert_never

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import ShapeError
from regard.packing import Boundaries


def angles(positions_N: Tensor, width: int) -> Tensor:
    """(N, width / 2): pos / 10000^(2i / width), in float32 however coarse the activations are."""
    even = torch.arange(0, width, 2, device=positions_N.device, dtype=torch.float32)
    return positions_N.float()[:, None] * 10000.0 ** (-even / width)


def sinusoids(positions_N: Tensor, d_model: int) -> Tensor:
    """The paper's encoding of these positions: sines in the even places, cosines in the odd ones (3.5)."""
    a_NK = angles(positions_N, d_model)
    return torch.stack((a_NK.sin(), a_NK.cos()), dim=-1).flatten(-2)


def rotate(x: Tensor, positions_N: Tensor) -> Tensor:
    """Departure 5: turn each pair (x₂ᵢ, x₂ᵢ₊₁) of (…, N, heads, d_k) by the angle of its position."""
    angle = angles(positions_N, x.shape[-1])[:, None, :]  # the same for all heads
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class SinusoidalPositions(nn.Module):
    """Fixed sines and cosines. The table is only a store: beyond it the formula is worked out anew."""

    table: Tensor

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoids(torch.arange(max_length), d_model), persistent=False)

    def forward(self, boundaries: Boundaries) -> Tensor:
        """(N, d_model)."""
        if boundaries.n_positions is not None and boundaries.n_positions > self.table.shape[0]:
            return sinusoids(boundaries.positions_N, self.d_model)
        return self.table.index_select(0, boundaries.positions_N)


class LearnedPositions(nn.Module):
    """One learned vector a position (3.5; Table 3, row E)."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, d_model) * d_model**-0.5)

    def forward(self, boundaries: Boundaries) -> Tensor:
        """(N, d_model)."""
        max_length = self.weight.shape[0]
        if boundaries.n_positions is not None and boundaries.n_positions > max_length:
            expected = f"at most model.max_length = {max_length} tokens, as many as positions were learned"
            raise ShapeError("sequence length", expected, boundaries.n_positions)
        return nn.functional.embedding(boundaries.positions_N, self.weight)


def make_positions(config: ModelConfig) -> SinusoidalPositions | LearnedPositions | None:
    """What is added to the embeddings; None where nothing is."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.max_length, config.d_model)
        case "learned":
            return LearnedPositions(config.max_length, config.d_model)
        case "rotary" | "none":
            return None
        case other:
            assert_never(other)
