"""The encoder alone: a classifier, which predicts the label from the first token, [CLS]."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.add_and_norm import new_norm
from regard.model.assembly import Assembly
from regard.model.encoder import Encoder
from regard.model.linear import Linear
from regard.model.masks import SameSequence
from regard.model.output_probabilities import OutputProbabilities
from regard.model.positional_encoding import new_positions
from regard.model.taps import tap
from regard.packing import Packed


class Classifier(Assembly):
    """Figure 1, left, with a linear map and a softmax over labels on top of the first token."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, "encoder")
        self.input_embedding = self.new_embedding()
        self.input_positions = new_positions(config, causal=False)
        self.input_norm = self.new_embedding_norm()
        self.encoder = Encoder(config)
        self.label_head = LabelHead(config)
        self.output_probabilities = OutputProbabilities(config.d_model, config.n_labels, bias=True)

    def forward(self, inputs: Packed) -> Tensor:
        """Logits of the labels, (B, n_labels); every sequence starts with [CLS]."""
        first_BD = self.encode(inputs).index_select(0, inputs.boundaries.starts_B)
        logits: Tensor = self.output_probabilities(self.label_head(first_BD))
        return logits

    def embed_inputs(self, inputs: Packed) -> Tensor:
        """Figure 1, left, below the stack."""
        return self.embed(inputs, self.input_embedding, self.input_positions, self.input_norm)

    def encode(self, inputs: Packed) -> Tensor:
        """States of all tokens, (N, d_model)."""
        x_ND = self.embed_inputs(inputs)
        within = SameSequence(inputs.boundaries, inputs.boundaries, causal=False)
        states_ND: Tensor = self.encoder(x_ND, within, self.input_positions.bias_within(inputs.boundaries))
        return states_ND


class LabelHead(nn.Module):
    """The map before the output layer: none, or one of BERT's two (Departure 8)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.label_head
        if self.kind != "none":
            self.map = Linear(config.d_model, config.d_model)
        if self.kind == "gelu-norm":
            self.norm = new_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) to (…, d_model)."""
        if self.kind != "none":
            mapped = tap(self, "mapped", self.map(x))
            activation = torch.tanh if self.kind == "tanh" else F.gelu
            x = tap(self, "hidden", activation(mapped))
        if self.kind == "gelu-norm":
            x = self.norm(x)
        return tap(self, "output", x)

    @property
    def taps(self) -> tuple[str, ...]:
        """The units before and after the activation, and what the output layer reads."""
        return ("output",) if self.kind == "none" else ("mapped", "hidden", "output")
