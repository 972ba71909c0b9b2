"""The decoder alone: a language model, which continues a text."""

from __future__ import annotations

from torch import Tensor

from regard.config import ModelConfig
from regard.model.assembly import Autoregressive
from regard.model.decoder import Decoder
from regard.model.fast.cache import Cache
from regard.model.masks import SameSequence
from regard.model.positional_encoding import new_positions
from regard.packing import Packed


class LanguageModel(Autoregressive):
    """Figure 1, right, without the attention to an encoder."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, "decoder")
        self.output_embedding = self.new_embedding()
        self.output_positions = new_positions(config, causal=True)
        self.output_norm = self.new_embedding_norm()
        self.decoder = Decoder(config, memory=False)
        self.output_probabilities = self.new_output(self.output_embedding)

    def forward(self, outputs: Packed) -> Tensor:
        """Logits of the token after each token, (N, V)."""
        logits_NV: Tensor = self.output_probabilities(self.decode(outputs))
        return logits_NV

    def decode(self, outputs: Packed) -> Tensor:
        """Tokens to the states that the output layer reads, (N, d_model)."""
        x_ND = self.embed_outputs(outputs)
        so_far = SameSequence(outputs.boundaries, outputs.boundaries, causal=True)
        bias = self.output_positions.bias_within(outputs.boundaries)
        states_ND: Tensor = self.decoder(x_ND, None, so_far, score_bias=bias)
        return states_ND

    def start(self, n_rows: int, capacity: int) -> Cache:
        """An empty cache of `n_rows` texts, with storage for `capacity` tokens per text."""
        like = self.output_embedding.weight.new_empty(0, dtype=self.compute_dtype)
        return self.empty_cache(n_rows, capacity, like)
