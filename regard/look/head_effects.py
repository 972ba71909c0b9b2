"""What each head is worth for one text: how likely the text is without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.errors import RequestError
from regard.look.blocks import Kind, kinds_of, layers_of, place_of
from regard.look.intervening import intervened, replacing, without_heads
from regard.look.interventions import HeadOff
from regard.look.looking import predicting_states
from regard.look.saying import log_probs_of
from regard.model.taps import Replace, recording
from regard.model.transformer import Memory, Transformer
from regard.packing import Boundaries, pack

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace import Trace

BATCH_TOKENS = 4096
"""Tokens of the longer side, over all copies that are run together."""


@torch.inference_mode()
def effect_of_each_head(model: Model, trace: Trace) -> dict[Kind, np.ndarray]:
    """For each kind (layers, heads): the change in log-probability of what was wanted, with this head off.

    What the trace intervenes in stays as it is. Copies of the text run side by side, each without one head.
    """
    _check(model, trace)
    model = intervened(model, trace.interventions)
    effects = {kind: np.zeros((layers_of(model.config, kind), model.config.n_heads)) for kind in trace.kinds}
    for batch in _batches(model, trace):
        for off, log_prob in zip(batch, _log_probs_without(model, trace, batch), strict=True):
            effects[off.kind][off.layer, off.head] = log_prob - float(trace.log_probs.sum())
    return effects


def _check(model: Model, trace: Trace) -> None:
    if model.training:
        raise RequestError("the model is in training, where dropout blurs what it does: call model.eval()")
    if intervened(model, trace.interventions).config != trace.config:
        raise RequestError("the trace was made with a model of another shape")


def _batches(model: Model, trace: Trace) -> Iterator[list[HeadOff]]:
    """All heads, those of one stack together, as many as the budget holds copies for."""
    longest = max(len(side) for side in (trace.inputs, trace.outputs) if side is not None)
    size, n_heads = max(1, BATCH_TOKENS // longest), model.config.n_heads
    for stack in (["encoder"], ["decoder", "cross"]):
        heads = [
            HeadOff(kind=kind, layer=layer, head=head)
            for kind in kinds_of(model.config)
            if kind in stack
            for layer in range(layers_of(model.config, kind))
            for head in range(n_heads)
        ]
        yield from (heads[i : i + size] for i in range(0, len(heads), size))


def _log_probs_without(model: Model, trace: Trace, batch: Sequence[HeadOff]) -> list[float]:
    """The log-probability of everything wanted, in copies that lack one head each."""
    copies, device = len(batch), next(model.parameters()).device
    inputs, outputs = (
        None if side is None else pack([side.ids] * copies, device) for side in (trace.inputs, trace.outputs)
    )
    always = replacing(trace.interventions, model.config)
    with recording(model, _each_without_its_own(batch, always), keep=lambda _: False):
        if isinstance(model, Transformer) and batch[0].kind != "encoder":
            # No head of the encoder is off: one memory serves all copies.
            assert trace.inputs is not None, "an encoder-decoder model has inputs"
            assert outputs is not None, "an encoder-decoder model has outputs"
            states_SD = model.encode(pack([trace.inputs.ids], device)).states_SD.repeat(copies, 1)
            boundaries = Boundaries.of_lengths([len(trace.inputs)] * copies, device)
            states_ND = model.decode(outputs, Memory(states_SD, boundaries))
        else:
            states_ND = predicting_states(model, inputs, outputs)
    rows = states_ND.unflatten(0, (copies, -1))[:, : len(trace.wanted)].flatten(0, 1)
    found = log_probs_of(model, rows, trace.wanted * copies)
    each: list[float] = found.view(copies, len(trace.wanted)).sum(-1).tolist()
    return each


def _each_without_its_own(batch: Sequence[HeadOff], always: Replace | None) -> Replace:
    """In copy i the i-th head of the batch is off; whatever else was asked for goes for all of them."""

    def change(address: str, value: Tensor) -> Tensor:
        if always is not None:
            value = always(address, value)
        place = place_of(address)
        if place is None or place.name != "heads":
            return value
        off = {i: each.head for i, each in enumerate(batch) if (each.kind, each.layer) == place[:2]}
        if not off:
            return value
        parts = list(value.chunk(len(batch)))
        for i, head in off.items():
            parts[i] = without_heads(parts[i], [head])
        return torch.cat(parts)

    return change
