"""BART: encoder and decoder, with learned positions and a norm on the embeddings; and what Marian shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import ModelConfig, TaskConfig
from regard.exchange.families.family import (
    ONE_ROW,
    Entry,
    Family,
    Form,
    both,
    entry,
    hugging_face_activation,
)
from regard.exchange.families.folder import (
    ForeignFolder,
    ForeignSettings,
    byte_level,
    readable_by,
    tokenizer_files,
)
from regard.text.vocabularies.imported import tokenizer_model
from regard.text.vocabularies.vocabulary import Vocabulary

ATTENTION = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "out_proj"}
FEED_FORWARD = {"widen": "fc1", "narrow": "fc2"}
ATTENTIONS = {
    "encoder": {"multi_head_attention": "self_attn"},
    "decoder": {"masked_multi_head_attention": "self_attn", "multi_head_attention": "encoder_attn"},
}
"""The attentions of a stack, by our names, in the order of their norms."""
SIDES = {"encoder": "input", "decoder": "output"}


# --- shared with Marian and Pegasus: the names come from fairseq -------------------------------------------


def layers(config: ModelConfig) -> Iterator[Entry]:
    """Entries of both stacks."""
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
    """Entries of the embeddings and the output layer; a shared weight is named once."""
    if config.shared_embeddings == "three-way":
        yield entry("input_embedding.weight", "model.shared.weight")
    else:
        yield entry("input_embedding.weight", "model.encoder.embed_tokens.weight")
        yield entry("output_embedding.weight", "model.decoder.embed_tokens.weight")
    if config.shared_embeddings == "none":
        yield entry("output_probabilities.weight", "lm_head.weight")
    yield entry("output_probabilities.bias", "final_logits_bias", ONE_ROW)


def shared_names(config: ModelConfig) -> Mapping[str, str]:
    """Second names of the weights in `embeddings`."""
    match config.shared_embeddings:
        case "three-way":
            seconds = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
            return {f"{name}.weight": "model.shared.weight" for name in seconds}
        case "two-way":
            return {"lm_head.weight": "model.decoder.embed_tokens.weight"}
        case "none":
            return {}


def with_bias(theirs: dict[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The weights with a bias of the output layer, which some checkpoints leave out if it is zero."""
    return {"final_logits_bias": torch.zeros(1, config.vocab_size)} | theirs


def common_config(settings: ForeignSettings) -> dict[str, Any]:
    """The settings that these families share, under our names."""
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


def common_settings(config: ModelConfig) -> dict[str, Any]:
    """The same settings, under their names."""
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


# --- BART itself ------------------------------------------------------------------------------------------

AFTER_TWO = Form(
    lambda theirs: [theirs[0][2:]], lambda ours: [torch.cat([torch.zeros(2, ours[0].shape[1]), ours[0]])]
)
"""Positions are counted from 2."""


class Bart(Family):
    """BART."""

    model_type, classes = "bart", ("BartForConditionalGeneration", "BartModel")
    expressible: ClassVar[Mapping[str, Any]] = {
        "norm_position": "post",
        "norm_epsilon": 1e-5,
        "positions": "learned",
        "shared_embeddings": "three-way",
    }

    def config(self, settings: ForeignSettings) -> ModelConfig:
        """The configuration."""
        settings.only("normalize_before", False)
        settings.only("normalize_embedding", True)
        settings.only("add_final_layer_norm", False)
        settings.only("static_position_embeddings", False)
        return ModelConfig(**common_config(settings), positions="learned", embedding_norm=True)

    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of weight names."""
        yield from embeddings(config)
        for stack, side in SIDES.items():
            yield entry(f"{side}_positions.weight", f"model.{stack}.embed_positions.weight", AFTER_TWO)
        yield from layers(config)

    def renamed(self, name: str) -> str:
        """The names of a bare model lack the prefix `model.`."""
        return name if name.startswith(("model.", "lm_head.", "final_logits")) else f"model.{name}"

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:
        """Second names of the embeddings."""
        return shared_names(config)

    def tidied(
        self, theirs: dict[str, Tensor], folder: ForeignFolder, config: ModelConfig
    ) -> dict[str, Tensor]:
        """The weights with a bias of the output layer."""
        return with_bias(super().tidied(theirs, folder, config), config)

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """Byte-level BPE; every text begins with `<s>`, and decoding starts from `</s>`."""
        definition = byte_level(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        if definition is None:
            return None
        settings = folder.settings
        return tokenizer_model(
            "byte-level",
            definition,
            vocab_size=config.vocab_size,
            bos=settings.number("decoder_start_token_id"),
            eos=settings.number("eos_token_id"),
            opening=(settings.number("bos_token_id"),),
        )

    def task(self, folder: ForeignFolder) -> TaskConfig:  # noqa: ARG002
        """Summarisation, as most BART models do; texts are not split into sentences."""
        return TaskConfig(name="summarise")

    # --- out -----------------------------------------------------------------------------------------------

    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """The content of `config.json`."""
        tokenizer = readable_by("BartTokenizer", vocabulary)
        return {
            **common_settings(config),
            "model_type": self.model_type,
            "architectures": [self.classes[0]],
            "decoder_start_token_id": vocabulary.bos_id,
            "bos_token_id": tokenizer.opening[0] if tokenizer.opening else vocabulary.bos_id,
            "eos_token_id": vocabulary.eos_id,
            "pad_token_id": tokenizer.id_of("<pad>"),
            "forced_eos_token_id": None,
        }

    def files(self, vocabulary: Vocabulary, config: ModelConfig, task: TaskConfig) -> dict[str, bytes]:  # noqa: ARG002
        """The files of `BartTokenizer`."""
        return tokenizer_files("BartTokenizer", vocabulary, config)
