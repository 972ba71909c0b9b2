"""OPUS-MT models, and our own as such: `MarianMTModel`, or a Pegasus where the norm comes first.

Marian's sinusoids are the paper's with all sines before the cosines. The order of d_model is free, so its
columns are put into the other order on the way, and the model is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.config import ModelConfig, TaskConfig
from regard.errors import BundleError
from regard.exchange.families.encoder_decoder_names import (
    described,
    embeddings,
    layers,
    shape,
    shared_names,
    with_bias,
)
from regard.exchange.families.family import Family, one_width, only_these
from regard.exchange.families.naming import Entry
from regard.exchange.huggingface.folder import ACTIVATIONS, ForeignFolder, Settings
from regard.model.positional_encoding import sinusoids
from regard.text.languages import known_code
from regard.text.vocabularies.imported import MarianVocabulary, marian_model
from regard.text.vocabularies.subwords import Subwords
from regard.text.vocabularies.vocabulary import Vocabulary

SOURCE, TARGET, NUMBERS = "source.spm", "target.spm", "vocab.json"
FORBIDDEN = -1e4
"""The bias of a token that is never to be written, fit for half precision."""

D_MODEL = {
    r"(input|output)_embedding\.weight|output_probabilities\.weight": 1,
    r".*\.(w_q|w_k|w_v|widen)\.weight": 1,
    r".*\.(w_o|narrow)\.(weight|bias)|.*norm\.(weight|bias)": 0,
}
"""Which dimension of our weights is d_model; of others none is."""


class Marian(Family):
    """OPUS-MT."""

    model_type, classes = "marian", ("MarianMTModel",)
    computed = re.compile(r"model\.(encoder|decoder)\.embed_positions\.weight")
    norm_position = "post"

    def config(self, settings: Settings) -> ModelConfig:
        """The paper's model, with biases, and often with Swish."""
        common = shape(settings)
        settings.only("decoder_vocab_size", common["vocab_size"])
        settings.only("normalize_before", False)
        settings.only("add_final_layer_norm", False)
        settings.only("normalize_embedding", False)
        settings.only("static_position_embeddings", True)
        shared = settings.get("share_encoder_decoder_embeddings", True)
        return ModelConfig(**common, shared_embeddings="three-way" if shared else "two-way")

    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of names."""
        yield from embeddings(config)
        yield from layers(config)

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:
        """Of the embeddings."""
        return shared_names(config)

    def tidied(
        self, theirs: dict[str, Tensor], folder: ForeignFolder, config: ModelConfig
    ) -> dict[str, Tensor]:
        """With a bias of the output layer, even where it is zero."""
        return with_bias(super().tidied(theirs, folder, config), config)

    def ours(self, folder: ForeignFolder, config: ModelConfig) -> dict[str, Tensor]:
        """Our weights: d_model in our order; padding is forbidden, as searches of `transformers` do."""
        weights = _reordered(super().ours(folder, config), _order(config.d_model))
        if (padding := folder.settings.get("pad_token_id")) is not None:
            bias = weights["output_probabilities.bias"].clone()
            bias[padding] = FORBIDDEN
            weights["output_probabilities.bias"] = bias
        return weights

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """Two models of SentencePiece, and the table that numbers their pieces."""
        if folder.tokenizer.get("separate_vocabs"):
            raise BundleError("separate_vocabs = True is not supported: inputs and outputs share ids here")
        if not folder.has(SOURCE):
            return None
        numbers = folder.table(NUMBERS)
        if len(numbers) != config.vocab_size:
            sizes = f"{NUMBERS} numbers {len(numbers):,} pieces, and the model has {config.vocab_size:,}"
            raise BundleError(f"{sizes}: they do not belong together", str(folder.folder))
        start = folder.settings.number("decoder_start_token_id")
        return marian_model(folder.bytes_of(SOURCE), folder.bytes_of(TARGET), numbers, start)

    def task(self, folder: ForeignFolder) -> TaskConfig:
        """Translation, between the languages that the tokenizer names."""
        named = (folder.tokenizer.get(side) for side in ("source_lang", "target_lang"))
        source, target = (known_code(name) or name if name else None for name in named)
        return TaskConfig(source=source, target=target)

    # --- out -----------------------------------------------------------------------------------------------

    def inexpressible(self, config: ModelConfig) -> list[str]:
        """Everything that is not as in the paper, but for the activation, biases, and what is shared."""
        return [
            *only_these(
                config,
                architecture="encoder-decoder",
                norm_position=self.norm_position,
                norm="layer",
                norm_epsilon=1e-5,
                feed_forward=tuple(dict.fromkeys(ACTIVATIONS.values())),
                positions="sinusoidal",
                similarity="scaled-dot",
                shared_embeddings=("three-way", "two-way"),
                embedding_norm=False,
            ),
            *one_width(config),
        ]

    def theirs(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Their weights, d_model in their order."""
        return super().theirs(_reordered(weights, _order(config.d_model).argsort()), config)

    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """The content of `config.json`. We have no padding, but `<unk>`, which no text gives, will do."""
        start = vocabulary.bos_id
        return {
            **described(config),
            "model_type": self.model_type,
            "architectures": [self.classes[0]],
            "decoder_vocab_size": config.vocab_size,
            "share_encoder_decoder_embeddings": config.shared_embeddings == "three-way",
            "decoder_start_token_id": start,
            "bos_token_id": start,
            "eos_token_id": vocabulary.eos_id,
            "pad_token_id": start if isinstance(vocabulary, MarianVocabulary) else 0,
            "forced_eos_token_id": None,
        }

    def files(self, vocabulary: Vocabulary, config: ModelConfig, task: TaskConfig) -> dict[str, bytes]:
        """What `MarianTokenizer` reads."""
        pieces = vocabulary.pieces(range(vocabulary.vocab_size))
        if isinstance(vocabulary, MarianVocabulary):
            source, target, padding = vocabulary.spm, vocabulary.outputs.spm, pieces[vocabulary.bos_id]
        else:
            assert isinstance(vocabulary, Subwords), "other vocabularies belong to other families"
            source = target = vocabulary.model
            padding = "<unk>"
            # Asking for a language is `<2en>` here and `>>en<<` there.
            pieces = [re.sub(r"<2([^<>]+)>", r">>\1<<", piece) for piece in pieces]
        tokenizer = {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": task.source,
            "target_lang": task.target,
            "unk_token": "<unk>",
            "eos_token": "</s>",
            "pad_token": padding,
            "model_max_length": config.max_length,
            "separate_vocabs": False,
        }
        numbers = {piece: i for i, piece in enumerate(pieces)}
        return {
            SOURCE: source,
            TARGET: target,
            NUMBERS: json.dumps(numbers, ensure_ascii=False).encode(),
            "tokenizer_config.json": json.dumps(tokenizer, indent=2).encode(),
        }


