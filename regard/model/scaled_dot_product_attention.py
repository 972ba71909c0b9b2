"""Figure 2, left: Scaled Dot-Product Attention.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V            (3.2.1, eq. 1)

Written out, one box per line: this is what is recorded. What runs otherwise is in `fast/kernels.py`, and a
test holds the two equal. `may_attend` is boolean and True means *may*, here and everywhere; `score_bias` is
added to the scores, and broadcasts to them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ShapeError


def scaled_dot_product_attention(
    q_BHLK: Tensor,
    k_BHMK: Tensor,
    v_BHMU: Tensor,
    may_attend: Tensor | None = None,
    scale: float | None = None,
    score_bias: Tensor | None = None,
) -> Tensor:
    """Weighted sum of the values, each query weighing all the keys (3.2.1, eq. 1)."""
    return attention_weights(q_BHLK, k_BHMK, may_attend, scale, score_bias) @ v_BHMU  # MatMul


def attention_weights(
    q_BHLK: Tensor,
    k_BHMK: Tensor,
    may_attend: Tensor | None = None,
    scale: float | None = None,
    score_bias: Tensor | None = None,
) -> Tensor:
    """softmax(Q Kᵀ / √d_k), without the V; rows sum to 1, or to 0 where a query may attend to nothing."""
    scores_BHLM = attention_scores(q_BHLK, k_BHMK, scale)
    if score_bias is not None:  # Departures 16 and 17
        scores_BHLM = scores_BHLM + score_bias.to(scores_BHLM.dtype)
    return masked_softmax(scores_BHLM, may_attend)  # Mask (opt.), SoftMax


def attention_scores(q_BHLK: Tensor, k_BHMK: Tensor, scale: float | None = None) -> Tensor:
    """Q Kᵀ / √d_k. Any other `scale` replaces 1/√d_k."""
    if q_BHLK.shape[-1] != k_BHMK.shape[-1]:
        expected = f"the width of q, {q_BHLK.shape[-1]}"
        raise ShapeError("k", expected, k_BHMK.shape[-1], code="width_mismatch")
    # Scores grow like √d_k; unscaled, the softmax saturates and its gradient vanishes (3.2.1, footnote 4).
    scale = q_BHLK.shape[-1] ** -0.5 if scale is None else scale
    scores_BHLM = q_BHLK @ k_BHMK.transpose(-2, -1)  # MatMul
    return scores_BHLM * scale  # Scale


def masked_softmax(scores_BHLM: Tensor, may_attend: Tensor | None) -> Tensor:
    """Softmax over the keys that may be attended to; exactly 0 elsewhere.

    A query that may attend to nothing gets zeros. Filling with the lowest finite number instead of -inf
    keeps NaN out of such a row and its gradient.
    """
    if may_attend is None:
        return torch.softmax(scores_BHLM, dim=-1)
    check_may_attend(may_attend, scores_BHLM.shape)
    lowest = torch.finfo(scores_BHLM.dtype).min
    weights_BHLM = torch.softmax(scores_BHLM.masked_fill(~may_attend, lowest), dim=-1)
    return weights_BHLM.masked_fill(~may_attend, 0.0)


def check_may_attend(may_attend: Tensor, scores_shape: torch.Size) -> None:
    """Refuse a mask that is not boolean, or does not fit (…, queries, keys)."""
    if may_attend.dtype != torch.bool:
        expected = "a boolean tensor, True = may attend; numbers to add to scores go to `score_bias`"
        raise ShapeError("may_attend", expected, may_attend.dtype, code="bad_mask")
    try:
        fits = torch.broadcast_shapes(may_attend.shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    # (batch, queries, keys) would pass for (heads, queries, keys) where there are as many heads as sequences.
    if not fits or (may_attend.dim() == 3 and len(scores_shape) == 4):
        expected = f"a shape that broadcasts to {tuple(scores_shape)} (batch, heads, queries, keys)"
        raise ShapeError("may_attend", expected, tuple(may_attend.shape), code="bad_mask")
