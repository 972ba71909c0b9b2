"""Figure 1: Add & Norm, the residual connection and normalisation around every sub-layer (3.1), and the
dropout inside it (5.4).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from regard.config import ModelConfig, registries
from regard.model.taps import tap, wants
from regard.packing import is_transforming


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
            added = self.norm(tap(self, "sum", self.dropout(sublayer(x), added_to=x)))
        return tap(self, "output", added)

    @property
    def taps(self) -> tuple[str, ...]:
        """What the sub-layer reads, or what the norm reads; and the result."""
        return ("normed", "output") if self.norm_first else ("sum", "output")


@registries.norms.register("layer")
class LayerNorm(nn.Module):
    """Layer normalisation: mean 0 and variance 1 over d_model, then a gain and a bias."""

    taps = ("scale",)

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each token by itself."""
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        normed = F.layer_norm(x, weight.shape, weight, bias, self.epsilon)
        if wants(self, "scale"):
            normed = _with_scale(self, normed, x - x.mean(dim=-1, keepdim=True))
        return normed


@registries.norms.register("rms")
class RMSNorm(nn.Module):
    """Departure 2: divide by the root mean square, without a mean or a bias."""

    taps = ("scale",)

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each token by itself."""
        weight = self.weight.to(x.dtype)
        normed = F.rms_norm(x, weight.shape, weight, self.epsilon)
        return _with_scale(self, normed, x) if wants(self, "scale") else normed


def _with_scale(norm: LayerNorm | RMSNorm, normed: Tensor, x: Tensor) -> Tensor:
    """The result of a norm, with a tap on the factor of each token, (…, 1): 1 / √(mean of x² + ε).

    Only the effect of another factor is added, so that the result does not change by being recorded.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = (wide.square().mean(dim=-1, keepdim=True) + norm.epsilon).rsqrt()
    change = tap(norm, "scale", scale.clone()) - scale
    return normed + (wide * change * norm.weight).to(normed.dtype)


def new_norm(config: ModelConfig) -> nn.Module:
    """The normalisation that the configuration names."""
    norm: nn.Module = registries.norms[config.norm](config.d_model, config.norm_epsilon)
    return norm


class Dropout(nn.Module):
    """Dropout (5.4), and the residual connection after it."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def extra_repr(self) -> str:
        """The probability, in a printed model."""
        return f"p={self.p}"

    def forward(self, x: Tensor, added_to: Tensor | None = None) -> Tensor:
        """dropout(x), or added_to + dropout(x)."""
        if not self.training or self.p == 0.0:
            return x if added_to is None else added_to + x
        if x.device.type == "cpu" and not torch.compiler.is_compiling() and not is_transforming():
            return _Dropout.apply(x, added_to, self.p)
        dropped = F.dropout(x, self.p)
        return dropped if added_to is None else added_to + dropped


class _Dropout(torch.autograd.Function):
    """Dropout on CPUs, where torch draws one number per element on one thread (6 ms for a million)."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, added_to: Tensor | None, p: float) -> Tensor:
        keep = keep_mask(x, p)
        ctx.save_for_backward(keep)
        return x * keep if added_to is None else torch.addcmul(added_to, x, keep)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (keep,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return grad * keep, grad if ctx.needs_input_grad[1] else None, None  # type: ignore[attr-defined]


def keep_mask(like: Tensor, p: float) -> Tensor:
    """1 / (1 - p) with probability 1 - p, else 0; from torch's CPU generator, so that a seed repeats it.

    One 64-bit draw serves four elements. The probability is exact to 1/65,536, and the scale matches it.
    """
    n = like.numel()
    words = torch.empty((n + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    dropped = min(round(p * 65536), 65535)
    numbers = words.view(torch.int16)[:n].view(like.shape)
    # Written directly as ones and zeros of the wanted dtype: by way of booleans it takes ten times longer.
    keep = torch.ge(
        numbers, dropped - 32768, out=torch.empty_like(like, memory_format=torch.contiguous_format)
    )
    return keep.mul_(65536 / (65536 - dropped))
