"""What decoding remembers where shapes and addresses must not change: a place for each token of each beam.

The beams of a source share one store. Each row writes to places of its own and may look at those that its
tokens were written to, whichever beam wrote them: so a row that goes on from another takes over what may be
seen, and no key or value ever moves. Unlike a `Cache`, which is a value, slots are changed where they stand,
as a captured step wants it.

Letters: `B` sources, `W` beams of each, `R` = B · W rows, `M` places of each row, `S` source length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.model.fast.cache import KeysValues, Recall
from regard.packing import Boundaries


@dataclass(frozen=True, eq=False)
class SlotKeysValues:
    """Keys and values of one block of masked self-attention."""

    k_BHWMK: Tensor
    v_BHWMU: Tensor

    def write(self, recall: Recall, k_RHK: Tensor, v_RHU: Tensor) -> None:
        """Put the keys and values of one new token a row into its place, which is the same for all rows."""
        place_1, beams = recall.new.positions_N[:1], self.k_BHWMK.shape[2]
        for store, new_RH in ((self.k_BHWMK, k_RHK), (self.v_BHWMU, v_RHU)):
            store.index_copy_(3, place_1, new_RH.unflatten(0, (-1, beams)).transpose(1, 2)[:, :, :, None])

    def up_to(self, _reach: int) -> KeysValues:
        """All places of a source's beams, one beam behind the other."""
        return KeysValues(self.k_BHWMK.flatten(2, 3), self.v_BHWMU.flatten(2, 3))


@dataclass(frozen=True, eq=False)
class Slots:
    """Keys and values of every decoder layer, and of the memory; and who descends from whom."""

    own: tuple[SlotKeysValues, ...]
    ancestry_BWWM: Tensor
    """Whether a row goes back to what each beam of its source wrote in each place."""
    place_1: Tensor
    """Where the next tokens go."""
    memory: tuple[KeysValues, ...]
    """A layer each, (B, heads, S, width)."""
    memory_exists_BS: Tensor
    """Which tokens of the memory are there; each source has at least one."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, W, M, S)."""
        B, W, _, M = self.ancestry_BWWM.shape
        return B, W, M, self.memory_exists_BS.shape[1]

    def follow(self, parents_BW: Tensor) -> Recall:
        """Let beam w of each source go on from beam `parents_BW[:, w]`, with one new token in every row."""
        B, W, M, _ = self.shape
        device = parents_BW.device
        inherited = self.ancestry_BWWM.gather(1, parents_BW[:, :, None, None].expand(-1, -1, W, M))
        own = torch.eye(W, dtype=torch.bool, device=device)[:, :, None]
        self.ancestry_BWWM.copy_(inherited | own & (torch.arange(M, device=device) == self.place_1))
        rows_R = torch.arange(B * W, device=device)
        new = Boundaries(rows_R, self.place_1.expand(B * W), (1,) * (B * W), M)
        dtype = self.own[0].k_BHWMK.dtype
        return Recall(
            new,
            reach=M,
            own_may_attend=_as_bias(self.ancestry_BWWM.flatten(2)[:, None], dtype),
            memory_may_attend=_as_bias(self.memory_exists_BS[:, None, None], dtype),
            in_step=True,
        )

    @property
    def by_source(self) -> tuple[Tensor, ...]:
        """All that there is to know of each source, which is the first dimension of each."""
        own = (x for layer in self.own for x in (layer.k_BHWMK, layer.v_BHWMU))
        return (*own, *self.of_memory, self.ancestry_BWWM, self.memory_exists_BS)

    @property
    def of_memory(self) -> tuple[Tensor, ...]:
        """Keys and values of the memory, layer by layer."""
        return tuple(x for layer in self.memory for x in (layer.k_BHMK, layer.v_BHMU))


def _as_bias(may_attend: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as what is added to scores, worked out once for all layers."""
    return torch.zeros_like(may_attend, dtype=dtype).masked_fill_(~may_attend, float("-inf"))
