"""How much each token read had to do with one token written, by several measures that need not agree.

They look at the inputs; of the decoder alone, at the tokens before. With `prefix` a translator is asked for
both: the inputs, then what it had written. Attention says where a model looks and not what it makes of it, so
here the model itself is asked: by gradients, or by taking tokens away. Which of the measures to trust for a
text, `deletion_curve` tells. A row is a place in `Trace.wanted`; what comes after it has no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

import numpy as np
import torch
from torch import Tensor

from regard.errors import RequestError
from regard.look.influence.attention import Mixing, heads_on, mean_attention, norm_weighted, rollout
from regard.look.influence.methods import METHODS, InfluenceMeasures
from regard.look.interventions.ablation import (
    copies_at_once,
    each_copy,
    log_probs_of_copies,
    model_of_trace,
)
from regard.look.interventions.apply import narrowed, wide_copy
from regard.look.interventions.interventions import NEVER
from regard.look.trace.blocks import BlockName, Kind, layers_of, place_of
from regard.look.trace.tokens import Tokens

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace.data import TraceData


STEPS = 64
"""Points of the way from nothing to the text, at which integrated gradients take one."""
LOOKED_AT: dict[str, tuple[BlockName, ...]] = {"input": ("encoder", "cross"), "output": ("decoder",)}
"""The blocks in which the tokens of a side are looked at."""
Taking = Callable[[str, Tensor, Tensor], Tensor]
"""Takes tokens away from a block: an activation's name, its value, and which tokens (copies, tokens)."""


