"""What each head is worth for one text: how likely the text is without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.errors import RequestError
from regard.look.interventions.apply import intervened, replacing
from regard.look.interventions.interventions import HeadOff
from regard.look.trace.blocks import Kind, layers_of, place_of, stack_of
from regard.look.trace.recorder import log_probs_of, predicting_states
from regard.model.taps import Replace, recording
from regard.model.transformer import Memory, Transformer
from regard.packing import Boundaries, pack

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData


BATCH_TOKENS = 4096
"""Tokens of the longer side, over all copies that are run together."""


def model_of_trace(model: Model, trace: TraceData) -> Model:
    """The model as the trace was made with it.

    Raises:
        RequestError: the trace cannot have come from this model.
    """
    if model.training:
        raise RequestError("the model is in training, where dropout blurs what it does: call model.eval()")
    model = intervened(model, trace.interventions)
    if model.config != trace.config:
        raise RequestError("the trace was made with a model of another shape")
    return model


def copies_at_once(trace: TraceData) -> int:
    """How many copies a batch holds."""
    longest = max(len(side) for side in (trace.inputs, trace.outputs) if side is not None)
    return max(1, BATCH_TOKENS // longest)


def log_probs_of_copies(
    model: Model,
    trace: TraceData,
    copies: int,
    change: Replace,
    rows: slice,
    *,
    one_memory: bool = False,
) -> Tensor:
    """Log-probability of what was wanted in some rows, in each copy, (copies,).

    `change` comes after the trace's own interventions. With `one_memory` it leaves the encoder alone, which
    then runs once for all copies.
    """
    device = next(model.parameters()).device
    inputs, outputs = (
        None if side is None else pack([side.ids] * copies, device) for side in (trace.inputs, trace.outputs)
    )
    with recording(model, _after(replacing(trace.interventions, model.config), change), keep=lambda _: False):
        if one_memory and isinstance(model, Transformer):
            assert trace.inputs is not None, "an encoder-decoder model has inputs"
            assert outputs is not None, "an encoder-decoder model has outputs"
            states_SD = model.encode(pack([trace.inputs.ids], device)).states_SD.repeat(copies, 1)
            boundaries = Boundaries.of_lengths([len(trace.inputs)] * copies, device)
            states_ND = model.decode(outputs, Memory(states_SD, boundaries))
        else:
            states_ND = predicting_states(model, inputs, outputs)
    wanted = trace.targets[rows]
    rows_ND = states_ND.unflatten(0, (copies, -1))[:, rows].flatten(0, 1)
    log_probs = log_probs_of(model, rows_ND, wanted * copies, multi_label=trace.multi_label)
    return log_probs.view(copies, len(wanted)).sum(-1)


def each_copy(value: Tensor, copies: int) -> Tensor:
    """Packed (copies · tokens, …) as (copies, tokens, …), to be written to."""
    return value.clone().unflatten(0, (copies, -1))


def _after(first: Replace | None, then: Replace) -> Replace:
    if first is None:
        return then

    def change(address: str, value: Tensor) -> Tensor:
        return then(address, first(address, value))

    return change


@torch.inference_mode()
def effect_of_each_head(model: Model, trace: TraceData, first: int = 0) -> dict[Kind, np.ndarray]:
    """For each kind (layers, heads): the change in log-probability of what was wanted, with this head off.

    Of what was wanted, all counts from the `first` row on. What the trace intervenes in stays as it is.
    Copies of the text run side by side, each without one head.

    Raises:
        RequestError: there is no such row, or the trace cannot have come from this model.
    """
    model = model_of_trace(model, trace)
    if not 0 <= first <= len(trace.targets):
        last = len(trace.targets) - 1
        raise RequestError(f"no row {first}; the output has rows 0 to {last}", code="unknown_place")
    rows = slice(first, len(trace.targets))
    intact = float(trace.log_probs[rows].sum())
    effects = {kind: np.zeros((layers_of(model.config, kind), model.config.n_heads)) for kind in trace.kinds}
    for batch in _batches(trace):
        one_memory = stack_of(batch[0].kind) == "decoder"
        change = _each_without_its_own(batch)
        log_probs = log_probs_of_copies(model, trace, len(batch), change, rows, one_memory=one_memory)
        for off, log_prob in zip(batch, log_probs.tolist(), strict=True):
            effects[off.kind][off.layer, off.head] = log_prob - intact
    return effects


def _batches(trace: TraceData) -> Iterator[list[HeadOff]]:
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
