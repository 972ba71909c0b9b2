"""`torch.nn.Transformer` with the embeddings and the output layer that it leaves to its user."""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.peers.contender import D_FF, D_MODEL, N_HEADS, N_LAYERS, PaddedBatch, PaddedContender
from benchmarks.peers.corpus import VOCABULARY


class TorchTransformer(PaddedContender):
    """`torch.nn.Transformer`, post-norm, batch first."""

    name = "torch.nn"

    def build(self, dropout: float) -> nn.Module:
        return Translator(dropout)

    def logits(self, batch: PaddedBatch) -> Tensor:
        source_is_padding_BS = ~batch.source_is_real_BS if batch.has_source_padding else None
        math_only = self.setting.endswith("math")
        with sdpa_kernel(SDPBackend.MATH) if math_only else nullcontext():
            return self.model(batch.source_BS, source_is_padding_BS, batch.decoder_inputs_BT)


class Translator(nn.Module):
    """Embedding, sinusoids, `nn.Transformer`, and the embedding table once more as output layer."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
        nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
        self.register_buffer("positions_LD", sinusoids(128))
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            d_model=D_MODEL,
            nhead=N_HEADS,
            num_encoder_layers=N_LAYERS,
            num_decoder_layers=N_LAYERS,
            dim_feedforward=D_FF,
            dropout=dropout,
            batch_first=True,
        )
        for module in self.transformer.modules():
            # As in the paper and in the other contenders: no dropout on attention weights (which
            # would also bar the fused kernel), none inside the feed-forward network.
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout = nn.Identity()
        self.register_buffer("causal_LL", nn.Transformer.generate_square_subsequent_mask(128))

    def embed(self, ids_BL: Tensor) -> Tensor:
        """Scaled embeddings plus positions."""
        x_BLD = self.embedding(ids_BL) * math.sqrt(D_MODEL)
        return self.dropout(x_BLD + self.positions_LD[: ids_BL.shape[1]])

    def forward(
        self, source_BS: Tensor, source_is_padding_BS: Tensor | None, decoder_inputs_BT: Tensor
    ) -> Tensor:
        """Logits. The targets are padded on the right, so that the causal mask is all they need."""
        T = decoder_inputs_BT.shape[1]
        hidden_BTD = self.transformer(
            self.embed(source_BS),
            self.embed(decoder_inputs_BT),
            tgt_mask=self.causal_LL[:T, :T],
            src_key_padding_mask=source_is_padding_BS,
            memory_key_padding_mask=source_is_padding_BS,
            tgt_is_causal=True,
        )
        return F.linear(hidden_BTD, self.embedding.weight)


def sinusoids(length: int) -> Tensor:
    """Positional encoding, section 3.5."""
    angles_LK = torch.arange(length)[:, None] * 10_000 ** (-torch.arange(0, D_MODEL, 2) / D_MODEL)
    return torch.stack([angles_LK.sin(), angles_LK.cos()], dim=-1).flatten(1)
