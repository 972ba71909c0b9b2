"""Small translators of random weights: their outputs mean nothing, and are theirs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from regard.bundle import save_bundle
from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.data.numerals import sample
from regard.model.build import build
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.model.small import stirred

PAIRS = [(pair.chinese, pair.english) for pair in sample("test", 23, 1)]
SOURCES, REFERENCES = [zh for zh, _ in PAIRS], [en for _, en in PAIRS]


def subword_model() -> bytes:
    return learn_subwords([text for pair in sample("train", 200, 1) for text in pair[:2]], 600, threads=1)


def translator(folder: Path, subwords: bytes | None, seed: int = 1, **changes: Any) -> Path:
    """A model folder, from Chinese into English by its own account."""
    torch.manual_seed(seed)
    vocab_size = Subwords(subwords).vocab_size if subwords else 600
    sizes: dict[str, Any] = {
        "vocab_size": vocab_size, "d_model": 24, "n_heads": 3, "d_ff": 37, "encoder_layers": 2,
        "decoder_layers": 1, "max_length": 61,
    }  # fmt: skip
    model: Any = stirred(build(ModelConfig(**sizes | changes)))
    decoding = DecodingConfig(beam_size=3, length_penalty=0.4, extra_length=2)
    task = TaskConfig(source="zh", target="en")
    return save_bundle(folder, model, subwords=subwords, decoding=decoding, task=task)
