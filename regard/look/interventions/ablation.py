"""A traced text run many times side by side, each copy changed in its own way; the effect of each head.

Also the continuation of a text by a changed language model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine
from regard.engine.generator import Generator
from regard.engine.options import GenerateOptions
from regard.errors import RequestError
from regard.look.interventions.apply import intervened, recording_changed
from regard.look.interventions.interventions import HeadOff, Intervention, check
from regard.look.trace.blocks import Kind, layers_of, place_of, stack_of
from regard.look.trace.recorder import log_probs_of, predicting_states, resolved
from regard.model.language_model import LanguageModel
from regard.model.taps import Replace
from regard.model.transformer import Memory, Transformer
from regard.packing import Boundaries, pack
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData


BATCH_TOKENS = 1024
"""Tokens of the longer side in one batch of copies."""


def model_of_trace(model: Model, trace: TraceData) -> Model:
    """The model with the interventions of a trace.

    Raises:
        RequestError: the model is in training mode, or the trace is of a model of another shape.
    """
    if model.training:
        what = "the model is in training mode, where dropout changes its results: call model.eval()"
        raise RequestError(what, code="model_in_training")
    model = intervened(model, trace.interventions)
    if model.config != trace.config:
        raise RequestError("the trace is of a model of another shape", code="trace_mismatch")
    return model


def copies_at_once(trace: TraceData, batch_tokens: int = BATCH_TOKENS) -> int:
    """The number of copies in a batch."""
    longest = max(len(side) for side in (trace.inputs, trace.outputs) if side is not None)
    return max(1, batch_tokens // longest)


def log_probs_of_copies(
    model: Model,
    trace: TraceData,
    copies: int,
    change: Replace | None,
    rows: slice,
    *,
    one_memory: bool = False,
) -> Tensor:
    """Sum of the log-probabilities of the targets of some rows, in each copy, (copies,).

    `change`, if given, is applied after the interventions of the trace. With `one_memory` it must not change
    the encoder, which then runs once for all copies.
    """
    device = next(model.parameters()).device
    inputs, outputs = (
        None if side is None else pack([side.ids] * copies, device) for side in (trace.inputs, trace.outputs)
    )
    with recording_changed(model, trace.interventions, change):
        if one_memory and isinstance(model, Transformer):
            assert trace.inputs is not None, "an encoder-decoder model has inputs"
            assert outputs is not None, "an encoder-decoder model has outputs"
            states_SD = model.encode(pack([trace.inputs.ids], device)).states_SD.repeat(copies, 1)
            boundaries = Boundaries.of_lengths([len(trace.inputs)] * copies, device)
            states_ND = model.decode(outputs, Memory(states_SD, boundaries))
        else:
            states_ND = predicting_states(model, inputs, outputs)
    targets = trace.targets[rows]
    rows_ND = states_ND.unflatten(0, (copies, -1))[:, rows].flatten(0, 1)
    log_probs = log_probs_of(model, rows_ND, targets * copies, multi_label=trace.multi_label)
    return log_probs.view(copies, len(targets)).sum(-1)


def each_copy(value: Tensor, copies: int) -> Tensor:
    """A copy of packed (copies · tokens, …) as (copies, tokens, …)."""
    return value.clone().unflatten(0, (copies, -1))


def effect_of_each_head(model: Model, trace: TraceData, first: int = 0) -> dict[Kind, np.ndarray]:
    """For each kind (layers, heads): the change in log-probability of the targets with this head off.

    Targets count from the row `first` on. The interventions of the trace stay in place.

    Raises:
        RequestError: there is no such row, or the trace is of another model.
    """
    return collected(trace, effects_of_heads(model, trace, first))


@torch.inference_mode()
def effects_of_heads(
    model: Model, trace: TraceData, first: int = 0, batch_tokens: int = BATCH_TOKENS
) -> Iterator[dict[HeadOff, float]]:
    """The same, in batches: something else may run between two of them.

    Raises:
        RequestError: there is no such row, or the trace is of another model.
    """
    model = model_of_trace(model, trace)
    if not 0 <= first <= len(trace.targets):
        last = len(trace.targets) - 1
        raise RequestError(f"no row {first}; the output has rows 0 to {last}", code="unknown_place")
    rows = slice(first, len(trace.targets))
    intact = float(trace.log_probs[rows].sum())
    for batch in _batches(trace, copies_at_once(trace, batch_tokens)):
        one_memory = stack_of(batch[0].kind) == "decoder"
        change = _each_without_its_own(batch)
        log_probs = log_probs_of_copies(model, trace, len(batch), change, rows, one_memory=one_memory)
        yield {off: log_prob - intact for off, log_prob in zip(batch, log_probs.tolist(), strict=True)}


def collected(trace: TraceData, batches: Iterable[Mapping[HeadOff, float]]) -> dict[Kind, np.ndarray]:
    """The effects of heads as arrays: for each kind (layers, heads)."""
    config = trace.config
    effects = {kind: np.zeros((layers_of(config, kind), config.n_heads)) for kind in trace.kinds}
    for batch in batches:
        for off, effect in batch.items():
            effects[off.kind][off.layer, off.head] = effect
    return effects


def _batches(trace: TraceData, size: int) -> Iterator[list[HeadOff]]:
    """All heads, by stack, in batches of as many copies."""
    config = trace.config
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


@dataclass(frozen=True, slots=True)
class ChangedOutput:
    """What a changed translator writes."""

    ids: tuple[int, ...]
    """Without the end token."""
    log_prob: float
    """Of this output, in the changed model."""
    log_prob_of_intact: float
    """Of the unchanged model's output, in the changed model."""


