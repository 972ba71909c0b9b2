"""Pegasus: Marian with the norm before every sub-layer, in and out.

Models with pre-norm are exported as `PegasusForConditionalGeneration`, with the files of `MarianTokenizer`. A
Pegasus of others has a tokenizer of its own, a unigram model that the library `tokenizers` runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import ModelConfig, TaskConfig
from regard.errors import BundleError
from regard.exchange.families.bart import common_config
from regard.exchange.families.folder import DEFINITION, ForeignFolder, ForeignSettings
from regard.exchange.families.marian import SOURCE, Marian, order
from regard.model.positional_encoding import sinusoids
from regard.text.vocabularies.imported import tokenizer_model

PIECES = "spiece.model"
"""The vocabulary of a Pegasus as it was published, from which `transformers` makes `tokenizer.json`."""


class Pegasus(Marian):
    """Pegasus."""

    model_type, classes = "pegasus", ("PegasusForConditionalGeneration",)
    expressible: ClassVar[Mapping[str, Any]] = {
        **Marian.expressible,
        "norm_position": "pre",
        "shared_embeddings": "three-way",
    }

    def config(self, settings: ForeignSettings) -> ModelConfig:
        """The configuration."""
        common = common_config(settings)
        settings.only("decoder_vocab_size", common["vocab_size"])
        settings.only("share_encoder_decoder_embeddings", True)
        settings.only("normalize_before", True)
        settings.only("add_final_layer_norm", True)
        settings.only("normalize_embedding", False)
        settings.only("static_position_embeddings", True)
        return ModelConfig(**common, norm_position="pre")

    def forbidden(self, folder: ForeignFolder) -> list[int]:
        """The tokens that are never generated: those that the folder lists."""
        return folder.forbidden

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """Marian's files, which an export of regard has, or `tokenizer.json`."""
        if folder.has(SOURCE):
            return super().vocabulary(folder, config)
        if folder.has(DEFINITION):
            settings = folder.settings
            return tokenizer_model(
                "unigram",
                folder.bytes_of(DEFINITION).decode(),
                vocab_size=config.vocab_size,
                bos=settings.number("decoder_start_token_id"),
                eos=settings.number("eos_token_id"),
            )
        if folder.has(PIECES):
            problem = f"has {PIECES}, but no {DEFINITION}, which is read here"
            remedy = (
                "save the tokenizer with `transformers`: AutoTokenizer.from_pretrained(…).save_pretrained(…)"
            )
            raise BundleError(f"{problem}; {remedy}", str(folder.folder), code="missing_file")
        return None

    def task(self, folder: ForeignFolder) -> TaskConfig:
        """Translation with Marian's tokenizer; summarisation, as other Pegasus models do."""
        return super().task(folder) if folder.has(SOURCE) else TaskConfig(name="summarise")

    def theirs(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """As Marian's, and the sinusoids: without them `transformers` reports missing weights."""
        table = sinusoids(torch.arange(config.max_length), config.d_model)
        table = table.index_select(1, order(config.d_model).argsort())
        positions = {
            f"model.{stack}.embed_positions.weight": table.clone() for stack in ("encoder", "decoder")
        }
        return super().theirs(weights, config) | positions
