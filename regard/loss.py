"""Label-smoothed cross-entropy on packed tokens (5.4), without the whole logit matrix in memory.

The output layer and the loss are one function here. It processes the tokens in slices: logits, softmax, loss
and gradients of one slice, whose logits are then freed. Value and gradients equal those of `F.cross_entropy`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import RequestError, ShapeError

CPU_SLICE = 8 * 1024 * 1024
"""Logits in one slice on a CPU; larger ones gained nothing measurable."""
GPU_SLICE = 512 * 1024 * 1024


class Loss(NamedTuple):
    """Sums over tokens, so that batches and machines can be added up before dividing."""

    smoothed: Tensor
    """The loss to minimise; it carries the gradient."""
    nll: Tensor
    """Negative log-likelihood of the targets without smoothing; exp of its mean is the perplexity."""
    correct: Tensor
    """Tokens whose target was more probable than every other token; a tie does not count."""


def label_smoothed_cross_entropy(
    states_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    smoothing: float = 0.0,
    *,
    bias_V: Tensor | None = None,
    counted_N: Tensor | None = None,
) -> Loss:
    """Loss of predicting `targets_N` with softmax(states Wᵀ + b), summed over tokens.

    The target distribution gives 1 - smoothing to the target and spreads the rest evenly over all V. Tokens
    where `counted_N` is False do not count.
    """
    N, V = states_ND.shape[0], weight_VD.shape[0]
    if states_ND.dim() != 2 or states_ND.shape[1] != weight_VD.shape[1]:
        expected = f"(tokens, d_model) with d_model = {weight_VD.shape[1]}, as the weights have"
        raise ShapeError("states_ND", expected, tuple(states_ND.shape), code="bad_shape")
    if N == 0:
        raise ShapeError("states_ND", "at least one token", 0, code="no_tokens")
    if bias_V is not None and bias_V.shape != (V,):
        expected = f"one number for each of {V} classes"
        raise ShapeError("bias_V", expected, tuple(bias_V.shape), code="bad_shape")
    if targets_N.shape != (N,):
        expected = f"one id for each of {N} states"
        raise ShapeError("targets_N", expected, tuple(targets_N.shape), code="bad_shape")
    if counted_N is not None and counted_N.shape != (N,):
        expected = f"one flag for each of {N} states"
        raise ShapeError("counted_N", expected, tuple(counted_N.shape), code="bad_shape")
    if not 0.0 <= smoothing < 1.0:
        raise ShapeError("smoothing", "at least 0 and below 1", smoothing, code="bad_value")
    on_host = targets_N.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_host and not 0 <= int(targets_N.min()) <= int(targets_N.max()) < V:
        got = f"{targets_N.min()} to {targets_N.max()}"
        raise ShapeError("targets_N", f"token ids from 0 to {V - 1}", got, code="id_out_of_range")
    inputs = (states_ND, weight_VD, bias_V, targets_N, counted_N, smoothing, torch.is_grad_enabled())
    return Loss(*_SlicedLoss.apply(*inputs))


def is_most_probable(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """Whether each target has a higher logit than every other class; a tie is not a hit."""
    target_logit_N = logits_NV.gather(1, targets_N[:, None])[:, 0]
    return target_logit_N > logits_NV.scatter(1, targets_N[:, None], -torch.inf).amax(dim=-1)


class _SlicedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        targets_N: Tensor,
        counted_N: Tensor | None,
        smoothing: float,
        learning: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        V = weight_VD.shape[0]
        rows = max(1, (CPU_SLICE if states_ND.device.type == "cpu" else GPU_SLICE) // V)
        w_VD = weight_VD.to(states_ND.dtype)
        b_V = None if bias_V is None else bias_V.to(states_ND.dtype)
        wants_x, wants_w, wants_b = (learning and wanted for wanted in ctx.needs_input_grad[:3])
        grad_x = torch.empty_like(states_ND) if wants_x else None
        grad_w = torch.zeros_like(weight_VD) if wants_w else None
        grad_b = torch.zeros_like(bias_V) if bias_V is not None and wants_b else None
        # The sum of a token's logits is its product with the sum of all rows: V times fewer additions.
        sum_w_D = w_VD.sum(dim=0, dtype=torch.promote_types(w_VD.dtype, torch.float32)).to(w_VD.dtype)
        sum_b = 0.0 if b_V is None else b_V.sum()
        sums = []
        for start in range(0, states_ND.shape[0], rows):
            piece = slice(start, start + rows)
            counted = None if counted_N is None else counted_N[piece]
            logits = F.linear(states_ND[piece], w_VD, b_V)
            mean_logit_N = (states_ND[piece] @ sum_w_D + sum_b) / V
            *losses, grad = _slice_loss(logits, mean_logit_N, targets_N[piece], counted, smoothing)
            sums.append(torch.stack(losses))
            if grad_x is not None:
                grad_x[piece] = grad @ w_VD
            if grad_w is not None:
                grad_w += grad.t() @ states_ND[piece]
            if grad_b is not None:
                grad_b += grad.sum(dim=0)
        ctx.save_for_backward(grad_x, grad_w, grad_b)
        smoothed, nll, correct = torch.stack(sums).sum(dim=0)
        ctx.mark_non_differentiable(nll, correct)
        return smoothed, nll, correct

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        # torch's `once_differentiable` would allow a second derivative, with the first as a constant.
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            problem = "this loss has no second derivative; take `F.cross_entropy` of the logits instead"
            raise RequestError(problem, code="no_second_derivative")
        grad_x, grad_w, grad_b = ctx.saved_tensors
        scaled = [None if g is None else g * grad.to(g.dtype) for g in (grad_x, grad_w, grad_b)]
        return scaled[0], scaled[1], scaled[2], None, None, None, None


def _slice_loss(
    logits_NV: Tensor, mean_logit_N: Tensor, targets_N: Tensor, counted_N: Tensor | None, smoothing: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums of smoothed loss, likelihood and correct tokens, and the gradient with respect to the logits."""
    wide = torch.promote_types(logits_NV.dtype, torch.float32)
    target_logit_N = logits_NV.gather(1, targets_N[:, None])[:, 0].to(wide)
    gradient = _fused_gradient if torch.compiler.is_compiling() else _gradient
    log_sum_N, rival_logit_N, grad_NV = gradient(logits_NV, targets_N, target_logit_N, smoothing, wide)
    nll_N = log_sum_N - target_logit_N
    # The mean of all negative log-probabilities is log Σ exp minus the mean logit.
    smoothed_N = (1.0 - smoothing) * nll_N + smoothing * (log_sum_N - mean_logit_N.to(wide))
    correct_N = (target_logit_N > rival_logit_N).to(wide)
    if counted_N is not None:
        counted = counted_N.to(wide)
        smoothed_N, nll_N, correct_N = smoothed_N * counted, nll_N * counted, correct_N * counted
        grad_NV = grad_NV * counted[:, None]
    return smoothed_N.sum(), nll_N.sum(), correct_N.sum(), grad_NV.to(logits_NV.dtype)


