"""Decoding where shapes and addresses must not change: one slot per token of each beam.

The beams of a source share one store. A row writes to its own slots and may attend to the slots that its
tokens were written to, by whichever beam. So a row that continues another inherits a mask, and no key or
value ever moves. Unlike a `Cache`, which is a value, slots are changed in place, as a captured step needs.

Letters: `B` sources, `W` beams per source, `R` = B · W rows, `M` places per row, `S` source length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.model.assembly import Autoregressive
from regard.model.fast.cache import KeysValues, Recall
from regard.model.fast.cached_decoder import decode_new
from regard.model.positional_encoding import Positions
from regard.packing import Boundaries, Packed


@dataclass(frozen=True, eq=False)
class SlotKeysValues:
    """Keys and values of one block of masked self-attention."""

    k_BHWMK: Tensor
    v_BHWMU: Tensor

    def write(self, recall: Recall, k_RHK: Tensor, v_RHU: Tensor) -> None:
        """Write the keys and values of one new token per row to its place, the same for all rows."""
        place_1, beams = recall.new.positions_N[:1], self.k_BHWMK.shape[2]
        for store, new_RH in ((self.k_BHWMK, k_RHK), (self.v_BHWMU, v_RHU)):
            store.index_copy_(3, place_1, new_RH.unflatten(0, (-1, beams)).transpose(1, 2)[:, :, :, None])

    def up_to(self, _reach: int) -> KeysValues:
        """All places of a source's beams, one beam after the other."""
        return KeysValues(self.k_BHWMK.flatten(2, 3), self.v_BHWMU.flatten(2, 3))


@dataclass(frozen=True, eq=False)
class Slots:
    """Keys and values of every decoder layer and of the memory, and the ancestry of each row."""

    own: tuple[SlotKeysValues, ...]
    ancestry_BWWM: Tensor
    """Whether a row descends from what each beam of its source wrote at each place."""
    place_1: Tensor
    """Place of the next tokens."""
    memory: tuple[KeysValues, ...]
    """One per layer, (B, heads, S, width)."""
    memory_exists_BS: Tensor
    """Which places of the memory hold tokens; each source has at least one."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, W, M, S)."""
        B, W, _, M = self.ancestry_BWWM.shape
        return B, W, M, self.memory_exists_BS.shape[1]

    def follow(self, parents_BW: Tensor, positions: Positions) -> Recall:
        """Let beam w of each source continue beam `parents_BW[:, w]`, with one new token in every row."""
        B, W, M, _ = self.shape
        device = parents_BW.device
        inherited = self.ancestry_BWWM.gather(1, parents_BW[:, :, None, None].expand(-1, -1, W, M))
        own = torch.eye(W, dtype=torch.bool, device=device)[:, :, None]
        places_M = torch.arange(M, device=device)
        self.ancestry_BWWM.copy_(inherited | own & (places_M == self.place_1))
        rows_R = torch.arange(B * W, device=device)
        new = Boundaries(rows_R, self.place_1.expand(B * W), (1,) * (B * W), M)
        # Masks become biases here, once for all layers: the kernel for few queries adds them to the scores.
        dtype = self.own[0].k_BHWMK.dtype
        own_bias = _as_bias(self.ancestry_BWWM.flatten(2)[:, None], dtype)
        if positions.has_score_bias:
            own_bias = own_bias + positions.score_bias(self.place_1, places_M).to(dtype).repeat(1, 1, W)
        memory_bias = _as_bias(self.memory_exists_BS[:, None, None], dtype)
        return Recall(new, M, None, None, True, own_score_bias=own_bias, memory_score_bias=memory_bias)

    @property
    def by_source(self) -> tuple[Tensor, ...]:
        """All tensors whose first dimension is the source."""
        own = (x for layer in self.own for x in (layer.k_BHWMK, layer.v_BHWMU))
        return (*own, *self.of_memory, self.ancestry_BWWM, self.memory_exists_BS)

    @property
    def of_memory(self) -> tuple[Tensor, ...]:
        """Keys and values of the memory, layer by layer."""
        return tuple(x for layer in self.memory for x in (layer.k_BHMK, layer.v_BHMU))


def empty_slots(
    model: Autoregressive, n_sources: int, beams: int, room: int, source_room: int, like: Tensor
) -> Slots:
    """Storage for `room` tokens of each beam of each source; dtype and device as of `like`."""
    own, memory = [], []
    for layer in model.decoder.layers:
        masked, of_memory = layer.masked_multi_head_attention, layer.multi_head_attention
        places = (n_sources, masked.n_heads, beams, room)
        k, v = like.new_zeros(*places, masked.d_k), like.new_zeros(*places, masked.d_v)
        own.append(SlotKeysValues(k, v))
        if of_memory is not None:
            shape = (n_sources, of_memory.n_heads, source_room)
            k, v = like.new_zeros(*shape, of_memory.d_k), like.new_zeros(*shape, of_memory.d_v)
            memory.append(KeysValues(k, v))
    ancestry = torch.zeros(n_sources, beams, beams, room, dtype=torch.bool, device=like.device)
    exists = torch.ones(n_sources, source_room, dtype=torch.bool, device=like.device)
    place_1 = torch.zeros(1, dtype=torch.int64, device=like.device)
    return Slots(tuple(own), ancestry, place_1, tuple(memory), exists)


def step_in_slots(model: Autoregressive, ids_R: Tensor, parents_BW: Tensor, slots: Slots) -> Tensor:
    """One more token in every row, row w of a source continuing `parents_BW[:, w]`: log-probabilities.

    The host reads no value here, so the step can be captured once and replayed. The next tokens go to
    `slots.place_1`, which the caller advances.
    """
    recall = slots.follow(parents_BW, model.output_positions)
    x_RD = model.embed_outputs(Packed(ids_R, recall.new))
    states_RD = decode_new(model.decoder, x_RD, slots.own, slots.memory, recall)
    return model.output_probabilities.log_probs(states_RD)


def _as_bias(may_attend: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a query may attend, -inf elsewhere."""
    return torch.zeros_like(may_attend, dtype=dtype).masked_fill_(~may_attend, float("-inf"))
