"""A model that will only run: on CPUs, its weights are laid out once for all the products to come."""

from __future__ import annotations

from copy import deepcopy

import torch

from regard.model.linear import Linear
from regard.model.transformer import Transformer


def ready_to_run(model: Transformer) -> Transformer:
    """A copy that shares the model's weights and has them packed too, as they are now; or the model itself.

    The model may go on training. What oneDNN cannot pack, on other devices or in other dtypes, runs as it is.
    """
    dtype, device = model.compute_dtype, model.output_probabilities.weight.device
    if device.type != "cpu" or not _packs(dtype):
        return model
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    ready = deepcopy(model, shared)
    for module in ready.modules():
        if isinstance(module, Linear):
            module.pack(dtype)
    return ready


def _packs(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (
        dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