def _gradient(
    logits_NV: Tensor, targets_N: Tensor, target_logit_N: Tensor, smoothing: float, wide: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Log Σ exp(logits), the highest logit but the target's, and softmax minus the smoothed targets.

    In few passes; the logits of the targets are overwritten.
    """
    probs_NV = torch.softmax(logits_NV, dim=-1, dtype=wide)
    rival_logit_N = logits_NV.scatter_(1, targets_N[:, None], -torch.inf).amax(dim=-1).to(wide)
    top_logit_N = torch.maximum(target_logit_N, rival_logit_N)
    # From the most probable token, whose probability cannot underflow.
    log_sum_N = top_logit_N - probs_NV.amax(dim=-1).log()
    on_target = probs_NV.new_full((1, 1), smoothing - 1.0).expand(len(targets_N), 1)
    probs_NV.scatter_add_(1, targets_N[:, None], on_target)
    return log_sum_N, rival_logit_N, probs_NV.sub_(smoothing / logits_NV.shape[1])


def _fused_gradient(
    logits_NV: Tensor,
    targets_N: Tensor,
    target_logit_N: Tensor,  # noqa: ARG001 - the same arguments as `_gradient`
    smoothing: float,
    wide: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same as one elementwise expression, so that a compiler never stores the probabilities."""
    log_sum_N = torch.logsumexp(logits_NV.to(wide), dim=-1)
    V = logits_NV.shape[1]
    is_target_NV = torch.arange(V, device=logits_NV.device) == targets_N[:, None]
    probs_NV = (logits_NV.to(wide) - log_sum_N[:, None]).exp()
    rival_logit_N = logits_NV.masked_fill(is_target_NV, -torch.inf).amax(dim=-1).to(wide)
    return log_sum_N, rival_logit_N, probs_NV - smoothing / V - (1.0 - smoothing) * is_target_NV.to(wide)
