"""Small models of one stack that know nothing yet: one that generates, one that classifies."""

from collections.abc import Sequence
from pathlib import Path

import torch

import regard
from regard.config import ModelConfig
from regard.text.vocabularies.subwords import Subwords, learn_subwords

SHAPE = {"d_model": 24, "n_heads": 3, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "max_length": 31}


def save_single_stack_models(folder: Path, labels: Sequence[str]) -> Path:
    """Write `writer` and `labeller` into a folder."""
    subwords = Subwords(learn_subwords(["the cat sat on the mat", "a dog sat"] * 20, 300))
    torch.manual_seed(7)
    writer = ModelConfig(architecture="decoder", vocab_size=subwords.vocab_size, **SHAPE)
    labeller = ModelConfig(
        architecture="encoder", vocab_size=subwords.vocab_size, n_labels=len(labels), **SHAPE
    )
    regard.save_bundle(folder / "writer", regard.LanguageModel(writer), subwords=subwords.model)
    regard.save_bundle(
        folder / "labeller", regard.Classifier(labeller), subwords=subwords.model, labels=labels
    )
    return folder
