"""How much each token read had to do with one token written, by several measures that need not agree.

They look at the inputs; of the decoder alone, at the tokens before. Attention says where a model looks and
not what it makes of it, so here the model itself is asked: by gradients, or by taking tokens away. Which of
the measures to trust for a text, `deletion_curve` tells. A row is a place in `Trace.wanted`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.errors import RequestError
from regard.look.blocks import BlockName, place_of
from regard.look.copies import batches, copies_at_once, each_copy, log_probs_of_copies, model_of_trace
from regard.look.intervening import narrowed, wide_copy
from regard.look.interventions import NEVER

if TYPE_CHECKING:
    from regard.bundle.weights import Model
    from regard.look.trace import Trace

STEPS = 64
"""Points of the way from nothing to the text, at which integrated gradients take one."""


def gradient_times_input(model: Model, trace: Trace, row: int) -> np.ndarray:
    """For each token read, the gradient of the log-probability along its embedding."""
    embedded_ND, gradient_ND = _gradients(model, trace, row, torch.ones(1))
    found: np.ndarray = (embedded_ND * gradient_ND).sum(-1)
    return found


def integrated_gradients(model: Model, trace: Trace, row: int) -> np.ndarray:
    """The same, as a mean over the way from empty embeddings to those that were read (Sundararajan, 2017).

    Positions stay where they are. The numbers add up to what the embeddings changed in the log-probability.
    """
    embedded_ND, gradient_ND = _gradients(model, trace, row, (torch.arange(STEPS) + 0.5) / STEPS)
    found: np.ndarray = (embedded_ND * gradient_ND).sum(-1)
    return found


@torch.inference_mode()
def value_zeroing(model: Model, trace: Trace, row: int) -> np.ndarray:
    """What the log-probability loses when a token is looked at as before, but hands over nothing."""
    model, kinds = model_of_trace(model, trace), _looked_at(trace)
    _check_row(trace, row)
    found = []
    for tokens in batches(_n_read(trace), copies_at_once(trace)):

        def change(address: str, value: Tensor, tokens: Tensor = tokens) -> Tensor:
            place = place_of(address)
            if place is None or place.name != "v" or place.block not in kinds:
                return value
            values = each_copy(value, len(tokens))
            values[torch.arange(len(tokens)), tokens] = 0.0
            return values.flatten(0, 1)

        found.append(log_probs_of_copies(model, trace, len(tokens), change, slice(row, row + 1)))
    lost: np.ndarray = trace.log_probs[row] - torch.cat(found).cpu().numpy()
    return lost


@torch.inference_mode()
def deletion_curve(model: Model, trace: Trace, row: int, influence: np.ndarray) -> np.ndarray:
    """The token's log-probability with 0, 1, 2 … of the most influential tokens masked; the last one stays.

    A measure that found the right tokens makes the curve fall early: the lower its mean, the better.
    """
    model, kinds = model_of_trace(model, trace), _looked_at(trace)
    _check_row(trace, row)
    n = _n_read(trace)
    if np.shape(influence) != (n,):
        raise RequestError(f"influence has the shape {np.shape(influence)}; there are {n} tokens to delete")
    seen = n if trace.inputs is not None else row + 1  # what comes later has no part in it
    order = torch.from_numpy(np.argsort(-np.asarray(influence)[:seen], kind="stable").copy())
    device = next(model.parameters()).device
    found = []
    for counts in batches(seen, copies_at_once(trace)):
        masked = torch.zeros(len(counts), n, dtype=torch.bool)
        for i, count in enumerate(counts.tolist()):
            masked[i, order[:count]] = True
        masked_BHLM = masked[:, None, None].to(device)

        def change(address: str, value: Tensor, masked_BHLM: Tensor = masked_BHLM) -> Tensor:
            place = place_of(address)
            if place is None or place.name != "scores" or place.block not in kinds:
                return value
            return narrowed(wide_copy(value).masked_fill_(masked_BHLM, NEVER), value.dtype)

        found.append(log_probs_of_copies(model, trace, len(counts), change, slice(row, row + 1)))
    curve: np.ndarray = torch.cat(found).cpu().numpy()
    return curve


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


def _gradients(model: Model, trace: Trace, row: int, shares: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The embeddings that were read, and the mean gradient where only these shares of them are there."""
    model = model_of_trace(model, trace)
    _check_row(trace, row)
    at = f"{'output' if trace.inputs is None else 'input'}_embedding"
    parameter = next(model.parameters())
    embedded_ND = torch.tensor(trace.arrays[f"{at}.embedded"], device=parameter.device)
    total_ND = torch.zeros_like(embedded_ND)
    with torch.enable_grad():
        for part in shares.split(max(1, copies_at_once(trace) // 4)):  # a gradient keeps every activation
            x = (part.to(embedded_ND)[:, None, None] * embedded_ND).flatten(0, 1).requires_grad_()

            def change(address: str, value: Tensor, x: Tensor = x) -> Tensor:
                return x if address == f"{at}.embedded" else value

            log_probs = log_probs_of_copies(model, trace, len(part), change, slice(row, row + 1))
            # Where interventions cut the way from what was read, nothing has any influence.
            (gradient,) = torch.autograd.grad(log_probs.sum(), x, materialize_grads=True)
            total_ND += gradient.unflatten(0, (len(part), -1)).sum(0)
    return embedded_ND.cpu().numpy(), (total_ND / len(shares)).cpu().numpy()


def _looked_at(trace: Trace) -> tuple[BlockName, ...]:
    """The blocks in which the tokens that were read are looked at."""
    return ("decoder",) if trace.inputs is None else ("encoder", "cross")


def _n_read(trace: Trace) -> int:
    side = trace.outputs if trace.inputs is None else trace.inputs
    assert side is not None, "a trace has a side"
    return len(side)


def _check_row(trace: Trace, row: int) -> None:
    if not 0 <= row < len(trace.wanted):
        raise RequestError(f"no row {row}: what was written goes from 0 to {len(trace.wanted) - 1}")
