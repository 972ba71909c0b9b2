"""What the three assemblies of the boxes have in common, and autoregressive decoding (3.1).

`log_probs, cache = model.step(ids, cache)` is all that greedy search, beam search and sampling use.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import ConfigError, ShapeError
from regard.model.add_and_norm import Dropout, new_norm
from regard.model.decoder import Decoder
from regard.model.embedding import Embedding
from regard.model.fast.cache import Cache, room_for
from regard.model.fast.cached_decoder import decode_new, empty_keys_values
from regard.model.output_probabilities import OutputProbabilities
from regard.model.positional_encoding import Positions
from regard.model.taps import note, tap
from regard.packing import Packed


class Assembly(nn.Module):
    """A whole model: a configuration, and the dtype of its activations."""

    def __init__(self, config: ModelConfig, architecture: str) -> None:
        super().__init__()
        if config.architecture != architecture:
            ours, given = f"{type(self).__name__} needs {architecture!r}", repr(config.architecture)
            raise ConfigError(f"model.architecture = {given}; {ours}", code="wrong_architecture")
        self.config = config
        self._compute_dtype: torch.dtype | None = None
        self.dropout = Dropout(config.dropout)

    @property
    def compute_dtype(self) -> torch.dtype:
        """The dtype of activations: that of the weights, unless it was set.

        Weights may be more precise than activations: set bfloat16 here for mixed precision.
        """
        return self._compute_dtype or next(self.parameters()).dtype

    @compute_dtype.setter
    def compute_dtype(self, dtype: torch.dtype) -> None:
        self._compute_dtype = dtype

    @property
    def n_parameters(self) -> int:
        """Number of weights; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def embed(
        self, tokens: Packed, embedding: Embedding, positions: Positions, norm: nn.Module | None = None
    ) -> Tensor:
        """Figure 1, below the stacks: embedding plus position, then dropout (5.4)."""
        if not isinstance(tokens, Packed):
            raise ShapeError("tokens", "a result of `regard.pack`", type(tokens).__name__, code="not_packed")
        note(embedding, "places", tokens.boundaries.positions_N)
        x_ND = tap(embedding, "embedded", embedding(tokens.ids_N))
        position_ND = positions(tokens.boundaries)
        if position_ND is not None:
            x_ND = x_ND + tap(positions, "added", position_ND)
        if norm is not None:
            x_ND = norm(x_ND)
        return tap(embedding, "with_positions", self.dropout(x_ND.to(self.compute_dtype)))

    def new_embedding(self) -> Embedding:
        """The embedding of the vocabulary."""
        config = self.config
        return Embedding(config.vocab_size, config.d_model, scaled=config.scale_embeddings)

    def new_embedding_norm(self) -> nn.Module | None:
        """Departure 7: an optional norm over the sum of embedding and position."""
        return new_norm(self.config) if self.config.embedding_norm else None

    def new_output(self, embedding: Embedding) -> OutputProbabilities:
        """The output layer over the vocabulary; it may share the embedding's weights (3.4)."""
        config = self.config
        output = OutputProbabilities(config.d_model, config.vocab_size, bias=config.output_bias)
        if config.shared_embeddings != "none":
            output.weight = embedding.weight
        return output


class Autoregressive(Assembly):
    """A model with a decoder, which predicts each token from those before it."""

    output_embedding: Embedding
    output_positions: Positions
    output_norm: nn.Module | None
    decoder: Decoder
    output_probabilities: OutputProbabilities

    def embed_outputs(self, outputs: Packed) -> Tensor:
        """Figure 1, right, below the stack."""
        return self.embed(outputs, self.output_embedding, self.output_positions, self.output_norm)

    def extend(self, outputs: Packed, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities after each new token, given those in the cache, (N, V); and the new cache."""
        return self._extend(Packed(outputs.ids_N, cache.place(outputs.boundaries)), cache)

    def step(
        self, ids_R: Tensor, cache: Cache, output: OutputProbabilities | None = None
    ) -> tuple[Tensor, Cache]:
        """One more token in every row: log-probabilities of the next, (R, V), and the new cache.

        `output` replaces the output layer, by one for some tokens only (`OutputProbabilities.among`).
        """
        if len(ids_R) != cache.n_rows:
            expected = f"one new token for each of the cache's {cache.n_rows} rows"
            raise ShapeError("ids", expected, len(ids_R), code="row_count_mismatch")
        return self._extend(Packed(ids_R, cache.place_one_each()), cache, output)

    def _extend(
        self, new: Packed, cache: Cache, output: OutputProbabilities | None = None
    ) -> tuple[Tensor, Cache]:
        placed = new.boundaries
        assert placed.n_positions is not None, "the cache knows the positions of new tokens"
        cache = cache.writable(placed.n_positions)
        recall = cache.recall(placed, self.output_positions)
        x_ND = self.embed_outputs(new)
        states_ND = decode_new(self.decoder, x_ND, cache.own, cache.memory, recall)
        return (output or self.output_probabilities).log_probs(states_ND), cache.advanced(placed)

    def empty_cache(self, n_rows: int, capacity: int, like: Tensor) -> Cache:
        """Storage for `capacity` tokens in each of `n_rows` rows; dtype and device as of `like`."""
        if n_rows < 1 or capacity < 1:
            raise ShapeError("n_rows, capacity", "at least 1", (n_rows, capacity), code="bad_size")
        lengths_R = torch.zeros(n_rows, dtype=torch.int64, device=like.device)
        own = empty_keys_values(self.decoder, n_rows, room_for(1, capacity), like)
        return Cache(own=own, lengths_R=lengths_R, longest=0, capacity=capacity)
