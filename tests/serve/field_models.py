"""Small models of named fields that know nothing yet: one that answers, one that converses."""

from pathlib import Path

import torch

import regard
from regard.config import ModelConfig, TaskConfig
from regard.text.vocabularies.subwords import Subwords, learn_subwords

SHAPE = {"d_model": 24, "n_heads": 3, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "max_length": 61}


def save_field_models(folder: Path) -> list[Path]:
    """Write `answers` and `talks` into a folder."""
    subwords = Subwords(
        learn_subwords(["who sat on the mat? the cat sat on the mat", "a dog ¶ sat"] * 20, 300)
    )
    torch.manual_seed(7)
    model = regard.Transformer(ModelConfig(vocab_size=subwords.vocab_size, **SHAPE))
    tasks = {"answers": TaskConfig(name="answer"), "talks": TaskConfig(name="converse")}
    for name, task in tasks.items():
        regard.save_bundle(folder / name, model, subwords=subwords.model, task=task)
    return [folder / name for name in tasks]
