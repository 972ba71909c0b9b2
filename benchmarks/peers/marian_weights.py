"""A model folder of ours as a `MarianMTModel`: the same weights under Marian's names.

Marian is post-norm, with ReLU, a table of positions, one scaled embedding for both inputs and the output
layer, and biases in attention (0 where our model has none).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from benchmarks.peers.corpus import BOS, EOS, UNK
from regard.bundle import load_bundle

ATTENTION = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "out_proj"}
FEED_FORWARD = {"widen": "fc1", "narrow": "fc2"}
SUBLAYERS = {
    "encoder": ({"multi_head_attention": "self_attn"}, ("self_attn_layer_norm", "final_layer_norm")),
    "decoder": (
        {"masked_multi_head_attention": "self_attn", "multi_head_attention": "encoder_attn"},
        ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
    ),
}
"""Of each stack: its attentions by our name, and its norms in order."""


def as_marian(folder: Path, dtype: torch.dtype) -> MarianMTModel:
    """The model of a folder, ready to generate."""
    bundle = load_bundle(folder)
    config, ours = bundle.config, bundle.model
    assert (config.norm_position, config.norm, config.feed_forward) == ("post", "layer", "relu"), "Marian's"
    assert (config.positions, config.shared_embeddings) == ("sinusoidal", "three-way"), "Marian's"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marian = MarianMTModel(
            MarianConfig(
                vocab_size=config.vocab_size,
                d_model=config.d_model,
                encoder_layers=config.encoder_layers,
                decoder_layers=config.decoder_layers,
                encoder_attention_heads=config.n_heads,
                decoder_attention_heads=config.n_heads,
                encoder_ffn_dim=config.d_ff,
                decoder_ffn_dim=config.d_ff,
                max_position_embeddings=config.max_length,
                activation_function="relu",
                scale_embedding=config.scale_embeddings,
                # Our vocabulary has no padding. What stands in padded places is masked, so any id will do.
                pad_token_id=UNK,
                bos_token_id=BOS,
                eos_token_id=EOS,
                decoder_start_token_id=BOS,
                forced_eos_token_id=None,
            )
        )
    weights = dict(renamed(ours.state_dict()))
    positions = ours.input_positions.table
    for stack in ("encoder", "decoder"):
        weights[f"model.{stack}.embed_positions.weight"] = positions
    absent = set(marian.state_dict()) - set(weights) - {"final_logits_bias"}
    zeros = {name: torch.zeros_like(marian.state_dict()[name]) for name in absent}
    assert all(name.endswith("_proj.bias") for name in zeros), f"weights that ours should have: {absent}"
    marian.load_state_dict(weights | zeros, strict=False)
    return marian.to(dtype).eval()


def renamed(weights: dict[str, Tensor]):
    """Our weights under Marian's names."""
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        yield f"{name}.weight", weights["input_embedding.weight"]
    for name, weight in weights.items():
        if ".layers." not in name:
            continue
        stack, _, number, block, part, *rest = name.split(".")
        attentions, norms = SUBLAYERS[stack]
        if block in attentions:
            theirs = f"{attentions[block]}.{ATTENTION[part]}"
        elif block == "feed_forward":
            theirs = FEED_FORWARD[part]
        else:
            theirs = norms[int(part)]
        yield f"model.{stack}.layers.{number}.{theirs}.{[part, *rest][-1]}", weight
