"""Similarity of queries and keys. The paper uses the scaled dot product (3.2.1); the others are to compare.

All except the additive one are a dot product of prepared vectors, so the fast kernels compute them too.
Queries and keys have the shape (…, heads, d_k).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import registries
from regard.model.scaled_dot_product_attention import attention_scores


@registries.similarities.register("dot")  # Departure 6
class DotProduct(nn.Module):
    """q · k; the base class of every similarity."""

    is_dot_product = True
    """Whether the scores are `scale` times the dot product of what `prepare` returns."""

    def __init__(self, n_heads: int, d_k: int) -> None:  # noqa: ARG002
        super().__init__()
        self.scale = 1.0

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors to multiply; each is computed from its own argument only."""
        return q, k

    def scores(self, q_BHLK: Tensor, k_BHMK: Tensor) -> Tensor:
        """Scores of prepared queries and keys, (B, H, L, M)."""
        return attention_scores(q_BHLK, k_BHMK, self.scale)


@registries.similarities.register("scaled-dot")
class ScaledDotProduct(DotProduct):
    """q · k / √d_k, the paper's (3.2.1)."""

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__(n_heads, d_k)
        self.scale = d_k**-0.5


@registries.similarities.register("cosine")
class Cosine(DotProduct):
    """Departure 6: q · k / (|q| |k|)."""

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Unit vectors."""
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1)


@registries.similarities.register("bilinear")
class Bilinear(DotProduct):
    """Departure 6: qᵀ W k, a matrix for each head."""

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__(n_heads, d_k)
        # I / √d_k: it starts as the scaled dot product.
        self.weight = nn.Parameter((torch.eye(d_k) * d_k**-0.5).repeat(n_heads, 1, 1))

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Wᵀ q and k."""
        return torch.einsum("...hk,hkj->...hj", q, self.weight.to(q.dtype)), k


@registries.similarities.register("additive")
class Additive(DotProduct):
    """Departure 6: uᵀ tanh(A q + B k), for each head (Bahdanau et al.; the paper compares in 3.2.1)."""

    is_dot_product = False

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__(n_heads, d_k)
        self.query = nn.Parameter(torch.randn(n_heads, d_k, d_k) * d_k**-0.5)
        self.key = nn.Parameter(torch.randn(n_heads, d_k, d_k) * d_k**-0.5)
        self.weight = nn.Parameter(torch.randn(n_heads, d_k) * d_k**-0.5)

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """A q and B k."""
        aq = torch.einsum("hjk,...hk->...hj", self.query.to(q.dtype), q)
        bk = torch.einsum("hjk,...hk->...hj", self.key.to(k.dtype), k)
        return aq, bk

    def scores(self, q_BHLK: Tensor, k_BHMK: Tensor) -> Tensor:
        """Scores of prepared queries and keys, (B, H, L, M)."""
        hidden_BHLMK = torch.tanh(q_BHLK[..., :, None, :] + k_BHMK[..., None, :, :])
        return torch.einsum("bhlmk,hk->bhlm", hidden_BHLMK, self.weight.to(hidden_BHLMK.dtype))
