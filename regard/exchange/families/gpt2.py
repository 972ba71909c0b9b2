"""GPT-2: a decoder, pre-norm, with learned positions. Its maps are transposed, W^Q, W^K and W^V are one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from regard.config import ModelConfig, TaskConfig
from regard.exchange.families.family import (
    THREE_IN_ONE,
    THREE_TRANSPOSED,
    TRANSPOSED,
    Entry,
    Family,
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

END = "<|endoftext|>"
QUERY_KEY_VALUE = ("w_q", "w_k", "w_v")


class Gpt2(Family):
    """GPT-2."""

    model_type, classes = "gpt2", ("GPT2LMHeadModel",)
    computed = re.compile(r"transformer\.h\.\d+\.attn\.(bias|masked_bias)")
    expressible: ClassVar[Mapping[str, Any]] = {
        "norm_position": "pre",
        "positions": "learned",
        "scale_embeddings": False,
        "embedding_norm": False,
        "output_bias": False,
    }

    def config(self, settings: ForeignSettings) -> ModelConfig:
        """The configuration."""
        settings.only("scale_attn_weights", True)
        settings.only("scale_attn_by_inverse_layer_idx", False)
        settings.only("add_cross_attention", False)
        d_model = settings.number("n_embd")
        return ModelConfig(
            architecture="decoder",
            vocab_size=settings.number("vocab_size"),
            d_model=d_model,
            n_heads=settings.number("n_head"),
            d_ff=settings.get("n_inner") or 4 * d_model,
            encoder_layers=0,
            decoder_layers=settings.number("n_layer"),
            dropout=settings.get("resid_pdrop", 0.1),
            norm_position="pre",
            norm_epsilon=settings.get("layer_norm_epsilon", 1e-5),
            feed_forward=settings.activation("activation_function"),
            positions="learned",
            max_length=settings.number("n_positions"),
            shared_embeddings="two-way" if settings.get("tie_word_embeddings", True) else "none",
            scale_embeddings=False,
            attention_bias=True,
        )

    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of weight names."""
        yield entry("output_embedding.weight", "transformer.wte.weight")
        yield entry("output_positions.weight", "transformer.wpe.weight")
        for i in range(config.decoder_layers):
            yield from _layer(f"decoder.layers.{i}", f"transformer.h.{i}")
        yield from both("decoder.norm", "transformer.ln_f")
        if config.shared_embeddings == "none":
            yield entry("output_probabilities.weight", "lm_head.weight")

    def renamed(self, name: str) -> str:
        """The names of the first checkpoints lack the prefix `transformer.`."""
        return name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:
        """The second name of a shared output layer."""
        return {} if config.shared_embeddings == "none" else {"lm_head.weight": "transformer.wte.weight"}

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """Byte-level BPE; a prompt has no token before it."""
        definition = byte_level(folder, [END])
        if definition is None:
            return None
        begin, end = (folder.settings.number(f"{side}_token_id") for side in ("bos", "eos"))
        return tokenizer_model(
            "byte-level", definition, vocab_size=config.vocab_size, bos=begin, eos=end, begins_texts=False
        )

    def task(self, folder: ForeignFolder) -> TaskConfig:  # noqa: ARG002
        """Generation."""
        return TaskConfig(name="generate")

    # --- out -----------------------------------------------------------------------------------------------

    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """The content of `config.json`."""
        return {
            "model_type": self.model_type,
            "architectures": [self.classes[0]],
            "vocab_size": config.vocab_size,
            "n_embd": config.d_model,
            "n_head": config.n_heads,
            "n_inner": config.d_ff,
            "n_layer": config.decoder_layers,
            "n_positions": config.max_length,
            "resid_pdrop": config.dropout,
            "embd_pdrop": config.dropout,
            "attn_pdrop": 0.0,
            "layer_norm_epsilon": config.norm_epsilon,
            "activation_function": hugging_face_activation(config),
            "tie_word_embeddings": config.shared_embeddings != "none",
            "bos_token_id": vocabulary.bos_id,
            "eos_token_id": vocabulary.eos_id,
        }

    def files(self, vocabulary: Vocabulary, config: ModelConfig, task: TaskConfig) -> dict[str, bytes]:  # noqa: ARG002
        """The files of `GPT2Tokenizer`."""
        definition = json.loads(readable_by("GPT2Tokenizer", vocabulary).tokenizer_json)
        space = bool((definition.get("pre_tokenizer") or {}).get("add_prefix_space", False))
        return tokenizer_files("GPT2Tokenizer", vocabulary, config, add_prefix_space=space)


def _layer(ours: str, theirs: str) -> Iterator[Entry]:
    attention = f"{ours}.masked_multi_head_attention"
    for part, form in (("weight", THREE_TRANSPOSED), ("bias", THREE_IN_ONE)):
        three = tuple(f"{attention}.{w}.{part}" for w in QUERY_KEY_VALUE)
        yield Entry(three, (f"{theirs}.attn.c_attn.{part}",), form)
    yield from both(f"{attention}.w_o", f"{theirs}.attn.c_proj", TRANSPOSED)
    yield from both(f"{ours}.add_and_norm.0.norm", f"{theirs}.ln_1")
    yield from both(f"{ours}.feed_forward.widen", f"{theirs}.mlp.c_fc", TRANSPOSED)
    yield from both(f"{ours}.feed_forward.narrow", f"{theirs}.mlp.c_proj", TRANSPOSED)
    yield from both(f"{ours}.add_and_norm.1.norm", f"{theirs}.ln_2")
