"""Interventions applied: to the activations of a model, or to a copy that shares its weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.cancellation import raise_if_cancelled
from regard.config import ModelConfig
from regard.errors import RequestError
from regard.look.interventions.activations import Ablate, Activation, Add, Patch
from regard.look.interventions.interventions import (
    NEVER,
    Intervention,
    MaskSource,
    NoPositions,
    NoScale,
    Pin,
    SkipBlock,
    Uniform,
    change_scores,
    heads_off,
    masked_source,
)
from regard.look.trace.blocks import KINDS, place_of
from regard.model.fast.packed_weights import shared_copy
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.positional_encoding import Positions
from regard.model.taps import Replace, recording

if TYPE_CHECKING:
    from regard.bundle.weights import Model


def intervened(model: Model, interventions: Sequence[Intervention]) -> Model:
    """The model to run: the same, or one without positions that shares its weights.

    The model itself is not changed, so that others may use it at the same time.
    """
    if not any(isinstance(each, NoPositions) for each in interventions):
        return model
    # A copy of the modules themselves: they need not be those that the configuration describes.
    unplaced = shared_copy(model)
    unplaced.config = replace(model.config, positions="none")
    for side in ("input", "output"):
        if hasattr(unplaced, f"{side}_positions"):
            setattr(unplaced, f"{side}_positions", Positions(unplaced.config, causal=side == "output"))
    for module in unplaced.modules():
        if isinstance(module, MultiHeadAttention):
            module.turn = None
    return unplaced


class Changes:
    """Interventions as the `replace` of a recording; its `watch` learns where the tokens are."""

    def __init__(self, interventions: Sequence[Intervention], config: ModelConfig) -> None:
        self._on_attention = _on_attention(interventions, config)
        self._at: dict[str, list[tuple[int, Activation]]] = {}
        for i, each in enumerate(interventions):
            if isinstance(each, Activation):
                self._at.setdefault(each.at, []).append((i, each))
        self._places: dict[str, Tensor] = {}
        self._values: dict[int, Tensor] = {}

    def __call__(self, address: str, value: Tensor) -> Tensor:
        """The value to continue with."""
        value = self._on_attention(address, value)
        for i, each in self._at.get(address, ()):
            if i not in self._values:
                self._values[i] = torch.tensor(each.values, dtype=value.dtype, device=value.device)
            where, places = f"interventions[{i}] ({each.OP})", self._places.get(each.side)
            value = _changed(value, each, self._values[i], where, places)
        return value

    def watch(self, address: str, value: Tensor) -> None:
        """Remember the positions of the tokens that run now, of each side."""
        if address.endswith("_embedding.places"):
            self._places[address.removesuffix("_embedding.places")] = value


def _changed(value: Tensor, each: Activation, values: Tensor, where: str, places_N: Tensor | None) -> Tensor:
    """A copy of an activation with one intervention applied to the rows of its positions."""
    changed = value.clone(memory_format=torch.contiguous_format)
    if each.head is not None:
        rows_ND = changed[:, each.head]
    else:
        rows_ND = changed.view(len(changed), -1)
    if each.values and values.shape[1] != rows_ND.shape[1]:
        what = f"{where}: {each.at} has {rows_ND.shape[1]} numbers per token, values have {values.shape[1]}"
        raise RequestError(what, code="intervention_mismatch")
    if places_N is None:  # a label head, which belongs to the whole text
        places = [0] * len(rows_ND)
    else:  # several copies of a text may share one memory
        places = places_N.repeat(len(rows_ND) // len(places_N)).tolist()
    positions = range(len(values)) if isinstance(each, Patch) and each.positions is None else each.positions
    wanted = None if positions is None else {place: i for i, place in enumerate(positions)}
    rows = [i for i, place in enumerate(places) if wanted is None or place in wanted]
    if not rows:
        return changed
    match each:
        case Ablate(by="zero"):
            rows_ND[rows] = 0.0
        case Ablate(by="mean"):
            rows_ND[rows] = values[0]
        case Ablate():
            rows_ND[rows] = values[[each.drawn(places[i]) for i in rows]]
        case Add():
            rows_ND[rows] += each.scale * values[0]
        case Patch():
            assert wanted is not None, "a patch has as many positions as values"
            rows_ND[rows] = values[[wanted[places[i]] for i in rows]]
    return changed


def replacing(interventions: Sequence[Intervention], config: ModelConfig) -> Changes | None:
    """The `replace` and `watch` by which `recording` changes activations; None if nothing changes."""
    if all(isinstance(each, NoPositions) for each in interventions):  # which `intervened` applies
        return None
    return Changes(interventions, config)


def recording_changed(
    model: Model, interventions: Sequence[Intervention], then: Replace | None = None
) -> AbstractContextManager[object]:
    """Run a model with interventions, and with one more change after them; nothing is kept.

    Each run is a step of a computation that can be cancelled.
    """
    raise_if_cancelled()
    changes = replacing(interventions, model.config)
    if changes is None:
        return nullcontext() if then is None else recording(model, then, keep=())

    def both(address: str, value: Tensor) -> Tensor:
        value = changes(address, value)
        return value if then is None else then(address, value)

    return recording(model, both, keep=(), watch=changes.watch)


def _on_attention(interventions: Sequence[Intervention], config: ModelConfig) -> Replace:
    """The changes of heads, scores and blocks."""
    hidden = masked_source(interventions)
    rescored = any(isinstance(each, Uniform | Pin | MaskSource | NoScale) for each in interventions)

    def change(address: str, value: Tensor) -> Tensor:
        place = place_of(address)
        if place is None:
            return value
        block, layer, name = place
        if name == "output" and SkipBlock(block=block, layer=layer) in interventions:
            return torch.zeros_like(value)
        if name == "heads" and (off := heads_off(interventions, block, layer)):
            value = value.clone()
            value[..., off, :] = 0.0
        if rescored and name == "scores" and block in KINDS:
            scores = wide_copy(value)
            for head in range(config.n_heads):
                change_scores(scores[:, head], interventions, config, block, layer, head)
            if block != "decoder":
                scores[..., hidden] = NEVER
            return narrowed(scores, value.dtype)
        return value

    return change


def wide_copy(scores: Tensor) -> Tensor:
    """A copy of scores in at least float32: float16 does not reach `NEVER`."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32), copy=True)


def narrowed(scores: Tensor, dtype: torch.dtype) -> Tensor:
    """Scores in their original dtype, clamped to its range."""
    return scores.clamp(min=torch.finfo(dtype).min).to(dtype)
