"""How alike a query and a key are. The paper takes the scaled dot product (3.2.1); the others are to compare.

All but the additive one are a dot product of prepared vectors, so the fast kernels serve them too.
Queries and keys come as (…, heads, d_k).
"""

from __future__ import annotations

from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import SimilarityName
from regard.model.scaled_dot_product_attention import attention_scores


class DotProduct(nn.Module):
    """q · k, times a scale."""

    is_dot_product = True

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """What is multiplied in the end."""
        return q, k

    def scores(self, q_BHLK: Tensor, k_BHMK: Tensor) -> Tensor:
        """Of prepared queries and keys: (B, H, L, M)."""
        return attention_scores(q_BHLK, k_BHMK, self.scale)


class Cosine(DotProduct):
    """Departure 6: q · k / (|q| |k|)."""

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Unit vectors."""
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1)


class Bilinear(DotProduct):
    """Departure 6: qᵀ W k, a matrix for each head."""

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__(scale=1.0)
        # I / √d_k: it starts as the scaled dot product.
        self.weight = nn.Parameter((torch.eye(d_k) * d_k**-0.5).repeat(n_heads, 1, 1))

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Wᵀ q and k."""
        return torch.einsum("...hk,hkj->...hj", q, self.weight.to(q.dtype)), k


class Additive(DotProduct):
    """Departure 6: uᵀ tanh(A q + B k), for each head (Bahdanau et al.; the paper compares in 3.2.1)."""

    is_dot_product = False

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__(scale=1.0)
        self.query = nn.Parameter(torch.randn(n_heads, d_k, d_k) * d_k**-0.5)
        self.key = nn.Parameter(torch.randn(n_heads, d_k, d_k) * d_k**-0.5)
        self.weight = nn.Parameter(torch.randn(n_heads, d_k) * d_k**-0.5)

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """A q and B k."""
        aq = torch.einsum("hjk,...hk->...hj", self.query.to(q.dtype), q)
        bk = torch.einsum("hjk,...hk->...hj", self.key.to(k.dtype), k)
        return aq, bk

    def scores(self, q_BHLK: Tensor, k_BHMK: Tensor) -> Tensor:
        """Of prepared queries and keys: (B, H, L, M)."""
        hidden_BHLMK = torch.tanh(q_BHLK[..., :, None, :] + k_BHMK[..., None, :, :])
        return torch.einsum("bhlmk,hk->bhlm", hidden_BHLMK, self.weight.to(hidden_BHLMK.dtype))


def make_similarity(name: SimilarityName, n_heads: int, d_k: int) -> DotProduct:
    """The similarity that the configuration names."""
    match name:
        case "scaled-dot":
            return DotProduct(scale=d_k**-0.5)
        case "dot":
            return DotProduct(scale=1.0)
        case "cosine":
            return Cosine(scale=1.0)
        case "bilinear":
            return Bilinear(n_heads, d_k)
        case "additive":
            return Additive(n_heads, d_k)
        case other:
            assert_never(other)
