"""A linear map whose weights stay in float32 and are rounded, where they are used, to what flows through.

This is all of mixed precision here: the embedding decides the dtype of the activations (bf16 where the
hardware has it), every map follows, and gradients come back to float32 weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PACKED_FOR = 64
"""Rows that weights are packed for. The same order was as fast as any for 1 to 320 rows."""


SMALL = 1 << 19
"""Weights up to which a single row is faster without packing (256 x 256: 6 µs against 18)."""


class Linear(nn.Linear):
    """x W + b, in the dtype of x."""

    packed: Tensor | None = None
    """The weights in oneDNN's own order, where they will not change any more."""
    packed_bias: Tensor | None = None

    def pack(self, dtype: torch.dtype) -> None:
        """Lay the weights out, on a CPU, for products in `dtype`; what changes them later is not seen."""
        # torch has no public name for these two; its compiler uses them for models that are frozen.
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach().to(dtype), PACKED_FOR)
        self.packed_bias = None if self.bias is None else self.bias.detach().to(dtype)

    def reset_parameters(self) -> None:
        """Glorot's uniform start, which keeps the variance of what flows through in both directions."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) to (…, out)."""
        if self.packed is not None and not self._is_small_product(x):
            return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.packed_bias, "none", [], "")
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)

    def _is_small_product(self, x: Tensor) -> bool:
        one_row = x.dim() == 2 and x.shape[0] == 1
        return one_row and self.weight.numel() <= SMALL and x.dtype == self.weight.dtype


def side_by_side(maps: Sequence[Linear], x: Tensor) -> list[Tensor]:
    """Several maps of the same input, as one product: wider products run faster."""
    if any(_goes_alone(each) for each in maps):
        return [each(x) for each in maps]
    weight = torch.cat([each.weight for each in maps]).to(x.dtype)
    bias = None
    if maps[0].bias is not None:
        bias = torch.cat([each.bias for each in maps]).to(x.dtype)
    return list(F.linear(x, weight, bias).split([each.out_features for each in maps], dim=-1))


def _goes_alone(each: Linear) -> bool:
    """Whether a map must be called: weights alone do not tell of a pack, a subclass, or somebody's hooks."""
    if type(each) is not Linear or each.packed is not None:
        return True
    if torch.compiler.is_compiling():
        return False
    hooks = (each._forward_hooks, each._forward_pre_hooks, each._backward_hooks, each._backward_pre_hooks)
    return any(hooks)
