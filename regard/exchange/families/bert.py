"""BERT: a classifier of texts, a masked language model, or a bare encoder to be trained further.

regard reads one text at a time, so only the first of BERT's two segments occurs; its vector is added to those
of the positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.exchange.families.family import (
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
    id_of,
    readable_by,
    tokenizer_files,
    wordpiece,
    words_by_id,
)
from regard.text.vocabularies.imported import tokenizer_model
from regard.text.vocabularies.vocabulary import Vocabulary

CLASSIFIER, MASKED, BARE = "BertForSequenceClassification", "BertForMaskedLM", "BertModel"
ONE_LABEL, SEVERAL_LABELS = "single_label_classification", "multi_label_classification"
"""Values of `problem_type`: a softmax over all labels, and a sigmoid per label."""
WORDS = "bert.embeddings.word_embeddings.weight"
ATTENTION = {"w_q": "self.query", "w_k": "self.key", "w_v": "self.value", "w_o": "output.dense"}
ONE_SEGMENT = Form(
    lambda theirs: [theirs[0] + theirs[1][0]], lambda ours: [ours[0], torch.zeros(2, ours[0].shape[1])]
)
"""In: positions plus the vector of the first segment. Out: positions, and segments of zeros."""


class Bert(Family):
    """BERT."""

    model_type, classes = "bert", (CLASSIFIER, MASKED, BARE)
    # A pretraining checkpoint also has a head for next sentence prediction.
    computed = re.compile(r"bert\.embeddings\.position_ids|cls\.seq_relationship\..*")
    expressible: ClassVar[Mapping[str, Any]] = {
        "norm_position": "post",
        "positions": "learned",
        "scale_embeddings": False,
        "embedding_norm": True,
        "label_head": "tanh",
    }

    def config(self, settings: ForeignSettings) -> ModelConfig:
        """The configuration."""
        settings.only("position_embedding_type", "absolute")
        settings.only("is_decoder", False)
        settings.only("add_cross_attention", False)
        kind = settings.get("architectures")[0]
        vocab_size = settings.number("vocab_size")
        if kind == CLASSIFIER:
            settings.only("problem_type", ONE_LABEL, SEVERAL_LABELS)
            if (n_labels := len(_labels(settings))) < 2:
                settings.problems.append(f"id2label has {n_labels} labels: a classifier has at least 2")
        else:
            n_labels = vocab_size if kind == MASKED else 2
        if kind == MASKED:
            settings.only("hidden_act", "gelu")
        return ModelConfig(
            architecture="encoder",
            vocab_size=vocab_size,
            n_labels=max(2, n_labels),
            d_model=settings.number("hidden_size"),
            n_heads=settings.number("num_attention_heads"),
            d_ff=settings.number("intermediate_size"),
            encoder_layers=settings.number("num_hidden_layers"),
            decoder_layers=0,
            dropout=settings.get("hidden_dropout_prob", 0.1),
            norm_epsilon=settings.get("layer_norm_eps", 1e-12),
            feed_forward=settings.activation("hidden_act"),
            positions="learned",
            max_length=settings.number("max_position_embeddings"),
            scale_embeddings=False,
            embedding_norm=True,
            attention_bias=True,
            label_head="gelu-norm" if kind == MASKED else "tanh",
        )

    def entries(self, config: ModelConfig) -> Iterator[Entry]:
        """The table of weight names."""
        positions = (
            "bert.embeddings.position_embeddings.weight",
            "bert.embeddings.token_type_embeddings.weight",
        )
        yield entry("input_embedding.weight", WORDS)
        yield Entry(("input_positions.weight",), positions, ONE_SEGMENT)
        yield from both("input_norm", "bert.embeddings.LayerNorm")
        for i in range(config.encoder_layers):
            yield from _layer(f"encoder.layers.{i}", f"bert.encoder.layer.{i}")
        if config.label_head == "tanh":
            yield from both("label_head.map", "bert.pooler.dense")
            yield from both("output_probabilities", "classifier")
        else:
            yield from both("label_head.map", "cls.predictions.transform.dense")
            yield from both("label_head.norm", "cls.predictions.transform.LayerNorm")
            yield from both("output_probabilities", "cls.predictions.decoder")

    def renamed(self, name: str) -> str:
        """Older checkpoints name gains and biases differently; a bare model lacks the prefix `bert.`."""
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        return name if name.startswith(("bert.", "cls.", "classifier.")) else f"bert.{name}"

    def tidied(
        self, theirs: dict[str, Tensor], folder: ForeignFolder, config: ModelConfig
    ) -> dict[str, Tensor]:
        """A masked language model shares its output layer; a bare model gets one of zeros."""
        theirs = super().tidied(theirs, folder, config)
        match folder.settings.get("architectures")[0]:
            case "BertForMaskedLM":
                shared = {"cls.predictions.decoder.weight": theirs[WORDS]} if WORDS in theirs else {}
                bias = theirs.pop("cls.predictions.bias", None)
                if bias is not None:
                    shared["cls.predictions.decoder.bias"] = bias
                theirs = {n: w for n, w in theirs.items() if not n.startswith("bert.pooler.")}
                return shared | theirs
            case "BertModel":
                head = {
                    "classifier.weight": torch.zeros(2, config.d_model),
                    "classifier.bias": torch.zeros(2),
                }
                return {n: w for n, w in theirs.items() if not n.startswith("cls.")} | head
        return theirs

    def vocabulary(self, folder: ForeignFolder, config: ModelConfig) -> bytes | None:
        """WordPiece; a text is between [CLS] and [SEP]."""
        definition = wordpiece(folder)
        if definition is None:
            return None
        cls, sep = (id_of(definition, token, folder) for token in ("[CLS]", "[SEP]"))
        return tokenizer_model(
            "wordpiece", definition, vocab_size=config.vocab_size, bos=cls, eos=sep, cls=cls, closing=(sep,)
        )

    def decoding(self, folder: ForeignFolder) -> DecodingConfig:  # noqa: ARG002
        """The default: a classifier does not search."""
        return DecodingConfig()

    def task(self, folder: ForeignFolder) -> TaskConfig:
        """Classification, with one label or several per text."""
        several = folder.settings.get("problem_type") == SEVERAL_LABELS
        return TaskConfig(
            name="classify", label_separator=_separator(_labels(folder.settings)) if several else None
        )

    def labels(self, folder: ForeignFolder, config: ModelConfig) -> Sequence[str]:
        """The labels of a classifier; of a masked language model, the words of its vocabulary."""
        match folder.settings.get("architectures")[0]:
            case "BertForSequenceClassification":
                return _labels(folder.settings)
            case "BertForMaskedLM" if (definition := wordpiece(folder)) is not None:
                return words_by_id(definition, config.vocab_size)
        return ()

    # --- out -----------------------------------------------------------------------------------------------

    def settings(self, config: ModelConfig, vocabulary: Vocabulary, labels: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002
        """The content of `config.json`."""
        return {
            "model_type": self.model_type,
            "architectures": [self.classes[0]],
            "vocab_size": config.vocab_size,
            "hidden_size": config.d_model,
            "num_attention_heads": config.n_heads,
            "intermediate_size": config.d_ff,
            "num_hidden_layers": config.encoder_layers,
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": 0.0,
            "layer_norm_eps": config.norm_epsilon,
            "hidden_act": hugging_face_activation(config),
            "max_position_embeddings": config.max_length,
            "type_vocab_size": 2,
            "id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)},
        }

    def files(self, vocabulary: Vocabulary, config: ModelConfig, task: TaskConfig) -> dict[str, bytes]:  # noqa: ARG002
        """The files of `BertTokenizer`."""
        definition = json.loads(readable_by("BertTokenizer", vocabulary).tokenizer_json)
        normaliser = definition.get("normalizer") or {}
        return tokenizer_files(
            "BertTokenizer",
            vocabulary,
            config,
            do_lower_case=normaliser.get("lowercase", True),
            strip_accents=normaliser.get("strip_accents"),
            tokenize_chinese_chars=normaliser.get("handle_chinese_chars", True),
        )


def _layer(ours: str, theirs: str) -> Iterator[Entry]:
    for w, name in ATTENTION.items():
        yield from both(f"{ours}.multi_head_attention.{w}", f"{theirs}.attention.{name}")
    yield from both(f"{ours}.add_and_norm.0.norm", f"{theirs}.attention.output.LayerNorm")
    yield from both(f"{ours}.feed_forward.widen", f"{theirs}.intermediate.dense")
    yield from both(f"{ours}.feed_forward.narrow", f"{theirs}.output.dense")
    yield from both(f"{ours}.add_and_norm.1.norm", f"{theirs}.output.LayerNorm")


def _labels(settings: ForeignSettings) -> list[str]:
    names: Mapping[str, str] = settings.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return [names[i] for i in sorted(names, key=int)]


def _separator(labels: Sequence[str]) -> str:
    """A separator that no label contains; Hugging Face has none."""
    return next(bars for bars in map("|".__mul__, count(1)) if not any(bars in label for label in labels))
