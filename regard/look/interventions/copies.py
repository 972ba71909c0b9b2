"""One traced text, run again many times side by side, each copy changed in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from regard.errors import RequestError
from regard.look.interventions.apply import intervened, replacing
from regard.look.trace.predictions import log_probs_of
from regard.look.trace.tracing import predicting_states
from regard.model.taps import Replace, recording
from regard.model.transformer import Memory, Transformer
from regard.packing import Boundaries, pack

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.trace import Trace

BATCH_TOKENS = 4096
"""Tokens of the longer side, over all copies that are run together."""


def model_of_trace(model: Model, trace: Trace) -> Model:
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


def copies_at_once(trace: Trace) -> int:
    """How many copies a batch holds."""
    longest = max(len(side) for side in (trace.inputs, trace.outputs) if side is not None)
    return max(1, BATCH_TOKENS // longest)


def log_probs_of_copies(
    model: Model,
    trace: Trace,
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
    wanted = trace.wanted[rows]
    rows_ND = states_ND.unflatten(0, (copies, -1))[:, rows].flatten(0, 1)
    log_probs = log_probs_of(model, rows_ND, wanted * copies, several=trace.several)
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
