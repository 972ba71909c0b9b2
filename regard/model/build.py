"""From a configuration to a model."""

from __future__ import annotations

from regard.config import ModelConfig
from regard.model.classifier import Classifier
from regard.model.language_model import LanguageModel
from regard.model.transformer import Transformer

ASSEMBLIES: dict[str, type[Transformer | LanguageModel | Classifier]] = {
    "encoder-decoder": Transformer,
    "decoder": LanguageModel,
    "encoder": Classifier,
}


def build(config: ModelConfig) -> Transformer | LanguageModel | Classifier:
    """A model with fresh weights, drawn from torch's generator: seed it first to repeat them."""
    return ASSEMBLIES[config.architecture](config)
