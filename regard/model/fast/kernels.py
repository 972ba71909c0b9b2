"""Attention as fast as the machine gives it, when nobody looks.

Three roads, one answer (`scaled_dot_product_attention`, to rounding):

* ordinary tensors: torch's fused kernel;
* packed tokens in a compiled step: FlexAttention over the sequences' blocks. Sentences are short, and one
  tile of 128 tokens holds many of them, where a variable-length kernel gives each sentence a tile of its own;
* packed tokens otherwise: sequences of like length share a padded view, made and undone here.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from regard.model.masks import SameSequence
from regard.model.scaled_dot_product_attention import scaled_dot_product_attention
from regard.packing import is_transforming

SHORT = 256
"""Rows up to this long are written out on CPUs, where the fused gradient is slow (bf16, 16 keys: 7 times)."""

ROADS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""CUDA's kernels for batches as they come. cuDNN's, which torch prefers on new GPUs, is planned anew for each
shape; that takes longer than a whole step, and hardly two batches are alike."""


def dense_attention(
    q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, may_attend: Tensor | None, scale: float
) -> Tensor:
    """Fused attention on ordinary tensors; zeros, never NaN, for a query that may attend to nothing."""
    if may_attend is None:
        return _fused(q_BHLK, k_BHMK, v_BHMU, None, scale)
    if may_attend.dtype != torch.bool:  # a bias, made by `Slots`
        return _few_queries(q_BHLK, k_BHMK, v_BHMU, may_attend, scale)
    # The fused kernels divide 0 by 0 in an empty row: let it attend to everything, then take the result away.
    may_attend = torch.atleast_2d(may_attend)
    sees_something = may_attend.any(dim=-1, keepdim=True)
    safe = may_attend | ~sees_something
    return _fused(q_BHLK, k_BHMK, v_BHMU, safe, scale).masked_fill(~sees_something, 0.0)


def _fused(q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, may_attend: Tensor | None, scale: float) -> Tensor:
    """Torch's fused kernel, whichever takes any shape at once."""
    if not q_BHLK.is_cuda:
        return F.scaled_dot_product_attention(q_BHLK, k_BHMK, v_BHMU, attn_mask=may_attend, scale=scale)
    with sdpa_kernel(ROADS):
        return F.scaled_dot_product_attention(q_BHLK, k_BHMK, v_BHMU, attn_mask=may_attend, scale=scale)


def _few_queries(q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, bias: Tensor, scale: float) -> Tensor:
    """Written out, for the beams of a source alone: a fused kernel works on tiles of 64 queries at least.

    (A whole step of 4 x 1,024 rows at the base shape on an H200: 4.2 ms so, 4.4 with torch's memory-efficient
    kernel, 5.1 with cuDNN's.)
    """
    scores_BHLM = (q_BHLK * scale) @ k_BHMK.transpose(2, 3) + bias
    wide = torch.promote_types(q_BHLK.dtype, torch.float32)
    return torch.softmax(scores_BHLM, dim=-1, dtype=wide).to(q_BHLK.dtype) @ v_BHMU


def packed_attention(
    q_THK: Tensor, k_SHK: Tensor, v_SHU: Tensor, may_attend: SameSequence, scale: float
) -> Tensor:
    """Attention of packed queries on packed keys, each within its own sequence."""
    if may_attend.blocks is not None:
        return _block_attention(q_THK, k_SHK, v_SHU, may_attend.blocks, scale)
    groups = may_attend.groups
    q, k, v = groups.queries.pad(q_THK), groups.keys.pad(k_SHK), groups.keys.pad(v_SHU)
    heads = [
        _group_attention(q_BLHK, k_BMHK, v_BMHU, mask, scale)
        for q_BLHK, k_BMHK, v_BMHU, mask in zip(q, k, v, groups.may_attend, strict=True)
    ]
    return groups.queries.unpad(heads)


def _group_attention(
    q_BLHK: Tensor, k_BMHK: Tensor, v_BMHU: Tensor, may_attend: Tensor | None, scale: float
) -> Tensor:
    q_BHLK, k_BHMK, v_BHMU = (x.transpose(1, 2) for x in (q_BLHK, k_BMHK, v_BMHU))
    if is_transforming():
        heads_BHLU = scaled_dot_product_attention(q_BHLK, k_BHMK, v_BHMU, may_attend, scale)
    elif q_BHLK.device.type == "cpu" and k_BHMK.shape[2] <= SHORT:
        # Products of small matrices copy what is not contiguous, more slowly than this.
        q_BHLK, k_BHMK, v_BHMU = q_BHLK.contiguous(), k_BHMK.contiguous(), v_BHMU.contiguous()
        heads_BHLU = _ShortAttention.apply(q_BHLK, k_BHMK, v_BHMU, may_attend, scale)
    else:  # every row has a key to attend to: a sequence is never empty
        heads_BHLU = _fused(q_BHLK, k_BHMK, v_BHMU, may_attend, scale)
    return heads_BHLU.transpose(1, 2)


def _block_attention(q_THK: Tensor, k_SHK: Tensor, v_SHU: Tensor, blocks: BlockMask, scale: float) -> Tensor:
    q, k, v = (x.transpose(0, 1)[None] for x in (q_THK, k_SHK, v_SHU))
    heads = flex_attention(q, k, v, block_mask=blocks, scale=scale)
    return heads[0].transpose(0, 1)


class _ShortAttention(torch.autograd.Function):
    """Attention and its gradient written out, the softmax in float32 whatever flows in."""

    @staticmethod
    def forward(
        ctx: Any, q_BHLK: Tensor, k_BHMK: Tensor, v_BHMU: Tensor, may_attend: Tensor | None, scale: float
    ) -> Tensor:
        weights_BHLM = _short_weights(q_BHLK, k_BHMK, may_attend, scale)
        ctx.save_for_backward(q_BHLK, k_BHMK, v_BHMU, may_attend, weights_BHLM)
        ctx.scale = scale
        return weights_BHLM @ v_BHMU

    @staticmethod
    def backward(ctx: Any, grad_BHLU: Tensor) -> tuple[Tensor | None, ...]:
        q_BHLK, k_BHMK, v_BHMU, may_attend, weights_BHLM = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: the weights as what follows from q and k
            weights_BHLM = _short_weights(q_BHLK, k_BHMK, may_attend, ctx.scale)
        grad_BHLU = grad_BHLU.contiguous()
        grad_v_BHMU = weights_BHLM.transpose(2, 3) @ grad_BHLU
        wide = torch.promote_types(q_BHLK.dtype, torch.float32)
        g, w = (grad_BHLU @ v_BHMU.transpose(2, 3)).to(wide), weights_BHLM.to(wide)
        # The gradient of a softmax row: w · (g - Σ w g).
        grad_scores = torch._softmax_backward_data(g, w, -1, wide).mul_(ctx.scale).to(q_BHLK.dtype)
        return grad_scores @ k_BHMK, grad_scores.transpose(2, 3) @ q_BHLK, grad_v_BHMU, None, None


def _short_weights(q_BHLK: Tensor, k_BHMK: Tensor, may_attend: Tensor | None, scale: float) -> Tensor:
    wide = torch.promote_types(q_BHLK.dtype, torch.float32)
    scores_BHLM = (q_BHLK @ k_BHMK.transpose(2, 3)).to(wide).mul_(scale)
    if may_attend is not None:
        scores_BHLM.masked_fill_(~may_attend, float("-inf"))
    return torch.softmax(scores_BHLM, dim=-1).to(q_BHLK.dtype)
