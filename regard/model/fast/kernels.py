"""Attention as fast as the hardware allows, when nothing is recorded.

Three ways, one result (`scaled_dot_product_attention`, to rounding):

* ordinary tensors: torch's fused kernel;
* packed tokens in a compiled step: FlexAttention over tiles. Sentences are short, and one tile of 128 tokens
  holds many of them, where a variable-length kernel gives each sentence a tile of its own;
* packed tokens otherwise: sequences of similar length share a padded view.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

from regard.config import ModelConfig, registries
from regard.model.masks import SameSequence
from regard.model.scaled_dot_product_attention import scaled_dot_product_attention
from regard.packing import is_transforming

SHORT = 256
"""Up to this many keys, attention is written out on CPUs, where the fused gradient is slow (bf16, 16 keys: 7
times)."""
FEW = 64
"""Up to this many queries, attention with a bias is written out: fused kernels work on tiles of 64 queries.
(A whole step of 4 x 1,024 rows at the base shape on an H200: 4.2 ms; 4.4 with torch's memory-efficient
kernel, 5.1 with cuDNN's.)"""
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""CUDA's kernels for batches of any shape. cuDNN's, which torch prefers on new GPUs, is planned anew for each
shape; that takes longer than a whole step, and hardly two batches have the same shape."""


def has_fixed_shapes(config: ModelConfig, where: str) -> bool:
    """Whether a model can run in compiled and captured steps; warns if a choice of the user's cannot.

    `where` names the steps that fall back, for the warning.
    """
    positions, similarity = registries.positions[config.positions], registries.similarities[config.similarity]
    if not positions.fixed_shapes:
        choice = f'model.positions = "{config.positions}"'
    elif not similarity.is_dot_product:
        choice = f'model.similarity = "{config.similarity}"'
    else:
        return True
    warnings.warn(f"{choice} cannot run in {where}; a slower way is used", stacklevel=2)
    return False


def dense_attention(
    q_BHLK: Tensor,
    k_BHMK: Tensor,
    v_BHMU: Tensor,
    may_attend: Tensor | None,
    scale: float,
    score_bias: Tensor | None = None,
) -> Tensor:
    """Attention on ordinary tensors; zeros, never NaN, for a query that may attend to nothing."""
    if may_attend is None:
        if score_bias is None:
            return _fused(q_BHLK, k_BHMK, v_BHMU, None, scale)
        if q_BHLK.shape[2] <= FEW:
            return _few_queries(q_BHLK, k_BHMK, v_BHMU, score_bias, scale)
        return _fused(q_BHLK, k_BHMK, v_BHMU, _added(None, score_bias, q_BHLK), scale)
    # The fused kernels divide 0 by 0 in an empty row: let it attend to everything, then zero the result.
    may_attend = torch.atleast_2d(may_attend)
    sees_something = may_attend.any(dim=-1, keepdim=True)
    safe = may_attend | ~sees_something
    added = safe if score_bias is None else _added(safe, score_bias, q_BHLK)
    return _fused(q_BHLK, k_BHMK, v_BHMU, added, scale).masked_fill(~sees_something, 0.0)


def _added(may_attend: Tensor | None, score_bias: Tensor, q_BHLK: Tensor) -> Tensor:
    """Mask and bias as one tensor of numbers, which the fused kernels add to the scores."""
    bias = score_bias.to(q_BHLK.dtype)
    bias = bias[None] if bias.dim() == 3 else bias
    return bias if may_attend is None else torch.where(may_attend, bias, float("-inf"))


def _fused(q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, added: Tensor | None, scale: float) -> Tensor:
    """Torch's fused kernel; `added` is a boolean mask or a bias."""
    if not q_BHLK.is_cuda:
        return F.scaled_dot_product_attention(q_BHLK, k_BHMK, v_BHMU, attn_mask=added, scale=scale)
    with sdpa_kernel(BACKENDS):
        return F.scaled_dot_product_attention(q_BHLK, k_BHMK, v_BHMU, attn_mask=added, scale=scale)


def _few_queries(q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, score_bias: Tensor, scale: float) -> Tensor:
    """Attention written out, for the few queries of a step of decoding."""
    scores_BHLM = (q_BHLK * scale) @ k_BHMK.transpose(2, 3) + score_bias.to(q_BHLK.dtype)
    wide = torch.promote_types(q_BHLK.dtype, torch.float32)
    return torch.softmax(scores_BHLM, dim=-1, dtype=wide).to(q_BHLK.dtype) @ v_BHMU


def packed_attention(
    q_THK: Tensor,
    k_SHK: Tensor,
    v_SHU: Tensor,
    may_attend: SameSequence,
    scale: float,
    score_bias_HPP: Tensor | None = None,
) -> Tensor:
    """Attention of packed queries on packed keys within their sequences; the bias is by position."""
    if may_attend.tiles is not None:
        return _tiled_attention(q_THK, k_SHK, v_SHU, may_attend, scale, score_bias_HPP)
    if may_attend.own is not None:
        return _padded_attention(q_THK, k_SHK, v_SHU, may_attend, scale, score_bias_HPP)
    groups = may_attend.groups
    q, k, v = groups.queries.pad(q_THK), groups.keys.pad(k_SHK), groups.keys.pad(v_SHU)
    heads = [
        _group_attention(q_BLHK, k_BMHK, v_BMHU, mask, scale, score_bias_HPP)
        for q_BLHK, k_BMHK, v_BMHU, mask in zip(q, k, v, groups.may_attend, strict=True)
    ]
    return groups.queries.unpad(heads)


def _padded_attention(
    q_THK: Tensor,
    k_SHK: Tensor,
    v_SHU: Tensor,
    may_attend: SameSequence,
    scale: float,
    score_bias_HPP: Tensor | None,
) -> Tensor:
    """One padded view of all sequences, for masks of any pattern."""
    queries, keys = may_attend.queries.padded, may_attend.keys.padded
    (q_BLHK,), (k_BMHK,), (v_BMHU,) = queries.pad(q_THK), keys.pad(k_SHK), keys.pad(v_SHU)
    q_BHLK, k_BHMK, v_BHMU = (x.transpose(1, 2) for x in (q_BLHK, k_BMHK, v_BMHU))
    bias_HLM = None if score_bias_HPP is None else score_bias_HPP[:, : q_BHLK.shape[2], : k_BHMK.shape[2]]
    heads_BHLU = dense_attention(q_BHLK, k_BHMK, v_BHMU, may_attend.as_mask(), scale, bias_HLM)
    return queries.unpad([heads_BHLU.transpose(1, 2)])


def _group_attention(
    q_BLHK: Tensor,
    k_BMHK: Tensor,
    v_BMHU: Tensor,
    may_attend: Tensor | None,
    scale: float,
    score_bias_HPP: Tensor | None,
) -> Tensor:
    q_BHLK, k_BHMK, v_BHMU = (x.transpose(1, 2) for x in (q_BLHK, k_BMHK, v_BMHU))
    bias_HLM = None if score_bias_HPP is None else score_bias_HPP[:, : q_BHLK.shape[2], : k_BHMK.shape[2]]
    if is_transforming():
        heads_BHLU = scaled_dot_product_attention(q_BHLK, k_BHMK, v_BHMU, may_attend, scale, bias_HLM)
    elif q_BHLK.device.type == "cpu" and k_BHMK.shape[2] <= SHORT:
        # Products of small matrices copy tensors that are not contiguous, more slowly than this.
        q_BHLK, k_BHMK, v_BHMU = q_BHLK.contiguous(), k_BHMK.contiguous(), v_BHMU.contiguous()
        heads_BHLU = _ShortAttention.apply(q_BHLK, k_BHMK, v_BHMU, may_attend, scale, bias_HLM)
    else:  # every row has a key to attend to: a sequence is never empty
        added = may_attend if bias_HLM is None else _added(may_attend, bias_HLM, q_BHLK)
        heads_BHLU = _fused(q_BHLK, k_BHMK, v_BHMU, added, scale)
    return heads_BHLU.transpose(1, 2)


def _tiled_attention(
    q_THK: Tensor,
    k_SHK: Tensor,
    v_SHU: Tensor,
    may_attend: SameSequence,
    scale: float,
    score_bias_HPP: Tensor | None,
) -> Tensor:
    q, k, v = (x.transpose(0, 1)[None] for x in (q_THK, k_SHK, v_SHU))
    if score_bias_HPP is None:
        heads = flex_attention(q, k, v, block_mask=may_attend.tiles, scale=scale)
    else:
        q_place_N, k_place_N = may_attend.queries.positions_N, may_attend.keys.positions_N

        def add_bias(score: Tensor, _batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return score + score_bias_HPP[head, q_place_N[query], k_place_N[key]]

        heads = flex_attention(q, k, v, score_mod=add_bias, block_mask=may_attend.tiles, scale=scale)
    return heads[0].transpose(0, 1)


class _ShortAttention(torch.autograd.Function):
    """Attention and its gradient written out, the softmax in float32 at least."""

    @staticmethod
    def forward(
        ctx: Any,
        q_BHLK: Tensor,
        k_BHMK: Tensor,
        v_BHMU: Tensor,
        may_attend: Tensor | None,
        scale: float,
        bias_HLM: Tensor | None,
    ) -> Tensor:
        weights_BHLM = _short_weights(q_BHLK, k_BHMK, may_attend, scale, bias_HLM)
        ctx.save_for_backward(q_BHLK, k_BHMK, v_BHMU, may_attend, bias_HLM, weights_BHLM)
        ctx.scale = scale
        return weights_BHLM @ v_BHMU

    @staticmethod
    def backward(ctx: Any, grad_BHLU: Tensor) -> tuple[Tensor | None, ...]:
        q_BHLK, k_BHMK, v_BHMU, may_attend, bias_HLM, weights_BHLM = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative, the weights must depend on q, k and the bias
            weights_BHLM = _short_weights(q_BHLK, k_BHMK, may_attend, ctx.scale, bias_HLM)
        grad_BHLU = grad_BHLU.contiguous()
        grad_v_BHMU = weights_BHLM.transpose(2, 3) @ grad_BHLU
        wide = torch.promote_types(q_BHLK.dtype, torch.float32)
        g, w = (grad_BHLU @ v_BHMU.transpose(2, 3)).to(wide), weights_BHLM.to(wide)
        # The gradient of a softmax row: w · (g - Σ w g).
        grad_scores = torch._softmax_backward_data(g, w, -1, wide)
        grad_bias_HLM = None
        if bias_HLM is not None and ctx.needs_input_grad[5]:
            grad_bias_HLM = grad_scores.sum(dim=0).to(bias_HLM.dtype)
        grad_scores = grad_scores.mul_(ctx.scale).to(q_BHLK.dtype)
        grad_q_BHLK, grad_k_BHMK = grad_scores @ k_BHMK, grad_scores.transpose(2, 3) @ q_BHLK
        return grad_q_BHLK, grad_k_BHMK, grad_v_BHMU, None, None, grad_bias_HLM


def _short_weights(
    q_BHLK: Tensor, k_BHMK: Tensor, may_attend: Tensor | None, scale: float, bias_HLM: Tensor | None
) -> Tensor:
    wide = torch.promote_types(q_BHLK.dtype, torch.float32)
    scores_BHLM = (q_BHLK @ k_BHMK.transpose(2, 3)).to(wide).mul_(scale)
    if bias_HLM is not None:
        scores_BHLM = scores_BHLM + bias_HLM.to(wide)
    if may_attend is not None:
        scores_BHLM.masked_fill_(~may_attend, float("-inf"))
    return torch.softmax(scores_BHLM, dim=-1).to(q_BHLK.dtype)
