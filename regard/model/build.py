"""From a configuration to a model."""

from __future__ import annotations

from typing import assert_never

from regard.config import ModelConfig
from regard.model.classifier import Classifier
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer


def build(config: ModelConfig) -> Transformer | LanguageModel | Classifier:
    """A model with fresh weights, drawn from torch's generator: seed it first to repeat them."""
    match config.architecture:
        case "encoder-decoder":
            return Transformer(config)
        case "decoder":
            return LanguageModel(config)
        case "encoder":
            return Classifier(config)
        case other:
            assert_never(other)
