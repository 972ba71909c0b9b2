"""Marian: OPUS-MT models in and out (`MarianMTModel`).

Marian's sinusoids are the paper's with all sines before the cosines. The order of d_model is arbitrary: its
columns are permuted in a conversion, and the model computes the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import ModelConfig, TaskConfig
from regard.errors import BundleError
from regard.exchange.families.bart import (
    common_config,
    common_settings,
    embeddings,
    layers,
    shared_names,
    with_bias,
)
from regard.exchange.families.family import Entry, Family
from regard.exchange.families.folder import ForeignFolder, ForeignSettings
from regard.text.languages import known_code
from regard.text.vocabularies.imported import MarianVocabulary, marian_model
from regard.text.vocabularies.subwords import Subwords
from regard.text.vocabularies.vocabulary import Vocabulary

SOURCE, TARGET, NUMBERS = "source.spm", "target.spm", "vocab.json"
FORBIDDEN = -1e4
"""The output bias of a token that must never be generated; it fits half precision."""

D_MODEL = {
    r"(input|output)_embedding\.weight|output_probabilities\.weight": 1,
    r".*\.(w_q|w_k|w_v|widen)\.weight": 1,
    r".*\.(w_o|narrow)\.(weight|bias)|.*norm\.(weight|bias)": 0,
}
"""The dimension of our weights that is d_model; other weights have none."""


class Marian(Family):
    """OPUS-MT."""

    model_type, classes = "marian", ("MarianMTModel",)
    computed = re.compile(r"model\.(encoder|decoder)\.embed_positions\.weight")
    expressible: ClassVar[Mapping[str, Any]] = {
        "architecture": "encoder-decoder",
        "norm_position": "post",
        "norm_epsilon": 1e-5,
        "positions": "sinusoidal",
        "shared_embeddings": ("three-way", "two-way"),
        "embedding_norm": False,
    }

    def config(self, settings: ForeignSettings) -> ModelConfig:
        """The configuration."""
        common = common_config(settings)
        settings.only("decoder_vocab_size", common["vocab_size"])
        settings.only("normalize_before", False)
        settings.only("add_final_layer_norm", False)
        settings.only("normalize_embedding", False)
        settings.only("static_position_embeddings", True)
        shared = settings.get("share_encoder_decoder_embeddings", True)
        return ModelConfig(**common, shared_embeddings="three-way" if shared else "two-way")

    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of weight names."""
        yield from embeddings(config)
        yield from layers(config)

    def aliases(self, config: ModelConfig) -> Mapping[str, str]:
        """Second names of the embeddings."""
        return shared_names(config)

    def tidied(
        self, theirs: dict[str, Tensor], folder: ForeignFolder, config: ModelConfig
    ) -> dict[str, Tensor]:
        """The weights with a bias of the output layer."""
        return with_bias(super().tidied(theirs, folder, config), config)

    def ours(self, folder: ForeignFolder, config: ModelConfig) -> dict[str, Tensor]:
        """Our weights, d_model in our order; padding is never generated, as in `transformers`."""
        weights = _reordered(super().ours(folder, config), order(config.d_model))
        if forbidden := self.forbidden(folder):
            bias = weights["output_probabilities.bias"].clone()
            bias[forbidden] = FORBIDDEN
            weights["output_probabilities.bias"] = bias
        return weights

    def forbidden(self, folder: ForeignFolder) -> list[int]:
        """The tokens that are never generated: padding, and in a folder of ours those that it lists."""
        if _exported_subwords(folder) is not None:
            return folder.forbidden
        padding = folder.settings.get("pad_token_id")
        return [] if padding is None else [padding]

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """Two SentencePiece models, and the table of their pieces' ids."""
        if folder.tokenizer.get("separate_vocabs"):
            problem = "separate_vocabs = True is not supported: in regard inputs and outputs share ids"
            raise BundleError(problem, str(folder.folder), code="unsupported_setting")
        if not folder.has(SOURCE):
            return None
        if (subwords := _exported_subwords(folder)) is not None:
            return subwords
        numbers = folder.table(NUMBERS)
        if len(numbers) != config.vocab_size:
            sizes = f"{NUMBERS} has {len(numbers):,} pieces, the model has {config.vocab_size:,}"
            problem = f"{sizes}: they do not belong together"
            raise BundleError(problem, str(folder.folder), code="vocabulary_mismatch")
        start = folder.settings.number("decoder_start_token_id")
        return marian_model(folder.bytes_of(SOURCE), folder.bytes_of(TARGET), numbers, start)

    def task(self, folder: ForeignFolder) -> TaskConfig:
        """Translation between the languages of the tokenizer."""
        names = (folder.tokenizer.get(side) for side in ("source_lang", "target_lang"))
        source, target = (known_code(name) or name if name else None for name in names)
        return TaskConfig(source=source, target=target)

    # --- out -----------------------------------------------------------------------------------------------

    def theirs(self, weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Their weights, with d_model in their order."""
        return super().theirs(_reordered(weights, order(config.d_model).argsort()), config)

    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """The content of `config.json`. Our vocabularies have no padding; `<unk>` is used for it."""
        start = vocabulary.bos_id
        return {
            **common_settings(config),
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
        """The files of `MarianTokenizer`."""
        pieces = vocabulary.pieces(range(vocabulary.vocab_size))
        if isinstance(vocabulary, MarianVocabulary):
            source, target, padding = vocabulary.spm, vocabulary.outputs.spm, pieces[vocabulary.bos_id]
        else:
            assert isinstance(vocabulary, Subwords), "other vocabularies belong to other families"
            source = target = vocabulary.model
            padding = "<unk>"
            pieces = _their_pieces(vocabulary)
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


def _their_pieces(subwords: Subwords) -> list[str]:
    """The pieces of our vocabulary; the target language is `<2en>` in ours, and `>>en<<` in Marian's."""
    pieces = subwords.pieces(range(subwords.vocab_size))
    return [
        re.sub(r"<2([^<>]+)>", r">>\1<<", piece) if subwords.is_special(i) else piece
        for i, piece in enumerate(pieces)
    ]


def _exported_subwords(folder: ForeignFolder) -> bytes | None:
    """Our vocabulary in a folder that regard exported: one SentencePiece model with its own ids, or None."""
    if not folder.has(SOURCE) or not folder.has(TARGET):
        return None
    model = folder.bytes_of(SOURCE)
    if model != folder.bytes_of(TARGET):
        return None
    try:
        pieces = _their_pieces(Subwords(model))
    except BundleError:
        return None
    return model if folder.table(NUMBERS) == {piece: i for i, piece in enumerate(pieces)} else None


def order(d_model: int) -> Tensor:
    """The index of our columns in theirs: we have sine and cosine in turn, they have all sines first."""
    return torch.arange(d_model).view(2, -1).T.flatten()


def _reordered(weights: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """The weights with d_model permuted."""
    axes = {name: axis for name in weights for kind, axis in D_MODEL.items() if re.fullmatch(kind, name)}
    return {
        name: weight.index_select(axes[name], order) if name in axes else weight
        for name, weight in weights.items()
    }
