"""Texts without some of their tokens, the others at their own positions; memories shared by copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.look.trace.tokens import Tokens
from regard.model.decoder import DecoderLayer
from regard.model.encoder import EncoderLayer
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.transformer import Memory
from regard.packing import Boundaries, Packed

if TYPE_CHECKING:
    from regard.bundle.weights import Model

PRUNABLE_POSITIONS = ("none", "sinusoidal", "learned", "rotary")
"""Positions that belong to each token alone, so that tokens between others can be left out."""


def is_prunable(model: Model) -> bool:
    """Whether a token that no query attends to has no effect on the others."""
    if model.config.positions not in PRUNABLE_POSITIONS:
        return False
    stacks = [getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)]
    layers = [layer for stack in stacks for layer in stack.layers]
    blocks = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    return all(type(each) in (EncoderLayer, DecoderLayer) for each in layers) and all(
        type(each) is MultiHeadAttention for each in blocks
    )


def kept_tokens(tokens: Tokens, kept: np.ndarray, device: torch.device) -> Packed:
    """Some tokens of a text at their own positions, in each copy; `kept` (copies, tokens)."""
    sequence, positions = np.nonzero(kept)
    sequence_N, positions_N = (torch.from_numpy(each).to(device) for each in (sequence, positions))
    lengths = tuple(kept.sum(axis=1).tolist())
    ids_N = torch.from_numpy(np.asarray(tokens.ids, dtype=np.int64)[positions]).to(device)
    return Packed(ids_N, Boundaries(sequence_N, positions_N, lengths, kept.shape[1]))


def different_rows(rows: np.ndarray) -> tuple[list[int], list[int]]:
    """The first of equal rows; for each row, the number of the one that it equals."""
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    which: list[int] = []
    for i, row in enumerate(rows):
        key = row.tobytes()
        if key not in numbers:
            numbers[key] = len(first)
            first.append(i)
        which.append(numbers[key])
    return first, which


def picked_memory(memory: Memory, which: Sequence[int]) -> Memory:
    """The memory of some sequences, in this order; one may come several times."""
    lengths, starts = memory.boundaries.known_lengths, memory.boundaries.starts_B.tolist()
    rows = np.concatenate([np.arange(starts[i], starts[i] + lengths[i]) for i in which])
    device = memory.states_SD.device
    boundaries = Boundaries.of_lengths([lengths[i] for i in which], device)
    return Memory(memory.states_SD.index_select(0, torch.from_numpy(rows).to(device)), boundaries)
