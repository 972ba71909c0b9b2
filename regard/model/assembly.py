"""What the three assemblies of the boxes have in common."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import ConfigError, ShapeError
from regard.model.add_and_norm import LayerNorm, RMSNorm, make_norm
from regard.model.dropout import Dropout
from regard.model.embedding import Embedding
from regard.model.output_probabilities import OutputProbabilities
from regard.model.positional_encoding import LearnedPositions, SinusoidalPositions
from regard.model.taps import tap
from regard.packing import Packed


class Assembly(nn.Module):
    """A whole model: a configuration, and the dtype that its activations have."""

    def __init__(self, config: ModelConfig, architecture: str) -> None:
        super().__init__()
        if config.architecture != architecture:
            problem = (
                f"model.architecture = {config.architecture!r}; {type(self).__name__} is {architecture!r}"
            )
            raise ConfigError([problem])
        self.config = config
        self._compute_dtype: torch.dtype | None = None
        self.dropout = Dropout(config.dropout)

    @property
    def compute_dtype(self) -> torch.dtype:
        """What flows: as the weights are, so that `double()` means what it says; or what it was set to.

        Weights may be kept finer than what flows: set bfloat16 here for mixed precision.
        """
        return self._compute_dtype or next(self.parameters()).dtype

    @compute_dtype.setter
    def compute_dtype(self, dtype: torch.dtype) -> None:
        self._compute_dtype = dtype

    @property
    def n_parameters(self) -> int:
        """Every weight once, however many boxes share it."""
        return sum(parameter.numel() for parameter in self.parameters())

    def embed(
        self,
        tokens: Packed,
        embedding: Embedding,
        positions: SinusoidalPositions | LearnedPositions | None,
        norm: LayerNorm | RMSNorm | None = None,
    ) -> Tensor:
        """Figure 1, below the stacks: embedding plus position, then dropout (5.4)."""
        if not isinstance(tokens, Packed):
            raise ShapeError("tokens", "sequences that `regard.pack` laid end to end", type(tokens).__name__)
        x_ND = tap(embedding, "embedded", embedding(tokens.ids_N))
        if positions is not None:
            x_ND = x_ND + positions(tokens.boundaries)
        if norm is not None:
            x_ND = norm(x_ND)
        return tap(embedding, "with_positions", self.dropout(x_ND.to(self.compute_dtype)))

    def new_embedding(self) -> Embedding:
        """One vocabulary's embedding, as configured."""
        config = self.config
        return Embedding(config.vocab_size, config.d_model, scaled=config.scale_embeddings)

    def new_embedding_norm(self) -> LayerNorm | RMSNorm | None:
        """Departure 7: a norm over the sum of embedding and position, where there is to be one."""
        return make_norm(self.config) if self.config.embedding_norm else None

    def new_output(self, embedding: Embedding) -> OutputProbabilities:
        """The output layer over the vocabulary, sharing the embedding's weights when so configured (3.4)."""
        config = self.config
        output = OutputProbabilities(config.d_model, config.vocab_size, bias=config.output_bias)
        if config.shared_embeddings != "none":
            output.weight = embedding.weight
        return output
