"""eole's Transformer, in the plain loop of the other contenders, in an environment of its own."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its CUDA extensions are missing, and it says so at length
    from eole.config.models import TransformerModelConfig
    from eole.config.training import TrainingConfig
    from eole.inputters.inputter import dict_to_vocabs
    from eole.models.model import EncoderDecoderModel

import torch
from torch import Tensor, nn

from benchmarks.peers.contender import D_FF, D_MODEL, N_HEADS, N_LAYERS, PaddedBatch, PaddedContender
from benchmarks.peers.corpus import BOS, EOS, PAD, UNK, VOCABULARY


class Eole(PaddedContender):
    """`EncoderDecoderModel`. Its decoder knows pre-norm only, so the encoder is pre-norm too."""

    name = "eole"

    def build(self, dropout: float) -> nn.Module:
        config = TransformerModelConfig(
            architecture="transformer",
            layers=N_LAYERS,
            heads=N_HEADS,
            hidden_size=D_MODEL,
            transformer_ff=D_FF,
            embeddings={
                "word_vec_size": D_MODEL,
                "position_encoding_type": "SinusoidalInterleaved",
            },
            share_embeddings=True,
            share_decoder_embeddings=True,
            add_qkvbias=True,
            add_final_linear_bias=True,
            add_ffnbias=True,
        )
        training = TrainingConfig(
            dropout=[dropout],
            attention_dropout=[0.0],
            param_init_method="xavier_uniform",
            compute_dtype="fp32",
            use_amp=False,
            gpu_ranks=[],
            world_size=1,
        )
        model = EncoderDecoderModel.for_training(config, vocabularies(), training, device_id=-1)
        for layer in [*model.encoder.transformer_layers, *model.decoder.transformer_layers]:
            layer.mlp.dropout_1 = nn.Identity()  # the other contenders have none there
        return model

    def logits(self, batch: PaddedBatch) -> Tensor:
        # The model drops the last column of its targets by itself.
        last_B1 = batch.decoder_inputs_BT.new_full((len(batch.decoder_inputs_BT), 1), PAD)
        targets_BT = torch.cat([batch.decoder_inputs_BT, last_B1], dim=1)
        source_lengths_B = batch.source_is_real_BS.sum(dim=1)
        output = self.model(batch.source_BS, targets_BT, source_lengths_B)
        return self.model.generator(output.dec_out)


def vocabularies() -> dict:
    """Names for all ids; only the special ones matter."""
    names = [f"▁{i}" for i in range(VOCABULARY)]
    specials = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    for i, name in zip((UNK, BOS, EOS, PAD), specials.values(), strict=True):
        names[i] = name
    return dict_to_vocabs({"src": names, "tgt": names, "specials": specials, "decoder_start_token": "<s>"})
