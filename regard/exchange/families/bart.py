"""BART: encoder and decoder, with learned positions and a norm on the embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.config import ModelConfig, TaskConfig
from regard.exchange.families.encoder_decoder_names import (
    SIDES,
    described,
    embeddings,
    layers,
    shape,
    shared_names,
    with_bias,
)
from regard.exchange.families.family import Family, one_width, only_these
from regard.exchange.families.naming import Entry, Form, entry
from regard.exchange.huggingface.folder import ACTIVATIONS, ForeignFolder, Settings
from regard.exchange.huggingface.tokenizer_files import DEFINITION, byte_level, read_by
from regard.text.vocabularies.imported import tokenizer_model
from regard.text.vocabularies.vocabulary import Vocabulary

AFTER_TWO = Form(
    lambda theirs: [theirs[0][2:]], lambda ours: [torch.cat([torch.zeros(2, ours[0].shape[1]), ours[0]])]
)
"""Positions are counted from 2: the first two were once for padding."""


class Bart(Family):
    """BART."""

    model_type, classes = "bart", ("BartForConditionalGeneration", "BartModel")

    def config(self, settings: Settings) -> ModelConfig:
        """Both stacks."""
        settings.only("normalize_before", False)
        settings.only("normalize_embedding", True)
        settings.only("add_final_layer_norm", False)
        settings.only("static_position_embeddings", False)
        return ModelConfig(**shape(settings), positions="learned", embedding_norm=True)

    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of names."""
        yield from embeddings(config)
        for stack, side in SIDES.items():
            yield entry(f"{side}_positions.weight", f"model.{stack}.embed_positions.weight", AFTER_TWO)
        yield from layers(config)

    def renamed(self, name: str) -> str:
        """A bare model, whose output layer is its embedding, has no first name."""
        return name if name.startswith(("model.", "lm_head.", "final_logits")) else f"model.{name}"

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:
        """Of the embeddings."""
        return shared_names(config)

    def tidied(
        self, theirs: dict[str, Tensor], folder: ForeignFolder, config: ModelConfig
    ) -> dict[str, Tensor]:
        """With a bias of the output layer, even where it is zero."""
        return with_bias(super().tidied(theirs, folder, config), config)

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """Byte-level BPE; every text, read or written, begins with `<s>`, and outputs start from `</s>`."""
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
        """To make one text of another: most are summarisers, and no text is cut into sentences."""
        return TaskConfig(name="summarise")

    # --- out -----------------------------------------------------------------------------------------------

    def inexpressible(self, config: ModelConfig) -> list[str]:
        """Everything that is not as BART has it."""
        return [
            *only_these(
                config,
                norm_position="post",
                norm="layer",
                norm_epsilon=1e-5,
                feed_forward=tuple(dict.fromkeys(ACTIVATIONS.values())),
                positions="learned",
                similarity="scaled-dot",
                shared_embeddings="three-way",
            ),
            *one_width(config),
        ]

    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """The content of `config.json`."""
        read = read_by("BartTokenizer", vocabulary)
        return {
            **described(config),
            "model_type": self.model_type,
            "architectures": [self.classes[0]],
            "decoder_start_token_id": vocabulary.bos_id,
            "bos_token_id": read.opening[0] if read.opening else vocabulary.bos_id,
            "eos_token_id": vocabulary.eos_id,
            "pad_token_id": read.id_of("<pad>"),
            "forced_eos_token_id": None,
        }

    def files(self, vocabulary: Vocabulary, config: ModelConfig, task: TaskConfig) -> dict[str, bytes]:  # noqa: ARG002
        """What `BartTokenizer` reads."""
        told = {"tokenizer_class": "BartTokenizer", "model_max_length": config.max_length}
        definition = read_by("BartTokenizer", vocabulary).tokenizer_json.encode()
        return {DEFINITION: definition, "tokenizer_config.json": json.dumps(told, indent=2).encode()}
