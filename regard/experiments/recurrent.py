"""What the Transformer replaced: a recurrent encoder and decoder, without attention and with it.

Here to be compared with, and no part of the package. Both read packed tokens as `Transformer` does, so what
trains and measures one does the same to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.model.embedding import Embedding
from regard.model.linear import Linear
from regard.model.output_probabilities import OutputProbabilities
from regard.model.scaled_dot_product_attention import scaled_dot_product_attention
from regard.packing import Boundaries, Packed


@dataclass(frozen=True, eq=False)
class RecurrentMemory:
    """What the encoder made of the inputs: a state after each token, and the last of each sequence."""

    states_BSD: Tensor
    last_BD: Tensor
    boundaries: Boundaries


class Recurrent(nn.Module):
    """A GRU reads (Cho et al., 2014), another writes, starting from the first one's last state.

    With `attention`, every state that writes also weighs all the states that were read (Luong et al., 2015).
    """

    def __init__(self, vocab_size: int, d_model: int, *, attention: bool) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.w_q = Linear(d_model, d_model) if attention else None
        self.joined = Linear(2 * d_model, d_model) if attention else None
        self.output_probabilities = OutputProbabilities(d_model, vocab_size)

    def forward(self, inputs: Packed, outputs: Packed) -> Tensor:
        """Logits of the token after each output token, (T, V)."""
        logits_TV: Tensor = self.output_probabilities(self.decode(outputs, self.encode(inputs)))
        return logits_TV

    def encode(self, inputs: Packed) -> RecurrentMemory:
        """Inputs to memory, one token after another."""
        (x_BSD,) = inputs.boundaries.padded.pad(self.embedding(inputs.ids_N))
        # torch's own packing, so that the last state is that of a sequence's last token.
        lengths = torch.tensor(inputs.boundaries.known_lengths)
        found: PackedSequence
        found, last_1BD = self.encoder(
            pack_padded_sequence(x_BSD, lengths, batch_first=True, enforce_sorted=False)
        )
        states_BSD, _ = pad_packed_sequence(found, batch_first=True)
        return RecurrentMemory(states_BSD, last_1BD[0], inputs.boundaries)

    def decode(self, outputs: Packed, memory: RecurrentMemory) -> Tensor:
        """Outputs, shifted right, to the states behind the output layer's probabilities, (T, d_model)."""
        view = outputs.boundaries.padded
        (x_BTD,) = view.pad(self.embedding(outputs.ids_N))
        states_BTD, _ = self.decoder(x_BTD, memory.last_BD[None])
        if self.w_q is not None and self.joined is not None:
            keys_BSD, may_attend = memory.states_BSD, memory.boundaries.exists_BL[:, None, :]
            seen_BTD = scaled_dot_product_attention(self.w_q(states_BTD), keys_BSD, keys_BSD, may_attend)
            states_BTD = torch.tanh(self.joined(torch.cat([states_BTD, seen_BTD], dim=-1)))
        return view.unpad([states_BTD])
