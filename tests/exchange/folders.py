"""Small model folders of every kind that CTranslate2 can run, and what torch makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.bundle import load_bundle, save_bundle
from regard.config import ModelConfig
from regard.decode.constraints import Constraints
from regard.decode.walk import likeliest, walk
from regard.model.build import build
from regard.packing import pack
from tests.model.small import stirred

BOS, EOS, V = 1, 2, 97
SIZES: dict[str, Any] = {
    "vocab_size": V, "d_model": 24, "n_heads": 3, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 1,
    "max_length": 61,
}  # fmt: skip


def small_folder(folder: Path, *, seed: int = 1, dtype: torch.dtype = torch.float32, **changes: Any) -> Path:
    """A model folder of random weights, no bias at 0 and no gain at 1."""
    torch.manual_seed(seed)
    model: Any = stirred(build(ModelConfig(**SIZES | changes))).to(dtype)
    return save_bundle(folder / "model", model, overwrite=True)


def sequences(count: int, longest: int, seed: int = 1, vocab_size: int = V) -> list[tuple[int, ...]]:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, count)
    return [tuple(random.integers(3, vocab_size, length).tolist()) for length in lengths]


@torch.no_grad()
def torch_greedy(folder: Path, sources: list[tuple[int, ...]], limits: list[int]) -> Any:
    model: Any = load_bundle(folder).model
    memory = model.encode(pack([[*ids, EOS] for ids in sources]))
    cache = model.start(memory, capacity=max(limits) + 1)
    return walk(model.step, cache, Constraints(bos=BOS, eos=EOS, limits=tuple(limits)), likeliest, 0.0)


@torch.no_grad()
def torch_log_probs(folder: Path, sources: Any, targets: Any) -> list[torch.Tensor]:
    """Of every token after each token of each target: (length + 1, V)."""
    model: Any = load_bundle(folder).model
    outputs = pack([[BOS, *ids] for ids in targets])
    logits = model(pack([[*ids, EOS] for ids in sources]), outputs)
    return list(logits.log_softmax(-1).split([len(ids) + 1 for ids in targets]))


def torch_scores(folder: Path, sources: Any, targets: Any) -> list[list[float]]:
    """Of each token of each target, and of the one that ends it."""
    found = torch_log_probs(folder, sources, targets)
    return [
        [float(row[i]) for row, i in zip(rows, [*ids, EOS], strict=True)]
        for rows, ids in zip(found, targets, strict=True)
    ]