def gradient_times_input(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """For each token read, the gradient of the log-probability along its embedding."""
    return _along_embeddings(model, trace, row, torch.ones(1), prefix=prefix)


def integrated_gradients(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The same, as a mean over the way from empty embeddings to those that were read (Sundararajan, 2017).

    Positions stay where they are. The numbers add up to what the embeddings changed in the log-probability.
    """
    return _along_embeddings(model, trace, row, (torch.arange(STEPS) + 0.5) / STEPS, prefix=prefix)


def value_zeroing(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """What the log-probability loses when a token is looked at as before, but hands over nothing."""
    return _lost_without_each(model, trace, row, _zero_values, prefix=prefix)


def leave_one_out(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """What the log-probability loses when nothing may look at a token; attention goes to the others."""
    return _lost_without_each(model, trace, row, _mask, prefix=prefix)


def deletion_curve(
    model: Model,
    trace: TraceData,
    row: int,
    influence: np.ndarray,
    *,
    prefix: bool = False,
    counts: Sequence[int] | None = None,
) -> np.ndarray:
    """The token's log-probability with 0, 1, 2 … of the most influential tokens masked; the last one stays.

    A measure that found the right tokens makes the curve fall early: the lower its mean, the better. With
    `prefix` the last one of each side stays, as attention must go somewhere. With `counts`, only where so
    many are masked.
    """
    sides, seen = read_of(trace, prefix=prefix), seen_of(trace, row, prefix=prefix)
    if np.shape(influence) != (len(seen),):
        shape = np.shape(influence)
        raise RequestError(f"influence has the shape {shape}; there are {len(seen)} tokens to delete")
    order = np.argsort(-np.asarray(influence), kind="stable")
    of_side = np.repeat(np.arange(len(sides)), [len(side) for side in sides.values()])
    ranked = [order[seen[order] & (of_side[order] == side)] for side in range(len(sides))]
    stays = {int(tokens[-1]) for tokens in ranked}
    goes = [i for i in order.tolist() if seen[i] and i not in stays]
    taken = torch.zeros(len(goes) + 1, len(seen), dtype=torch.bool)
    for i, token in enumerate(goes, start=1):
        taken[i:, token] = True
    if counts is not None:
        taken = taken[list(counts)]
    return _log_probs_without(model, trace, row, taken, _mask, prefix=prefix)


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Whether two measures put tokens in the same order: Spearman's correlation of their ranks, -1 to 1.

    Tokens that a measure holds for equal share a rank. 0 where one of the two puts no token before another.
    """
    a, b = (_ranks(each) for each in (one, other))
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """Each value's place among all of them, from the middle: how many are below it less how many above."""
    values = np.asarray(values)
    found: np.ndarray = np.sign(values[:, None] - values).sum(axis=1)
    return found


def read_of(trace: TraceData, *, prefix: bool = False) -> dict[str, Tokens]:
    """The sides whose tokens have an influence, by name, in the order in which numbers tell of them."""
    sides = {"input": trace.inputs, "output": trace.outputs if prefix or trace.inputs is None else None}
    return {name: side for name, side in sides.items() if side is not None}


def seen_of(trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """Which of the tokens were there when the row's token was written: bool, a place for each token.

    Raises:
        RequestError: there is no such row.
    """
    if not 0 <= row < len(trace.targets):
        raise RequestError(f"no row {row}: what was written goes from 0 to {len(trace.targets) - 1}")
    sides = read_of(trace, prefix=prefix)
    return np.concatenate([(np.arange(len(side)) <= row) | (name == "input") for name, side in sides.items()])


def _lost_without_each(model: Model, trace: TraceData, row: int, take: Taking, *, prefix: bool) -> np.ndarray:
    """What the log-probability loses with each token by itself taken away."""
    seen = seen_of(trace, row, prefix=prefix)
    taken = torch.eye(len(seen), dtype=torch.bool)[torch.from_numpy(seen)]
    lost = np.zeros(len(seen))
    lost[seen] = trace.log_probs[row] - _log_probs_without(model, trace, row, taken, take, prefix=prefix)
    return lost


@torch.inference_mode()
def _log_probs_without(
    model: Model, trace: TraceData, row: int, taken: Tensor, take: Taking, *, prefix: bool
) -> np.ndarray:
    """The log-probability of the row's token, once for each row of `taken`, (copies, tokens)."""
    model = model_of_trace(model, trace)
    sides = read_of(trace, prefix=prefix)
    found = np.zeros(len(taken))
    for places in _batches(taken[:, : len(sides.get("input", ()))], copies_at_once(trace)):
        part = taken[places].to(next(model.parameters()).device)
        of_sides = part.split([len(side) for side in sides.values()], dim=1)
        of_block = {
            block: of_side
            for name, of_side in zip(sides, of_sides, strict=True)
            if of_side.any()
            for block in LOOKED_AT[name]
        }

        def change(address: str, value: Tensor, of_block: dict[BlockName, Tensor] = of_block) -> Tensor:
            place = place_of(address)
            if place is None or place.block not in of_block:
                return value
            return take(place.name, value, of_block[place.block])

        one_memory = "encoder" not in of_block
        log_probs = log_probs_of_copies(
            model, trace, len(part), change, slice(row, row + 1), one_memory=one_memory
        )
        found[places.numpy()] = log_probs.cpu().numpy()
    return found


def _batches(taken_of_inputs: Tensor, size: int) -> Iterator[Tensor]:
    """The numbers of copies; apart, those that leave the inputs alone: the encoder runs once for them all."""
    reads = taken_of_inputs.any(dim=1)
    for which in (~reads, reads):
        yield from (places for places in which.nonzero()[:, 0].split(size) if len(places))


def _zero_values(name: str, value: Tensor, taken: Tensor) -> Tensor:
    if name != "v":
        return value
    values = each_copy(value, len(taken))
    values[taken] = 0.0
    return values.flatten(0, 1)


def _mask(name: str, value: Tensor, taken: Tensor) -> Tensor:
    if name != "scores":
        return value
    return narrowed(wide_copy(value).masked_fill_(taken[:, None, None], NEVER), value.dtype)


def _along_embeddings(
    model: Model, trace: TraceData, row: int, shares: Tensor, *, prefix: bool
) -> np.ndarray:
    """The mean gradient, where only these shares of the embeddings are there, along the embeddings."""
    model, seen = model_of_trace(model, trace), seen_of(trace, row, prefix=prefix)
    device = next(model.parameters()).device
    names = [f"{side}_embedding.embedded" for side in read_of(trace, prefix=prefix)]
    embedded = [torch.tensor(trace.arrays[name], device=device) for name in names]
    totals = [torch.zeros_like(each) for each in embedded]
    with torch.enable_grad():
        for part in shares.split(max(1, copies_at_once(trace) // 4)):  # a gradient keeps every activation
            scaled = [
                (part.to(each_ND)[:, None, None] * each_ND).flatten(0, 1).requires_grad_()
                for each_ND in embedded
            ]
            instead = dict(zip(names, scaled, strict=True))
            log_probs = log_probs_of_copies(model, trace, len(part), instead.get, slice(row, row + 1))
            # Where interventions cut the way from what was read, nothing has any influence.
            gradients = torch.autograd.grad(log_probs.sum(), scaled, materialize_grads=True)
            for total, gradient in zip(totals, gradients, strict=True):
                total += gradient.unflatten(0, (len(part), -1)).sum(0)
    found = [(each * total).sum(-1) / len(shares) for each, total in zip(embedded, totals, strict=True)]
    return np.where(seen, torch.cat(found).cpu().numpy(), 0.0)


POINTS = 16
"""Of a deletion curve, behind its first: a long text is masked several tokens at a time."""


def measure_influence(model: Model, trace: TraceData, row: int) -> InfluenceMeasures:
    """Every measure of what was read, what was written before included.

    Raises:
        RequestError: there is no such row, or the trace cannot have come from this model.
    """
    values = {method: influence_by(method, model, trace, row, prefix=True) for method in METHODS}
    seen = seen_of(trace, row, prefix=True)
    most = int(seen.sum()) - len(read_of(trace, prefix=True))  # the last one of each side stays
    masked = tuple(np.unique(np.linspace(0, most, min(most, POINTS) + 1).round().astype(int)).tolist())
    curves = {
        method: deletion_curve(model, trace, row, each, prefix=True, counts=masked)
        for method, each in values.items()
    }
    found = [each[seen] for each in values.values()]
    return InfluenceMeasures(
        values, masked, curves, np.array([[agreement(one, other) for other in found] for one in found])
    )


def influence_by(
    method: str, model: Model, trace: TraceData, row: int, *, prefix: bool = False
) -> np.ndarray:
    """The influence of each token by one measure; with `prefix`, of what a translator had written as well.

    Raises:
        RequestError: there is no such measure or row, or the trace cannot have come from this model.
    """
    name = next((each for each in METHODS if each == method), None)
    if name is None:
        raise RequestError(f"there is no measure {method!r} of influence; there are {', '.join(METHODS)}")
    match name:
        case "attention":
            return _looked(trace, row, mean_attention(trace), prefix=prefix)
        case "norms":
            return _looked(trace, row, norm_weighted(model, trace), prefix=prefix)
        case "rollout":
            return _rolled_out(trace, row, prefix=prefix)
        case "gradient-x-input":
            return gradient_times_input(model, trace, row, prefix=prefix)
        case "integrated-gradients":
            return integrated_gradients(model, trace, row, prefix=prefix)
        case "value-zeroing":
            return value_zeroing(model, trace, row, prefix=prefix)
        case "leave-one-out":
            return leave_one_out(model, trace, row, prefix=prefix)
        case other:
            assert_never(other)


def _looked(trace: TraceData, row: int, mixing: Mixing, *, prefix: bool) -> np.ndarray:
    """What a row took from each token, in the mean over the blocks in which it looks at them: shares of 1."""
    seen_of(trace, row)  # which refuses a row that there is not
    kinds: dict[str, Kind] = {"input": "encoder" if trace.outputs is None else "cross", "output": "decoder"}
    sides = read_of(trace, prefix=prefix)
    found = []
    for name, side in sides.items():
        layers = [i for i in range(layers_of(trace.config, kinds[name])) if heads_on(trace, kinds[name], i)]
        rows = [mixing(kinds[name], layer)[row] for layer in layers]
        found.append(np.mean(rows, axis=0) if rows else np.zeros(len(side)))
    return np.concatenate(found) / len(sides)


def _rolled_out(trace: TraceData, row: int, *, prefix: bool) -> np.ndarray:
    seen_of(trace, row)
    of_inputs, of_outputs = rollout(trace)
    of_side = {"input": of_inputs, "output": of_outputs}
    shares = [of_side[name] for name in read_of(trace, prefix=prefix)]
    return np.concatenate([each[row] for each in shares if each is not None])
