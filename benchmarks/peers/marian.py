"""Hugging Face Marian, in a plain loop."""

from __future__ import annotations

from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers.contender import D_FF, D_MODEL, N_HEADS, N_LAYERS, PaddedBatch, PaddedContender
from benchmarks.peers.corpus import BOS, EOS, PAD, VOCABULARY


class Marian(PaddedContender):
    """`MarianMTModel`, the class behind the OPUS-MT translators."""

    name = "marian"

    def build(self, dropout: float) -> nn.Module:
        config = MarianConfig(
            vocab_size=VOCABULARY,
            d_model=D_MODEL,
            encoder_layers=N_LAYERS,
            decoder_layers=N_LAYERS,
            encoder_attention_heads=N_HEADS,
            decoder_attention_heads=N_HEADS,
            encoder_ffn_dim=D_FF,
            decoder_ffn_dim=D_FF,
            max_position_embeddings=128,
            activation_function="relu",
            scale_embedding=True,
            dropout=dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            use_cache=False,
            attn_implementation="eager" if self.setting.endswith("eager") else "sdpa",
        )
        return MarianMTModel(config)

    def logits(self, batch: PaddedBatch) -> Tensor:
        return self.model(
            input_ids=batch.source_BS,
            attention_mask=batch.source_is_real_BS if batch.has_source_padding else None,
            decoder_input_ids=batch.decoder_inputs_BT,
            use_cache=False,
        ).logits
