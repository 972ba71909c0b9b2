"""The influence of each token read on one token written, by methods that need not agree.

Influence is computed for the inputs, or for the preceding tokens of a language model; with `prefix`, for the
inputs and then the outputs written so far. Attention shows where a model attends, not what it uses, so other
methods ask the model itself: by gradients, or by removing tokens. `deletion_curve` shows which method to
trust for a text. A row is an index of `Trace.targets`; later tokens have no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.errors import RequestError
from regard.look.influence import MOST_STEPS, STEPS
from regard.look.influence.attention import Mixing, heads_on, mean_attention, norm_weighted, rollout
from regard.look.influence.methods import METHODS, Convergence, Influence, InfluenceMeasures
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


FIRST_STEPS = 33
"""Points of integrated gradients before intervals are halved."""
DELTA = 0.005
"""Relative delta at which integrated gradients stop, …"""
ROUGH = 0.1
"""… if the errors of all intervals, which may cancel in the delta, are below this share of all changes."""
ATTENDED_IN: dict[str, tuple[BlockName, ...]] = {"input": ("encoder", "cross"), "output": ("decoder",)}
"""The blocks that attend to the tokens of a side."""
POINTS = 16
"""Most points of a deletion curve after the first; of a long text, several tokens are masked at a time."""
Remove = Callable[[str, Tensor, Tensor], Tensor]
"""Removes tokens from a block: the name of an activation, its value, and the tokens (copies, tokens)."""


def gradient_times_input(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The gradient of the log-probability times the embedding, for each token."""
    values, _ = _along_embeddings(model, trace, row, np.ones(1), prefix=prefix)
    return values[0]


