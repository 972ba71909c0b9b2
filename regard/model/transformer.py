"""Figure 1: the Transformer.

    memory = encoder(inputs)
    probabilities = softmax(linear(decoder(outputs shifted right, memory)))

Inputs and outputs are packed: sequence i of the outputs answers sequence i of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from regard.config import ModelConfig
from regard.errors import ShapeError
from regard.model.assembly import Autoregressive
from regard.model.decoder import Decoder
from regard.model.encoder import Encoder
from regard.model.fast.cache import Cache
from regard.model.fast.cached_decoder import memory_keys_values
from regard.model.masks import SameSequence
from regard.model.positional_encoding import new_positions
from regard.packing import Boundaries, Packed


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's result."""

    states_SD: Tensor
    boundaries: Boundaries


class Transformer(Autoregressive):
    """Encoder and decoder, as Figure 1 draws them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, "encoder-decoder")
        self.input_embedding = self.new_embedding()
        self.input_positions = new_positions(config, causal=False)
        self.input_norm = self.new_embedding_norm()
        self.encoder = Encoder(config)
        self.output_embedding = self.new_embedding()
        if config.shared_embeddings == "three-way":
            self.output_embedding.weight = self.input_embedding.weight
        self.output_positions = new_positions(config, causal=True)
        self.output_norm = self.new_embedding_norm()
        self.decoder = Decoder(config)
        self.output_probabilities = self.new_output(self.output_embedding)

    def forward(self, inputs: Packed, outputs: Packed) -> Tensor:
        """Logits of the token after each output token, (T, V)."""
        logits_TV: Tensor = self.output_probabilities(self.decode(outputs, self.encode(inputs)))
        return logits_TV

    def embed_inputs(self, inputs: Packed) -> Tensor:
        """Figure 1, left, below the stack."""
        return self.embed(inputs, self.input_embedding, self.input_positions, self.input_norm)

    def encode(self, inputs: Packed) -> Memory:
        """Inputs to memory."""
        x_SD = self.embed_inputs(inputs)
        within = SameSequence(inputs.boundaries, inputs.boundaries, causal=False)
        bias = self.input_positions.bias_within(inputs.boundaries)
        return Memory(self.encoder(x_SD, within, bias), inputs.boundaries)

    def decode(self, outputs: Packed, memory: Memory) -> Tensor:
        """Outputs, shifted right, to the states that the output layer reads, (T, d_model)."""
        own, of_memory = outputs.boundaries, memory.boundaries
        if own.lengths is not None and own.n_sequences != of_memory.n_sequences:
            expected = f"one for each of {of_memory.n_sequences} inputs"
            raise ShapeError("outputs", expected, own.n_sequences, code="sequence_count_mismatch")
        x_TD = self.embed_outputs(outputs)
        so_far = SameSequence(own, own, causal=True)
        source = SameSequence(own, of_memory, causal=False)
        bias = self.output_positions.bias_within(own)
        states_TD: Tensor = self.decoder(x_TD, memory.states_SD, so_far, source, bias)
        return states_TD

    def start(self, memory: Memory, capacity: int, beams: int = 1) -> Cache:
        """An empty cache of `beams` rows per source, with storage for `capacity` tokens per row."""
        if beams < 1 or capacity < 1:
            raise ShapeError("beams, capacity", "at least 1", (beams, capacity), code="bad_size")
        view = memory.boundaries.padded
        (memory_BSD,) = view.pad(memory.states_SD)
        even = len(set(memory.boundaries.known_lengths)) == 1
        cache = self.empty_cache(memory.boundaries.n_sequences * beams, capacity, memory.states_SD)
        return replace(
            cache,
            memory=memory_keys_values(self.decoder, memory_BSD, view),
            memory_may_attend=None if even else memory.boundaries.exists_BL[:, None, None, :],
        )
