"""Residual dropout (5.4): zero a share p of a sub-layer's output and add it to the sub-layer's input.

On CPUs torch draws one Bernoulli number an element, on one thread: 6 ms for a million elements. Here one
64-bit draw serves four elements. The share is exact to 1/65,536, and the scale matches it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from regard.packing import is_transforming


def keep_mask(like: Tensor, p: float) -> Tensor:
    """1 / (1 - p) with probability 1 - p, else 0; from torch's CPU generator, so that a seed repeats it."""
    n = like.numel()
    words = torch.empty((n + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    dropped = min(round(p * 65536), 65535)
    numbers = words.view(torch.int16)[:n].view(like.shape)
    # Written as ones and zeros of the wanted dtype at once: by way of booleans it takes ten times as long.
    keep = torch.ge(
        numbers, dropped - 32768, out=torch.empty_like(like, memory_format=torch.contiguous_format)
    )
    return keep.mul_(65536 / (65536 - dropped))


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, added_to: Tensor | None, p: float) -> Tensor:
        keep = keep_mask(x, p)
        ctx.save_for_backward(keep)
        return x * keep if added_to is None else torch.addcmul(added_to, x, keep)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (keep,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return grad * keep, grad if ctx.needs_input_grad[1] else None, None  # type: ignore[attr-defined]


class Dropout(nn.Module):
    """Dropout, and the residual connection that follows it."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def extra_repr(self) -> str:
        """The share, in a printed model."""
        return f"p={self.p}"

    def forward(self, x: Tensor, added_to: Tensor | None = None) -> Tensor:
        """dropout(x), or added_to + dropout(x)."""
        if not self.training or self.p == 0.0:
            return x if added_to is None else added_to + x
        if x.device.type == "cpu" and not torch.compiler.is_compiling() and not is_transforming():
            return _Dropout.apply(x, added_to, self.p)
        dropped = F.dropout(x, self.p)
        return dropped if added_to is None else added_to + dropped
