"""How a step's batch is divided: among processes, and into parts that fit into memory.

All processes read the same stream of batches, so they agree on every step without communication. What a step
learns does not depend on how it is divided, apart from rounding and the random numbers of dropout.

The memory that a part needs is estimated from the sizes of the model, rather too high than too low. Where it
still was too low, the loop divides the step further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.config import ModelConfig
from regard.data.batches import BLOCK, Budget, deal
from regard.data.batches.examples import Batch
from regard.data.store import Store
from regard.host import free_memory
from regard.model.fast.kernels import SHORT
from regard.tasks.task import Lesson
from regard.training.distributed.world import World

SPARE = 0.8
"""Share of the free memory that a step may plan with."""
SLACK = 1.2
"""On top of the estimate: some kinds of attention and norm keep more."""
WIDTHS = {"relu": 1, "gelu": 2, "gelu-tanh": 2, "swish": 2, "swiglu": 4, "geglu": 4}
"""Widened states that a feed-forward layer keeps: before, between and after its maps and its activation."""
MOST_WIDTHS = 4
"""The same for a feed-forward registered by a user."""


@dataclass(frozen=True, eq=False)
class StepBatches:
    """What one process does in one step."""

    store: Store
    indices: np.ndarray
    """The examples of the whole step, of all processes, to divide them again."""
    batches: Sequence[Batch]
    """This process's parts."""
    n_targets: int
    """Targets of the whole step, of all processes: what the mean is taken over."""
    wanted_parts: int
    """The number of parts that was wanted; a small share has fewer."""


@dataclass(kw_only=True)
class Division:
    """Divides the batch of a step: takes this process's share, in `n_parts` parts."""

    lesson: Lesson
    budget: Budget
    """Of a whole step, all processes together."""
    longest: tuple[int, ...]
    """Tokens of the longest example on each side."""
    n_parts: int = 1
    """Parts of a process's share; may grow while the stream runs."""
    rank: int = 0
    world_size: int = 1

    def __call__(self, store: Store, indices: np.ndarray) -> StepBatches:
        """This process's share of a step, in at most `n_parts` parts, and in at least one."""
        n_parts = self.n_parts
        shares = deal(store, indices, self.world_size)
        n_targets = self.lesson.n_targets(store, indices)
        # Sharded processes run their parts in step, so all have as many as the largest share needs.
        parts = deal(store, shares[self.rank], min(n_parts, max(map(len, shares))))
        sizes = self.sizes(n_parts)
        # A process without examples computes along with one that counts for nothing.
        batches = [
            self._batch(store, part, sizes) if len(part) else self._batch(store, indices[:1], sizes).idle()
            for part in parts
        ]
        return StepBatches(store, indices, batches, n_targets, n_parts)

    def sizes(self, n_parts: int) -> tuple[int | None, ...]:
        """Tokens that each part is filled up to, on each side; None for no filling."""
        if not self.budget.fixed:
            return tuple(None for _ in self.budget.tokens)
        pieces = n_parts * self.world_size
        # Shares differ by some sentences: room for two of the longest, above an even share, suffices.
        slack = [0 if pieces == 1 else 2 * (longest + 1) for longest in self.longest]
        shares = [(most or 0) / pieces + more for most, more in zip(self.budget.tokens, slack, strict=True)]
        return tuple(-(-int(np.ceil(share)) // BLOCK) * BLOCK for share in shares)

    def _batch(self, store: Store, indices: np.ndarray, sizes: tuple[int | None, ...]) -> Batch:
        if not self.budget.fixed:
            return self.lesson.batch(store, indices)
        extra = self.budget.extra
        lengths = [
            int(store.lengths(side, indices).sum()) + extra[side] * len(indices) for side in range(len(sizes))
        ]
        # A part that is too large is compiled for its own size: slow once, but right.
        fill = [max(size or 0, -(-(n + 1) // BLOCK) * BLOCK) for size, n in zip(sizes, lengths, strict=True)]
        return self.lesson.batch(store, indices, fill)


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
    if device.type == "cpu":  # attention weights are materialised
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
