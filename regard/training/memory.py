"""How many tokens fit into memory: what a step's parts are cut to before the first one runs.

An estimate, from the sizes of the model: what the backward pass needs of every token, in every layer. It is
made to be too high rather than too low. Where it still was too low, the step is cut up further (`loop.py`).
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
"""On top of what was counted: kinds of attention and of norm that keep somewhat more."""
WIDTHS = {"relu": 1, "gelu": 2, "gelu-tanh": 2, "swish": 2, "swiglu": 4, "geglu": 4}
"""Widened states that each feed forward keeps: before, between and after its maps and its activation."""
MOST_WIDTHS = 4
"""The same for a feed-forward registered by a user."""


def bytes_per_token(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> int:
    """What one token of inputs and one of outputs leave behind for the backward pass, about."""
    d, n_heads = config.d_model, config.n_heads
    n_encoder = 0 if config.architecture == "decoder" else config.encoder_layers
    n_decoder = 0 if config.architecture == "encoder" else config.decoder_layers
    n_attentions = n_encoder + n_decoder * (2 if n_encoder else 1)
    n_feed_forwards = n_encoder + n_decoder
    # Of every sub-layer its input, what dropout kept and what the norm was given. Queries, keys, values and
    # heads lie in padded views, which are up to half as large again.
    heads = n_heads * (config.key_width + config.value_width)
    attention = 3 * d + 2.5 * heads
    feed_forward = 3 * d + WIDTHS.get(config.feed_forward, MOST_WIDTHS) * config.d_ff
    elements = n_attentions * attention + n_feed_forwards * feed_forward + 6 * d
    if device.type == "cpu":  # where attention is written out
        elements += n_attentions * n_heads * min(config.max_length, SHORT)
    # RMSNorm takes two copies of its input in float32 along.
    in_float32 = 2 * d * (n_attentions + n_feed_forwards) if config.norm == "rms" else 0
    return int(SLACK * (dtype.itemsize * elements + 4 * in_float32))


def parts_that_fit(
    config: ModelConfig, n_parameters: int, dtype: torch.dtype, n_tokens: int, world: World
) -> int:
    """Parts to take `n_tokens` a side in, so that each fits into what is free now."""
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
    """The same for so many free bytes."""
    # Gradients, two moments, a rounded copy; the logits of one slice and their gradient.
    fixed = 16 * n_parameters + (6 << 30 if device.type == "cuda" else 1 << 28)
    room = max(SPARE * free - fixed, SPARE * free / 10, 1)
    return max(1, -(-n_tokens * bytes_per_token(config, dtype, device) // int(room)))
