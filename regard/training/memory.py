"""How many parts a step is divided into, such that each fits into memory.

The memory that a part needs is estimated from the sizes of the model, rather too high than too low. Where it
still was too low, the loop divides the step further.
"""

from __future__ import annotations

import torch

from regard.config import ModelConfig
from regard.host import free_memory
from regard.model.fast.kernels import SHORT
from regard.training.distributed.world import World

SPARE = 0.8
"""Share of the free memory that a step may plan with."""
SLACK = 1.2
"""On top of the estimate: some kinds of attention and norm keep more."""
WIDTHS = {"relu": 1, "gelu": 2, "gelu-tanh": 2, "swish": 2, "swiglu": 4, "geglu": 4}
"""Widened states that a feed-forward layer keeps: before, between and after its maps and its activation."""
MOST_WIDTHS = 4
"""The same for a feed-forward registered by a user."""


def bytes_per_token(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> int:
    """Bytes that one input token and one output token keep for the backward pass, estimated."""
    d, n_heads = config.d_model, config.n_heads
    n_encoder = 0 if config.architecture == "decoder" else config.encoder_layers
    n_decoder = 0 if config.architecture == "encoder" else config.decoder_layers
    n_attentions = n_encoder + n_decoder * (2 if n_encoder else 1)
    n_feed_forwards = n_encoder + n_decoder
    # Every sub-layer keeps its input, the output of dropout and the input of the norm. Queries, keys, values
    # and heads lie in padded views, which are up to half as large again.
    heads = n_heads * (config.key_width + config.value_width)
    attention = 3 * d + 2.5 * heads
    feed_forward = 3 * d + WIDTHS.get(config.feed_forward, MOST_WIDTHS) * config.d_ff
    elements = n_attentions * attention + n_feed_forwards * feed_forward + 6 * d
    if device.type != "cuda":  # attention weights are materialised
        elements += n_attentions * n_heads * min(config.max_length, SHORT)
    # RMSNorm keeps two copies of its input in float32.
    in_float32 = 2 * d * (n_attentions + n_feed_forwards) if config.norm == "rms" else 0
    return int(SLACK * (dtype.itemsize * elements + 4 * in_float32))


def parts_that_fit(
    config: ModelConfig, n_parameters: int, dtype: torch.dtype, n_tokens: int, world: World
) -> int:
    """The number of parts for `n_tokens` on each side, such that each fits into free memory."""
    free = free_memory(world.device)
    if free is None:
        return 1
    sharing = world.n_here if world.device.type == "cpu" else 1
    return parts_within(free // sharing, config, n_parameters, dtype, n_tokens, world.device)


def parts_within(
    free: int,
    config: ModelConfig,
    n_parameters: int,
    dtype: torch.dtype,
    n_tokens: int,
    device: torch.device,
) -> int:
    """The number of parts that fit into `free` bytes."""
    # Gradients, two moments, a rounded copy; the logits of a slice and their gradient.
    fixed = 16 * n_parameters + (6 << 30 if device.type == "cuda" else 1 << 28)
    room = max(SPARE * free - fixed, SPARE * free / 10, 1)
    return max(1, -(-n_tokens * bytes_per_token(config, dtype, device) // int(room)))
