"""A linear map with float32 weights that are rounded, where they are used, to the dtype of the input.

This is all of mixed precision here: the embedding decides the dtype of the activations (bf16 where the
hardware has it), every map follows, and gradients reach the float32 weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """x W + b, in the dtype of x."""

    product: Callable[[Tensor], Tensor] | None = None
    """Computes x W + b instead, where `fast/packed_weights.py` has prepared weights that no longer change."""

    def reset_parameters(self) -> None:
        """Glorot's uniform start, which preserves the variance of activations and of gradients."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) to (…, out)."""
        return self.multiply(x) if self.product is None else self.product(x)

    def multiply(self, x: Tensor) -> Tensor:
        """X W + b with the weights as they are now."""
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)


def side_by_side(maps: Sequence[Linear], x: Tensor) -> list[Tensor]:
    """Several maps of the same input, as one product: wider products run faster."""
    biases: list[Tensor] = [linear.bias for linear in maps if linear.bias is not None]
    if len(biases) not in (0, len(maps)) or any(_must_be_called(linear) for linear in maps):
        return [linear(x) for linear in maps]
    weight = torch.cat([linear.weight for linear in maps]).to(x.dtype)
    bias = torch.cat(biases).to(x.dtype) if biases else None
    return list(F.linear(x, weight, bias).split([linear.out_features for linear in maps], dim=-1))


def _must_be_called(linear: Linear) -> bool:
    """Whether the weights alone do not say what a map does: it is a subclass, prepared, or has hooks."""
    if type(linear) is not Linear or linear.product is not None:
        return True
    if torch.compiler.is_compiling():
        return False
    forward, backward = (linear._forward_hooks, linear._forward_pre_hooks), linear._backward_hooks
    return any((*forward, backward, linear._backward_pre_hooks))
