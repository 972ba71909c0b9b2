"""The names that Marian, BART and Pegasus share: fairseq's, as Hugging Face keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.exchange.families.family import hugging_face_activation
from regard.exchange.families.naming import ONE_ROW, Entry, both, entry
from regard.exchange.huggingface.folder import Settings

ATTENTION = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "out_proj"}
FEED_FORWARD = {"widen": "fc1", "narrow": "fc2"}
ATTENTIONS = {
    "encoder": {"multi_head_attention": "self_attn"},
    "decoder": {"masked_multi_head_attention": "self_attn", "multi_head_attention": "encoder_attn"},
}
"""Of each stack, by our name, in the order of their norms."""
SIDES = {"encoder": "input", "decoder": "output"}


def layers(config: ModelConfig) -> Iterator[Entry]:
    """Both stacks."""
    for stack, n_layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for i in range(n_layers):
            yield from _layer(stack, f"{stack}.layers.{i}", f"model.{stack}.layers.{i}")
        if config.norm_position == "pre":
            yield from both(f"{stack}.norm", f"model.{stack}.layer_norm")
        if config.embedding_norm:
            yield from both(f"{SIDES[stack]}_norm", f"model.{stack}.layernorm_embedding")


def _layer(stack: str, ours: str, theirs: str) -> Iterator[Entry]:
    for block, name in ATTENTIONS[stack].items():
        for w, proj in ATTENTION.items():
            yield from both(f"{ours}.{block}.{w}", f"{theirs}.{name}.{proj}")
    for w, fc in FEED_FORWARD.items():
        yield from both(f"{ours}.feed_forward.{w}", f"{theirs}.{fc}")
    norms = [f"{name}_layer_norm" for name in ATTENTIONS[stack].values()]
    for i, norm in enumerate([*norms, "final_layer_norm"]):
        yield from both(f"{ours}.add_and_norm.{i}.norm", f"{theirs}.{norm}")


def embeddings(config: ModelConfig) -> Iterator[Entry]:
    """The embeddings and the output layer, each weight once, however many boxes share it."""
    if config.shared_embeddings == "three-way":
        yield entry("input_embedding.weight", "model.shared.weight")
    else:
        yield entry("input_embedding.weight", "model.encoder.embed_tokens.weight")
        yield entry("output_embedding.weight", "model.decoder.embed_tokens.weight")
    if config.shared_embeddings == "none":
        yield entry("output_probabilities.weight", "lm_head.weight")
    yield entry("output_probabilities.bias", "final_logits_bias", ONE_ROW)


def shared_names(config: ModelConfig) -> Mapping[str, str]:
    """Second names of what `embeddings` names."""
    match config.shared_embeddings:
        case "three-way":
            seconds = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
            return {f"{name}.weight": "model.shared.weight" for name in seconds}
        case "two-way":
            return {"lm_head.weight": "model.decoder.embed_tokens.weight"}
        case "none":
            return {}


def with_bias(theirs: dict[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The weights, with a bias of the output layer: some leave it out where it is zero."""
    return {"final_logits_bias": torch.zeros(1, config.vocab_size)} | theirs


def shape(settings: Settings) -> dict[str, Any]:
    """The settings that these families have in common, under our names."""
    settings.only("tie_word_embeddings", True)
    return {
        "vocab_size": settings.number("vocab_size"),
        "d_model": settings.number("d_model"),
        "n_heads": settings.same("encoder_attention_heads", "decoder_attention_heads"),
        "d_ff": settings.same("encoder_ffn_dim", "decoder_ffn_dim"),
        "encoder_layers": settings.number("encoder_layers"),
        "decoder_layers": settings.number("decoder_layers"),
        "dropout": settings.get("dropout", 0.1),
        "feed_forward": settings.activation("activation_function"),
        "max_length": settings.number("max_position_embeddings"),
        "scale_embeddings": bool(settings.get("scale_embedding", False)),
        "attention_bias": True,
        "output_bias": True,
    }


def described(config: ModelConfig) -> dict[str, Any]:
    """The same settings under their names."""
    heads, width = config.n_heads, config.d_ff
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": width,
        "decoder_ffn_dim": width,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "dropout": config.dropout,
        "activation_function": hugging_face_activation(config),
        "max_position_embeddings": config.max_length,
        "scale_embedding": config.scale_embeddings,
        "is_encoder_decoder": True,
    }
