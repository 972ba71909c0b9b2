"""Figure 1: Positional Encoding (3.5).

    PE(pos, 2i)   = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))

Sinusoids and learned positions are added to the embeddings. Rotary positions rotate queries and keys inside
self-attention, so that their product depends on their distance alone. Relative positions
(`relative_positions.py`) add a bias to the scores of self-attention.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from regard.config import ModelConfig, registries
from regard.errors import ShapeError
from regard.model.taps import tap
from regard.packing import Boundaries

Turn = Callable[[Tensor, Tensor], Tensor]
Moved = TypeVar("Moved", bound=nn.Module)


@registries.positions.register("none")
class Positions(nn.Module):
    """How one stack represents the order of its tokens; the base class represents none.

    A subclass overrides one or more of three hooks: `forward`, `turn` and `score_bias`.
    """

    turn: ClassVar[staticmethod[[Tensor, Tensor], Tensor] | None] = None
    """A static method that transforms queries and keys: `turn(x, positions_N)`, x (…, N, heads, d_k)."""

    fixed_shapes: ClassVar[bool] = True
    """Whether the hooks run in compiled and captured steps: set it to False if they read tensor values."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:  # noqa: ARG002
        """`causal` is True for the positions of a decoder."""
        super().__init__()
        self.max_length = config.max_length

    def forward(self, boundaries: Boundaries) -> Tensor | None:  # noqa: ARG002
        """What is added to the embeddings, (N, d_model)."""
        return None

    def score_bias(self, queries_L: Tensor, keys_M: Tensor) -> Tensor:
        """What is added to the scores of self-attention, (heads, L, M), by positions of queries and keys."""
        raise NotImplementedError

    @property
    def taps(self) -> tuple[str, ...]:
        """What is added to the embeddings, and what is added to the scores."""
        added = () if type(self).forward is Positions.forward else ("added",)
        return (*added, "score_bias") if self.has_score_bias else added

    @property
    def has_score_bias(self) -> bool:
        """Whether this choice adds a bias to scores."""
        return type(self).score_bias is not Positions.score_bias

    def bias_within(self, boundaries: Boundaries) -> Tensor | None:
        """The bias by position of query and key, (heads, P, P), P the longest sequence; None without a bias.

        In a compiled step the host does not know the longest sequence, so P is `max_length`.
        """
        if not self.has_score_bias:
            return None
        if boundaries.lengths is None:
            places_P = torch.arange(self.max_length, device=boundaries.positions_N.device)
        else:  # the filler of a fixed-size pack may be longer than any sequence; its positions repeat
            places_P = torch.arange(boundaries.longest, device=boundaries.positions_N.device)
            places_P = places_P % (boundaries.n_positions or boundaries.longest)
        return tap(self, "score_bias", self.score_bias(places_P, places_P))


def keep_computed(
    module: Moved, name: str, compute: Callable[[], Tensor], move: Callable[[], Moved]
) -> Moved:
    """Move a module, and compute a buffer anew that had no values before.

    The buffer is not saved, so nothing else fills it when a model leaves the device "meta" by `to_empty`.
    """
    was_empty = module.get_buffer(name).is_meta
    moved = move()
    buffer = module.get_buffer(name)
    if was_empty and not buffer.is_meta:
        with torch.device("cpu"):
            setattr(module, name, compute().to(buffer))
    return moved


def angles(positions_N: Tensor, width: int) -> Tensor:
    """(N, width / 2): pos / 10000^(2i / width), in float32 whatever the dtype of the activations."""
    even = torch.arange(0, width, 2, device=positions_N.device, dtype=torch.float32)
    return positions_N.float()[:, None] * 10000.0 ** (-even / width)


def sinusoids(positions_N: Tensor, d_model: int) -> Tensor:
    """The paper's encoding of these positions: sines at even indices, cosines at odd ones (3.5)."""
    a_NK = angles(positions_N, d_model)
    return torch.stack((a_NK.sin(), a_NK.cos()), dim=-1).flatten(-2)


@registries.positions.register("sinusoidal")
class SinusoidalPositions(Positions):
    """Fixed sines and cosines. The table only stores them; longer sequences compute the formula."""

    table: Tensor

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.d_model = config.d_model
        self.register_buffer("table", self._new_table(), persistent=False)

    def _new_table(self) -> Tensor:
        return sinusoids(torch.arange(self.max_length), self.d_model)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        return keep_computed(self, "table", self._new_table, partial(super()._apply, fn, recurse))

    def forward(self, boundaries: Boundaries) -> Tensor:
        """(N, d_model)."""
        if boundaries.n_positions is not None and boundaries.n_positions > self.table.shape[0]:
            return sinusoids(boundaries.positions_N, self.d_model)
        return self.table.index_select(0, boundaries.positions_N)


@registries.positions.register("learned")
class LearnedPositions(Positions):
    """One learned vector per position (3.5; Table 3, row E)."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.weight = nn.Parameter(torch.randn(config.max_length, config.d_model) * config.d_model**-0.5)

    def forward(self, boundaries: Boundaries) -> Tensor:
        """(N, d_model)."""
        if boundaries.n_positions is not None and boundaries.n_positions > self.max_length:
            expected = f"at most model.max_length = {self.max_length} tokens, the number of learned positions"
            raise ShapeError("sequence length", expected, boundaries.n_positions, code="too_long")
        return nn.functional.embedding(boundaries.positions_N, self.weight)


def rotate(x: Tensor, positions_N: Tensor) -> Tensor:
    """Departure 5: turn each pair (x₂ᵢ, x₂ᵢ₊₁) of (…, N, heads, d_k) by the angle of its position."""
    if x.shape[-1] % 2:
        raise ShapeError("d_k", "an even width, because rotation turns pairs", x.shape[-1], code="odd_width")
    angle = angles(positions_N, x.shape[-1])[:, None, :]  # the same for all heads
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


@registries.positions.register("rotary")
class RotaryPositions(Positions):
    """Departure 5: queries and keys turn with their positions."""

    turn = staticmethod(rotate)


def new_positions(config: ModelConfig, *, causal: bool) -> Positions:
    """The positions of one stack, as the configuration names them."""
    positions: Positions = registries.positions[config.positions](config, causal=causal)
    return positions
