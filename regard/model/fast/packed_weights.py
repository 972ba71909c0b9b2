"""A model that only runs: its weights are packed, or rounded, once for all products to come."""

from __future__ import annotations

from copy import deepcopy
from typing import TypeVar

import torch
from torch import Tensor, nn

from regard.model.embedding import Embedding
from regard.model.linear import Linear
from regard.model.positional_encoding import Positions
from regard.model.taps import note_copy
from regard.model.transformer import Transformer

Model = TypeVar("Model", bound=nn.Module)
PACKED_FOR = 64
"""Rows that weights are packed for. The same order was as fast as any for 1 to 320 rows."""
SMALL = 1 << 19
"""Weights up to which a single row is faster without packing (256 x 256: 6 µs against 18)."""


class PackedWeights:
    """The weights of a linear map in oneDNN's own order; later changes of the weights have no effect."""

    def __init__(self, linear: Linear, dtype: torch.dtype) -> None:
        # torch has no public name for this operation and the next; its compiler uses them for frozen models.
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype), PACKED_FOR)
        self.bias = None if linear.bias is None else linear.bias.detach().to(dtype)
        self.linear = linear

    def __call__(self, x: Tensor) -> Tensor:
        """X W + b."""
        if self._is_small_product(x):
            return self.linear.multiply(x)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return product

    def _is_small_product(self, x: Tensor) -> bool:
        weight, one_row = self.linear.weight, x.dim() == 2 and x.shape[0] == 1
        return one_row and weight.numel() <= SMALL and x.dtype == weight.dtype


def ready_to_run(model: Transformer) -> Transformer:
    """A copy that shares the model's weights and has them prepared as well; or the model itself.

    The model may continue training. On CPUs weights are packed where oneDNN can. On GPUs they are rounded to
    the dtype of the activations, which otherwise happens at each use.
    """
    dtype, device = model.compute_dtype, model.output_probabilities.weight.device
    if device.type == "cpu" and _packs(dtype):
        ready = shared_copy(model)
        for module in ready.modules():
            if isinstance(module, Linear):
                prepare(module, dtype)
        return ready
    if device.type != "cpu" and dtype != torch.float32:
        ready = shared_copy(model)
        for module in ready.modules():
            if not isinstance(module, Embedding | Positions):  # their sums are rounded, not they
                for name, weight in list(module.named_parameters(recurse=False)):
                    setattr(module, name, nn.Parameter(weight.detach().to(dtype), requires_grad=False))
        return ready
    return model


def prepare(linear: Linear, dtype: torch.dtype) -> None:
    """Pack the weights of a map that no longer change, on CPUs where oneDNN can."""
    if _packs(dtype):
        linear.product = PackedWeights(linear, dtype)


def shared_copy(model: Model) -> Model:
    """A copy that shares the model's weights and its hooks, and that recordings of the model reach."""
    memo: dict[int, object] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    for module in model.modules():
        # The dictionaries themselves, so that hooks which are added or removed later count for both.
        memo |= {id(value): value for name, value in vars(module).items() if "_hooks" in name}
    copy = deepcopy(model, memo)
    note_copy(copy, model)
    return copy


def _packs(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (
        dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
