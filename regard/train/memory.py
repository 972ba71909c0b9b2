"""How many tokens fit into memory: what a step's parts are cut to before the first one runs.

An estimate, from the sizes of the model: what the backward pass needs of every token, in every layer. It is
made to be too high rather than too low. Where it still was too low, the step is cut up further (`loop.py`).
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from regard.config import ModelConfig

SPARE = 0.8
"""Share of the free memory that a step may plan with."""


def bytes_per_token(config: ModelConfig, dtype: torch.dtype) -> int:
    """What one token of inputs and one of outputs leave behind for the backward pass, about."""
    element, d = dtype.itemsize, config.d_model
    # Inputs and outputs of every map, norm and residual; the widened states before and after the activation.
    encoder = 12 * d + 3 * config.d_ff
    decoder = 20 * d + 3 * config.d_ff
    stacks = config.encoder_layers * encoder + config.decoder_layers * decoder
    # Attention on a CPU is written out: a weight for each of some hundred keys, head by head.
    weights = (config.encoder_layers + 2 * config.decoder_layers) * config.n_heads * 64
    return element * (stacks + weights + 8 * d)


def free_bytes(device: torch.device) -> int | None:
    """Memory that is free on a device; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":") for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        except (OSError, ValueError):
            return None


def parts_that_fit(
    config: ModelConfig, n_parameters: int, dtype: torch.dtype, n_tokens: int, device: torch.device
) -> int:
    """Parts to take `n_tokens` a side in, so that each fits into what is free now."""
    free = free_bytes(device)
    if free is None:
        return 1
    # Gradients, two moments, a rounded copy; the logits of one slice and their gradient.
    fixed = 16 * n_parameters + (6 << 30 if device.type == "cuda" else 1 << 28)
    room = max(SPARE * free - fixed, SPARE * free / 10)
    return max(1, -(-n_tokens * bytes_per_token(config, dtype) // int(room)))
