"""Autoregressive decoding: each token is predicted from those before it (3.1).

`log_probs, cache = model.step(ids, cache)` is all that greedy search, beam search and sampling need to know.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ShapeError
from regard.model.assembly import Assembly
from regard.model.cache import Cache
from regard.model.decoder import Decoder
from regard.model.embedding import Embedding
from regard.model.output_probabilities import OutputProbabilities
from regard.model.positional_encoding import LearnedPositions, SinusoidalPositions
from regard.packing import Boundaries, Packed


class Autoregressive(Assembly):
    """A model with a decoder, which can go on from a cache."""

    output_embedding: Embedding
    output_positions: SinusoidalPositions | LearnedPositions | None
    decoder: Decoder
    output_probabilities: OutputProbabilities

    def extend(self, outputs: Packed, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities after each new token, given those in the cache, (N, V); and the new cache."""
        new = Packed(outputs.ids_N, cache.place(outputs.boundaries))
        x_ND = self.embed(new, self.output_embedding, self.output_positions)
        states_ND, cache = self.decoder.extend(x_ND, cache, new.boundaries)
        return self.output_probabilities.log_probs(states_ND), cache

    def step(self, ids_R: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """One more token in every row: log-probabilities of the next, (R, V), and the cache."""
        return self.extend(Packed(ids_R, Boundaries.of_lengths([1] * len(ids_R), ids_R.device)), cache)

    def empty_cache(self, n_rows: int, capacity: int, like: Tensor) -> Cache:
        """Room for `capacity` tokens in each of `n_rows` rows; dtype and device as of `like`."""
        if n_rows < 1 or capacity < 1:
            raise ShapeError("n_rows, capacity", "at least 1", (n_rows, capacity))
        lengths_R = torch.zeros(n_rows, dtype=torch.int64, device=like.device)
        return Cache(own=self.decoder.empty_cache(n_rows, capacity, like), lengths_R=lengths_R, longest=0)
