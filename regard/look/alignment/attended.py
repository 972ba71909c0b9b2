"""Where a translator looks while it writes outputs that are known, many pairs at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from regard.look.trace.blocks import address_of
from regard.model.taps import recording
from regard.model.transformer import Transformer
from regard.packing import pack

Ids = Sequence[int]
BATCH = 32
"""Pairs that the model reads together."""


@torch.inference_mode()
def attended(
    model: Transformer, pairs: Sequence[tuple[Ids, Ids]], layers: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
    """The cross-attention of each pair in these layers: its number and (layers, heads, queries, keys).

    Ids are as the two stacks read them, ends included. Pairs of like length come together, not in order.
    """
    device = model.output_probabilities.weight.device
    wanted = [f"{address_of('cross', layer)}.weights" for layer in layers]
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        inputs, outputs = (pack([pairs[i][side] for i in batch], device) for side in (0, 1))
        with recording(model, keep=set(wanted).__contains__) as seen:
            model.decode(outputs, model.encode(inputs))
        weights = torch.stack([seen[address] for address in wanted], dim=1).float().cpu().numpy()
        for i, of_pair in zip(batch, weights, strict=True):
            yield i, of_pair[:, :, : len(pairs[i][1]), : len(pairs[i][0])]