class Pegasus(Marian):
    """Marian with the norm before each sub-layer, which is how Hugging Face has Pegasus. Only out."""

    model_type, classes = "pegasus", ("PegasusForConditionalGeneration",)
    norm_position = "pre"

    def inexpressible(self, config: ModelConfig) -> list[str]:
        """As Marian; and everything is shared."""
        return [*super().inexpressible(config), *only_these(config, shared_embeddings="three-way")]

    def theirs(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """As Marian; and the sinusoids, which whoever loads a Pegasus is else told are missing."""
        table = sinusoids(torch.arange(config.max_length), config.d_model)
        table = table.index_select(1, _order(config.d_model).argsort())
        positions = {
            f"model.{stack}.embed_positions.weight": table.clone() for stack in ("encoder", "decoder")
        }
        return super().theirs(weights, config) | positions


def _order(d_model: int) -> Tensor:
    """Where each of our columns is among theirs: sine and cosine in turn, where theirs are apart."""
    return torch.arange(d_model).view(2, -1).T.flatten()


def _reordered(weights: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """The weights with d_model in another order."""
    axes = {name: axis for name in weights for kind, axis in D_MODEL.items() if re.fullmatch(kind, name)}
    return {
        name: weight.index_select(axes[name], order) if name in axes else weight
        for name, weight in weights.items()
    }
