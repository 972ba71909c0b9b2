"""Figure 1: Feed Forward.

FFN(x) = max(0, x W₁ + b₁) W₂ + b₂                       (3.3, eq. 2)
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig, registries
from regard.model.linear import Linear, side_by_side
from regard.model.taps import tap


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them, applied to each token by itself (3.3).

    `model.feed_forward` names another function in place of the ReLU. A function of two arguments is gated:
    it gets a second linear map of the input, `gate`, first.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = registries.feed_forwards[config.feed_forward]
        self.widen = Linear(config.d_model, config.d_ff)
        self.gate = Linear(config.d_model, config.d_ff) if _is_gated(self.activation) else None
        self.narrow = Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) to (…, d_model)."""
        if self.gate is None:
            hidden = self.activation(tap(self, "widened", self.widen(x)))
        else:
            gate, widened = side_by_side([self.gate, self.widen], x)
            hidden = self.activation(tap(self, "gate", gate), tap(self, "widened", widened))
        hidden = tap(self, "hidden", hidden)
        return tap(self, "output", self.narrow(hidden))

    @property
    def taps(self) -> tuple[str, ...]:
        """The units before and after the activation, the gates of a gated one, and the result."""
        gate = () if self.gate is None else ("gate",)
        return (*gate, "widened", "hidden", "output")


def _is_gated(activation: Callable[..., Tensor]) -> bool:
    return len(signature(activation).parameters) == 2


@registries.feed_forwards.register("relu")
def relu(x: Tensor) -> Tensor:
    """max(0, x)."""
    return F.relu(x)


@registries.feed_forwards.register("gelu")  # Departure 3
def gelu(x: Tensor) -> Tensor:
    """X Φ(x)."""
    return F.gelu(x)


@registries.feed_forwards.register("gelu-tanh")  # Departure 3
def gelu_tanh(x: Tensor) -> Tensor:
    """GELU's approximation by a tanh, as in GPT-2."""
    return F.gelu(x, approximate="tanh")


@registries.feed_forwards.register("swish")  # Departure 3
def swish(x: Tensor) -> Tensor:
    """X σ(x)."""
    return F.silu(x)


@registries.feed_forwards.register("swiglu")  # Departure 4: a second map decides what passes of each unit
def swiglu(gate: Tensor, x: Tensor) -> Tensor:
    """Swish(gate) x."""
    return F.silu(gate) * x


@registries.feed_forwards.register("geglu")  # Departure 4
def geglu(gate: Tensor, x: Tensor) -> Tensor:
    """GELU(gate) x."""
    return F.gelu(gate) * x
