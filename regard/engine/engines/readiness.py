"""A model that will only run: its weights are laid out, or rounded, once for all the products to come."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn

from regard.model.embedding import Embedding
from regard.model.linear import Linear
from regard.model.positional_encoding import LearnedPositions
from regard.model.transformer import Transformer


def ready_to_run(model: Transformer) -> Transformer:
    """A copy that shares the model's weights and has them ready too, as they are now; or the model itself.

    The model may go on training. On CPUs weights are packed; what oneDNN cannot pack runs as it is. On GPUs
    they are rounded to what flows through them, which happens at each use otherwise.
    """
    dtype, device = model.compute_dtype, model.output_probabilities.weight.device
    if device.type == "cpu" and _packs(dtype):
        ready = _copy(model)
        for module in ready.modules():
            if isinstance(module, Linear):
                module.pack(dtype)
        return ready
    if device.type != "cpu" and dtype != torch.float32:
        ready = _copy(model)
        for module in ready.modules():
            if not isinstance(module, Embedding | LearnedPositions):  # sums of these are rounded, not they
                for name, weight in list(module.named_parameters(recurse=False)):
                    setattr(module, name, nn.Parameter(weight.detach().to(dtype), requires_grad=False))
        return ready
    return model


def _copy(model: Transformer) -> Transformer:
    return deepcopy(model, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())})


def _packs(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (
        dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
