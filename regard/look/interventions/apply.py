"""Interventions applied: to the activations of a model, or to a copy that shares its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.engine.generator import Generator
from regard.engine.options import GenerateOptions
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
    check,
    heads_off,
    masked_source,
)
from regard.look.trace.blocks import KINDS, place_of
from regard.model.fast.packed_weights import shared_copy
from regard.model.language_model import LanguageModel
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


def replacing(interventions: Sequence[Intervention], config: ModelConfig) -> Replace | None:
    """The function by which `recording` changes activations; None if nothing changes."""
    if all(isinstance(each, NoPositions) for each in interventions):  # which `intervened` applies
        return None
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


def continued(
    generator: Generator, prompt: list[int], most: int, interventions: Sequence[Intervention] = ()
) -> list[int]:
    """Continue a prompt greedily with the interventions in place, by at most `most` tokens.

    Raises:
        RequestError: the text would become too long, or the interventions do not fit the model.
    """
    check(interventions, generator.model.config, 0, None)
    changed = intervened(generator.model, interventions)
    assert isinstance(changed, LanguageModel), "an intervention keeps the architecture"
    change = replacing(interventions, changed.config)
    options = GenerateOptions(max_tokens=most, temperature=0)
    with recording(changed, change, keep=()):
        return Generator(changed, generator.subwords).ids(prompt, options)