def integrated_gradients(
    model: Model, trace: TraceData, row: int, *, prefix: bool = False, steps: int = STEPS
) -> Influence:
    """The same, averaged on the path from zero embeddings to the actual ones (Sundararajan et al., 2017).

    Positions are kept. The values add up to the change of the log-probability due to the embeddings, up to
    the `convergence` of the result. The gradient jumps along the path, as a ReLU's does, so that rules of a
    high order do not help. But the change over each interval between two points is known, and so is the error
    of the trapezoid over it: the intervals with the largest errors are halved until the errors are small, or
    `steps` points are used.

    Raises:
        RequestError: there is no such row, steps are out of range, or the trace is of another model.
    """
    if not 2 <= steps <= MOST_STEPS:
        raise RequestError(f"steps = {steps} must be from 2 to {MOST_STEPS:,}", code="bad_option")
    # Norms make small embeddings large again, so that most happens near 0.
    shares = np.linspace(0, 1, min(FIRST_STEPS, steps)) ** 2
    slopes, log_probs = _along_embeddings(model, trace, row, shares, prefix=prefix)
    while True:
        widths, changes = np.diff(shares), np.diff(log_probs)
        errors = widths * (slopes[:-1] + slopes[1:]).sum(-1) / 2 - changes
        change, delta = float(changes.sum()), float(errors.sum())
        done = abs(delta) <= DELTA * abs(change) and np.abs(errors).sum() <= ROUGH * np.abs(changes).sum()
        room = min(max(1, len(shares) // 4), steps - len(shares))
        if done or not room:
            break
        worst = np.argsort(-np.abs(errors), kind="stable")[:room]
        new = (shares[worst] + shares[worst + 1]) / 2
        found = _along_embeddings(model, trace, row, new, prefix=prefix)
        order = np.argsort(np.concatenate([shares, new]), kind="stable")
        shares = np.concatenate([shares, new])[order]
        slopes, log_probs = (
            np.concatenate([slopes, found[0]])[order],
            np.concatenate([log_probs, found[1]])[order],
        )
    values = widths @ (slopes[:-1] + slopes[1:]) / 2
    return Influence.of(values, Convergence(len(shares), change, delta))


def value_zeroing(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The loss of log-probability if the values of a token are 0 and the attention to it is unchanged."""
    return _lost_without_each(model, trace, row, _zero_values, prefix=prefix)


def leave_one_out(model: Model, trace: TraceData, row: int, *, prefix: bool = False) -> np.ndarray:
    """The loss of log-probability if a token is masked; its attention goes to the others."""
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
    """The log-probability with 0, 1, 2 … of the most influential tokens masked; the last one is kept.

    The curve of a good method falls early: the lower its mean, the better. With `prefix` the last token of
    each side is kept, since attention must go somewhere. With `counts`, only these numbers of masked tokens.
    """
    sides, seen = read_of(trace, prefix=prefix), seen_of(trace, row, prefix=prefix)
    if np.shape(influence) != (len(seen),):
        what = f"influence has the shape {np.shape(influence)}; the text has {len(seen)} tokens"
        raise RequestError(what, code="trace_mismatch")
    order = np.argsort(-np.asarray(influence), kind="stable")
    of_side = np.repeat(np.arange(len(sides)), [len(side) for side in sides.values()])
    ranked = [order[seen[order] & (of_side[order] == side)] for side in range(len(sides))]
    kept = {int(tokens[-1]) for tokens in ranked}
    order_masked = [i for i in order.tolist() if seen[i] and i not in kept]
    taken = torch.zeros(len(order_masked) + 1, len(seen), dtype=torch.bool)
    for i, token in enumerate(order_masked, start=1):
        taken[i:, token] = True
    if counts is not None:
        taken = taken[list(counts)]
    return _log_probs_without(model, trace, row, taken, _mask, prefix=prefix)


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation of two measures, -1 to 1; 0 if one of them is constant."""
    a, b = (_ranks(each) for each in (one, other))
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value, centred: the number of smaller values less the number of larger ones."""
    values = np.asarray(values)
    ranks: np.ndarray = np.sign(values[:, None] - values).sum(axis=1)
    return ranks


def read_of(trace: TraceData, *, prefix: bool) -> dict[str, Tokens]:
    """The sides whose tokens have an influence, by name, in the order of the values."""
    sides = {"input": trace.inputs, "output": trace.outputs if prefix or trace.inputs is None else None}
    return {name: side for name, side in sides.items() if side is not None}


def seen_of(trace: TraceData, row: int, *, prefix: bool) -> np.ndarray:
    """Whether each token was known when the token of the row was predicted: bool.

    Raises:
        RequestError: there is no such row.
    """
    if not 0 <= row < len(trace.targets):
        what = f"no row {row}; the output has rows 0 to {len(trace.targets) - 1}"
        raise RequestError(what, code="unknown_place")
    sides = read_of(trace, prefix=prefix)
    return np.concatenate([(np.arange(len(side)) <= row) | (name == "input") for name, side in sides.items()])


def _lost_without_each(model: Model, trace: TraceData, row: int, take: Remove, *, prefix: bool) -> np.ndarray:
    """The loss of log-probability with each token alone removed."""
    seen = seen_of(trace, row, prefix=prefix)
    taken = torch.eye(len(seen), dtype=torch.bool)[torch.from_numpy(seen)]
    lost = np.zeros(len(seen))
    lost[seen] = trace.log_probs[row] - _log_probs_without(model, trace, row, taken, take, prefix=prefix)
    return lost


@torch.inference_mode()
def _log_probs_without(
    model: Model, trace: TraceData, row: int, taken: Tensor, take: Remove, *, prefix: bool
) -> np.ndarray:
    """The log-probability of the row's token for each copy; `taken` (copies, tokens) are removed."""
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
            for block in ATTENDED_IN[name]
        }

        def change(address: str, value: Tensor, of_block: dict[BlockName, Tensor] = of_block) -> Tensor:
            place = place_of(address)
            if place is None or place.block not in of_block:
                return value
            return take(place.name, value, of_block[place.block])

        one_memory = "encoder" not in of_block
        log_probs = log_probs_of_copies(
            model, trace, len(part), change if of_block else None, slice(row, row + 1), one_memory=one_memory
        )
        found[places.numpy()] = log_probs.cpu().numpy()
    return found


def _batches(taken_of_inputs: Tensor, size: int) -> Iterator[Tensor]:
    """Indices of copies in batches; copies with unchanged inputs come separately and share the encoder."""
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
    model: Model, trace: TraceData, row: int, shares: np.ndarray, *, prefix: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient at each share of the embeddings times the embeddings, (shares, tokens).

    Also returns the log-probability at each share.
    """
    model, seen = model_of_trace(model, trace), seen_of(trace, row, prefix=prefix)
    device = next(model.parameters()).device
    names = [f"{side}_embedding.embedded" for side in read_of(trace, prefix=prefix)]
    embedded = [torch.tensor(trace.arrays[name], device=device) for name in names]
    found, found_log_probs = [], []
    with torch.enable_grad():
        for part in torch.from_numpy(shares).split(max(1, copies_at_once(trace) // 4)):  # for activations
            scaled = [
                (part.to(embedded_ND)[:, None, None] * embedded_ND).flatten(0, 1).requires_grad_()
                for embedded_ND in embedded
            ]
            instead = dict(zip(names, scaled, strict=True))
            log_probs = log_probs_of_copies(model, trace, len(part), instead.get, slice(row, row + 1))
            # Zero where interventions cut the path from the inputs.
            gradients = torch.autograd.grad(log_probs.sum(), scaled, materialize_grads=True)
            products = [
                (gradient.unflatten(0, (len(part), -1)) * embedded_ND).sum(-1)
                for gradient, embedded_ND in zip(gradients, embedded, strict=True)
            ]
            found.append(torch.cat(products, dim=1).cpu().double().numpy())
            found_log_probs.append(log_probs.detach().cpu().double().numpy())
    return np.where(seen, np.concatenate(found), 0.0), np.concatenate(found_log_probs)


def measure_influence(model: Model, trace: TraceData, row: int, *, steps: int = STEPS) -> InfluenceMeasures:
    """Influence by every method, including the outputs written so far; `steps` of integrated gradients.

    Raises:
        RequestError: there is no such row, or the trace is of another model.
    """
    values = {method: influence_by(method, model, trace, row, prefix=True, steps=steps) for method in METHODS}
    convergence = values["integrated-gradients"].convergence
    assert convergence is not None, "integrated gradients have one"
    seen = seen_of(trace, row, prefix=True)
    most = int(seen.sum()) - len(read_of(trace, prefix=True))  # the last one of each side stays
    masked = tuple(np.unique(np.linspace(0, most, min(most, POINTS) + 1).round().astype(int)).tolist())
    curves = {
        method: deletion_curve(model, trace, row, each, prefix=True, counts=masked)
        for method, each in values.items()
    }
    found = [each[seen] for each in values.values()]
    agreements = np.array([[agreement(one, other) for other in found] for one in found])
    return InfluenceMeasures(dict(values), masked, curves, agreements, convergence)


def influence_by(
    method: str, model: Model, trace: TraceData, row: int, *, prefix: bool = False, steps: int = STEPS
) -> Influence:
    """The influence of each token by one method; with `prefix`, also of the outputs written so far.

    Integrated gradients evaluate the gradient at `steps` points; the result has their convergence.

    Raises:
        RequestError: there is no such method or row, or the trace is of another model.
    """
    match method:
        case "attention":
            return Influence.of(_mean_mixing(trace, row, mean_attention(trace), prefix=prefix))
        case "norms":
            return Influence.of(_mean_mixing(trace, row, norm_weighted(model, trace), prefix=prefix))
        case "rollout":
            return Influence.of(_rollout_row(trace, row, prefix=prefix))
        case "gradient-x-input":
            return Influence.of(gradient_times_input(model, trace, row, prefix=prefix))
        case "integrated-gradients":
            return integrated_gradients(model, trace, row, prefix=prefix, steps=steps)
        case "value-zeroing":
            return Influence.of(value_zeroing(model, trace, row, prefix=prefix))
        case "leave-one-out":
            return Influence.of(leave_one_out(model, trace, row, prefix=prefix))
    what = f"there is no method {method!r} of influence; there are {', '.join(METHODS)}"
    raise RequestError(what, code="unknown_method")


def _mean_mixing(trace: TraceData, row: int, mixing: Mixing, *, prefix: bool) -> np.ndarray:
    """The share of each token in a row, averaged over the blocks that attend to it; shares sum to 1."""
    seen_of(trace, row, prefix=prefix)  # checks the row
    kinds: dict[str, Kind] = {"input": "encoder" if trace.outputs is None else "cross", "output": "decoder"}
    sides = read_of(trace, prefix=prefix)
    found = []
    for name, side in sides.items():
        layers = [i for i in range(layers_of(trace.config, kinds[name])) if heads_on(trace, kinds[name], i)]
        rows = [mixing(kinds[name], layer)[row] for layer in layers]
        found.append(np.mean(rows, axis=0) if rows else np.zeros(len(side)))
    return np.concatenate(found) / len(sides)


def _rollout_row(trace: TraceData, row: int, *, prefix: bool) -> np.ndarray:
    seen_of(trace, row, prefix=prefix)
    of_inputs, of_outputs = rollout(trace)
    of_side = {"input": of_inputs, "output": of_outputs}
    shares = [of_side[name] for name in read_of(trace, prefix=prefix)]
    return np.concatenate([each[row] for each in shares if each is not None])
