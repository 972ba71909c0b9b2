"""Autoregressive decoding: each token is predicted from those before it (3.1).

`log_probs, cache = model.step(ids, cache)` is all that greedy search, beam search and sampling need to know.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ShapeError
from regard.model.add_and_norm import LayerNorm, RMSNorm
from regard.model.assembly import Assembly
from regard.model.decoder import Decoder
from regard.model.embedding import Embedding
from regard.model.fast.cache import Cache, KeysValues, room_for
from regard.model.fast.slots import SlotKeysValues, Slots
from regard.model.output_probabilities import OutputProbabilities
from regard.model.positional_encoding import LearnedPositions, SinusoidalPositions
from regard.packing import Packed


class Autoregressive(Assembly):
    """A model with a decoder, which can go on from a cache."""

    output_embedding: Embedding
    output_positions: SinusoidalPositions | LearnedPositions | None
    output_norm: LayerNorm | RMSNorm | None
    decoder: Decoder
    output_probabilities: OutputProbabilities

    def embed_outputs(self, outputs: Packed) -> Tensor:
        """Figure 1, right, below the stack."""
        return self.embed(outputs, self.output_embedding, self.output_positions, self.output_norm)

    def extend(self, outputs: Packed, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities after each new token, given those in the cache, (N, V); and the new cache."""
        return self._extend(Packed(outputs.ids_N, cache.place(outputs.boundaries)), cache)

    def step(self, ids_R: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """One more token in every row: log-probabilities of the next, (R, V), and the cache."""
        if len(ids_R) != cache.n_rows:
            raise ShapeError("ids", f"a new token for each of the cache's {cache.n_rows} rows", len(ids_R))
        return self._extend(Packed(ids_R, cache.place_one_each()), cache)

    def _extend(self, new: Packed, cache: Cache) -> tuple[Tensor, Cache]:
        """The same, of tokens that were placed."""
        assert new.boundaries.n_positions is not None, "the cache places tokens by numbers that it knows"
        cache = cache.with_room(new.boundaries.n_positions)
        x_ND = self.embed_outputs(new)
        states_ND, cache = self.decoder.extend(x_ND, cache, new.boundaries)
        return self.output_probabilities.log_probs(states_ND), cache

    def step_in_slots(self, ids_R: Tensor, parents_BW: Tensor, slots: Slots) -> Tensor:
        """One more token in every row, row w of a source going on from `parents_BW[:, w]`: log-probabilities.

        The host learns and decides nothing here, so the step can be captured once and run again. The next
        tokens go to `slots.place_1`, which is for the caller to move on.
        """
        recall = slots.follow(parents_BW)
        x_RD = self.embed_outputs(Packed(ids_R, recall.new))
        states_RD = self.decoder.look_back(x_RD, slots.own, slots.memory, recall)
        return self.output_probabilities.log_probs(states_RD)

    def empty_slots(self, n_sources: int, beams: int, room: int, source_room: int, like: Tensor) -> Slots:
        """Room for `room` tokens of each beam of each source; dtype and device as of `like`."""
        own, memory = [], []
        for layer in self.decoder.layers:
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

    def empty_cache(self, n_rows: int, capacity: int, like: Tensor) -> Cache:
        """Room for `capacity` tokens in each of `n_rows` rows; dtype and device as of `like`."""
        if n_rows < 1 or capacity < 1:
            raise ShapeError("n_rows, capacity", "at least 1", (n_rows, capacity))
        lengths_R = torch.zeros(n_rows, dtype=torch.int64, device=like.device)
        own = self.decoder.empty_cache(n_rows, room_for(1, capacity), like)
        return Cache(own=own, lengths_R=lengths_R, longest=0, capacity=capacity)
