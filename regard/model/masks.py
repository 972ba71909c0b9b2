"""Masks: which query may attend to which key. True means *may*, everywhere.

Two forms: a boolean tensor for ordinary (batch, length, d_model) tensors, and `SameSequence` for packed ones.
Step by step decoding passes `StoredKeys` in place of a mask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.model.fast.layouts import PaddedGroups, padded_groups, tiles
from regard.model.scaled_dot_product_attention import check_may_attend
from regard.packing import Boundaries


def causal_mask(n_queries: int, device: torch.device | str = "cpu") -> Tensor:
    """Position i may attend to positions up to i (3.2.3, third use): outputs cannot look ahead."""
    return torch.ones(n_queries, n_queries, dtype=torch.bool, device=device).tril()


def length_mask(lengths_B: Tensor, longest: int | None = None) -> Tensor:
    """(B, 1, 1, M): every query may attend to the tokens that exist."""
    longest = int(lengths_B.max()) if longest is None else longest
    exists_BM = torch.arange(longest, device=lengths_B.device) < lengths_B[:, None]
    return exists_BM[:, None, None, :]


class StoredKeys(ABC):
    """Keys and values from a cache, which new tokens attend to; the kinds are in `fast/cached_decoder.py`."""

    @abstractmethod
    def attend(self, block: nn.Module, x_ND: Tensor) -> Tensor:
        """The output of an attention block for new tokens."""


class SameSequence:
    """A packed query may attend to the keys of its own sequence; if causal, to none that come after it.

    `own` is a further condition of any pattern by position: a boolean tensor that broadcasts to (sequences,
    heads, queries, keys) of the padded view, such as `~torch.eye(longest, dtype=torch.bool)`.
    """

    def __init__(
        self, queries: Boundaries, keys: Boundaries, causal: bool, own: Tensor | None = None
    ) -> None:
        on_host = queries.lengths is not None and keys.lengths is not None
        if on_host and queries.n_sequences != keys.n_sequences:
            expected = f"{queries.n_sequences} sequences, as queries have"
            raise ShapeError("keys", expected, keys.n_sequences, code="sequence_count_mismatch")
        self.queries, self.keys, self.causal, self.own = queries, keys, causal, own
        if own is not None:
            if not on_host:
                raise ShapeError("own", "none in a compiled step", tuple(own.shape), code="bad_mask")
            check_may_attend(own, self.padded_shape(own.shape[-3] if own.dim() == 4 else 1))
        # One mask serves every layer, so the layouts of the fast kernels are computed once.
        is_fixed = not on_host or torch.compiler.is_compiling()
        self.tiles = tiles(queries, keys, causal) if is_fixed else None
        self._groups: PaddedGroups | None = None

    @property
    def groups(self) -> PaddedGroups:
        """Sequences of similar length together, where the host knows the lengths."""
        if self._groups is None:
            self._groups = padded_groups(self.queries, self.keys, self.causal)
        return self._groups

    def padded_shape(self, n_heads: int) -> torch.Size:
        """The shape of scores in the padded view, (B, H, L, M)."""
        return torch.Size([self.queries.n_sequences, n_heads, self.queries.longest, self.keys.longest])

    def as_mask(self) -> Tensor:
        """The mask of the padded view, (B, 1, L, M); with heads where `own` has them."""
        may_attend_BLM = self.keys.exists_BL[:, None, :]
        if self.causal:
            may_attend_BLM = may_attend_BLM & causal_mask(self.keys.longest, may_attend_BLM.device)
        may_attend = may_attend_BLM[:, None].expand(-1, -1, self.queries.longest, -1)
        return may_attend if self.own is None else may_attend & self.own
