"""What each head is worth for one text: how likely the text is without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.errors import RequestError
from regard.look.interventions.copies import copies_at_once, each_copy, log_probs_of_copies, model_of_trace
from regard.look.interventions.interventions import HeadOff
from regard.look.trace.blocks import Kind, layers_of, place_of, stack_of
from regard.model.taps import Replace

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.trace import Trace


@torch.inference_mode()
def effect_of_each_head(model: Model, trace: Trace, first: int = 0) -> dict[Kind, np.ndarray]:
    """For each kind (layers, heads): the change in log-probability of what was wanted, with this head off.

    Of what was wanted, all counts from the `first` row on. What the trace intervenes in stays as it is.
    Copies of the text run side by side, each without one head.

    Raises:
        RequestError: there is no such row, or the trace cannot have come from this model.
    """
    model = model_of_trace(model, trace)
    if not 0 <= first <= len(trace.wanted):
        raise RequestError(f"no row {first}: what was written goes from 0 to {len(trace.wanted) - 1}")
    rows = slice(first, len(trace.wanted))
    intact = float(trace.log_probs[rows].sum())
    effects = {kind: np.zeros((layers_of(model.config, kind), model.config.n_heads)) for kind in trace.kinds}
    for batch in _batches(trace):
        one_memory = stack_of(batch[0].kind) == "decoder"
        change = _each_without_its_own(batch)
        log_probs = log_probs_of_copies(model, trace, len(batch), change, rows, one_memory=one_memory)
        for off, log_prob in zip(batch, log_probs.tolist(), strict=True):
            effects[off.kind][off.layer, off.head] = log_prob - intact
    return effects


def _batches(trace: Trace) -> Iterator[list[HeadOff]]:
    """All heads, those of one stack together, as many as there may be copies."""
    size, config = copies_at_once(trace), trace.config
    for stack in ("encoder", "decoder"):
        heads = [
            HeadOff(kind=kind, layer=layer, head=head)
            for kind in trace.kinds
            if stack_of(kind) == stack
            for layer in range(layers_of(config, kind))
            for head in range(config.n_heads)
        ]
        yield from (heads[i : i + size] for i in range(0, len(heads), size))


def _each_without_its_own(batch: Sequence[HeadOff]) -> Replace:
    """In copy i the i-th head of the batch is off."""

    def change(address: str, value: Tensor) -> Tensor:
        place = place_of(address)
        if place is None or place.name != "heads":
            return value
        off = [(i, each.head) for i, each in enumerate(batch) if (each.kind, each.layer) == place[:2]]
        if not off:
            return value
        heads = each_copy(value, len(batch))  # (copies, tokens, heads, d_v)
        for i, head in off:
            heads[i, :, head] = 0.0
        return heads.flatten(0, 1)

    return change