@torch.inference_mode()
def changed_output(
    model: Transformer,
    engine: TorchEngine,
    subwords: Vocabulary,
    request: Request,
    search: Search,
    intact: Sequence[int],
    interventions: Sequence[Intervention],
    *,
    read: Callable[[str], Sequence[int]] | None = None,
) -> ChangedOutput:
    """Search for the output of a changed model; it also scores that of the unchanged one.

    Two traces tell the same, but record everything: this is for a page that waits. `engine` runs the model.

    Raises:
        RequestError: the interventions do not fit the model and the text, or no output can be found.
    """
    bos, eos = subwords.bos_id, subwords.eos_id
    interventions = resolved(model, subwords, interventions, read=read)
    check(interventions, model.config, len(request.ids) + 1, None)
    changed = intervened(model, interventions)
    assert isinstance(changed, Transformer), "an intervention keeps the architecture"
    device = next(model.parameters()).device
    if changed is not model:
        engine = TorchEngine([changed], bos=bos, eos=eos, device=device)
    (running,) = engine.models  # the same weights, packed
    with recording_changed(running, interventions):
        (found,) = engine.decode([request], search)
        if not found:
            what = (
                "with these interventions the model's numbers are not finite, so that no output can be found"
            )
            raise RequestError(what, code="not_finite")
        outputs = list(dict.fromkeys([found[0].ids, tuple(intact)]))
        states_SD = running.encode(pack([(*request.ids, eos)], device)).states_SD.repeat(len(outputs), 1)
        boundaries = Boundaries.of_lengths([len(request.ids) + 1] * len(outputs), device)
        written = pack([(bos, *each) for each in outputs], device)
        states_ND = running.decode(written, Memory(states_SD, boundaries))
    log_probs_N = log_probs_of(running, states_ND, [token for each in outputs for token in (*each, eos)])
    sums = [float(part.sum()) for part in log_probs_N.split([len(each) + 1 for each in outputs])]
    return ChangedOutput(outputs[0], sums[0], sums[-1])


def continued(
    generator: Generator, prompt: list[int], most: int, interventions: Sequence[Intervention] = ()
) -> list[int]:
    """Continue a prompt greedily with the interventions in place, by at most `most` tokens.

    Raises:
        RequestError: the text would become too long, or the interventions do not fit the model.
    """
    model, subwords = generator.model, generator.subwords
    interventions = resolved(model, subwords, interventions)
    check(interventions, model.config, 0, None)
    changed = intervened(model, interventions)
    assert isinstance(changed, LanguageModel), "an intervention keeps the architecture"
    options = GenerateOptions(max_tokens=most, temperature=0)
    with recording_changed(changed, interventions):
        return Generator(changed, subwords).ids(prompt, options)
