"""Models small enough for loops, every size unlike every other, so that no axis can be taken for another.

Sinusoids need an even d_model and rotations an even d_k, so these two are twice a prime; all else is prime.
"""

from typing import Any

import numpy as np
import torch

from regard.config import ModelConfig
from regard.model.build import build
from regard.packing import Packed, pack

D, H, K, U, F, V = 2 * 7, 3, 2 * 5, 11, 13, 17
N_LABELS = 5
INPUT_LENGTHS = (7, 2, 13)
OUTPUT_LENGTHS = (3, 11, 5)
"""Together they fall into several padded groups, and neither side is the longer in all pairs."""


def small_config(**changes: Any) -> ModelConfig:
    """The paper's settings at these sizes, without dropout, with `changes`."""
    settings: dict[str, Any] = {
        "vocab_size": V, "d_model": D, "n_heads": H, "d_k": K, "d_v": U, "d_ff": F, "encoder_layers": 2,
        "decoder_layers": 3, "max_length": 19, "dropout": 0.0,
    }  # fmt: skip
    if changes.get("architecture") == "encoder":
        settings["n_labels"] = N_LABELS
    return ModelConfig(**settings | changes)


def small_model(config: ModelConfig | None = None, dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    """A model in evaluation, weights and what flows in `dtype`, no bias at 0 and no gain at 1."""
    model = stirred(build(small_config(**changes) if config is None else config)).to(dtype).eval()
    model.compute_dtype = dtype
    return model


def stirred(module: torch.nn.Module) -> Any:
    """The module with noise on every weight: a bias that is 0 or a gain that is 1 would hide mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return module


def weights_of(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Every weight by name, as the loops read them."""
    return {name: weight.detach().double().numpy() for name, weight in module.state_dict().items()}


def random_ids(lengths: tuple[int, ...], vocab_size: int = V) -> list[list[int]]:
    """Sequences of these lengths."""
    return [torch.randint(vocab_size, (length,)).tolist() for length in lengths]


def random_pack(lengths: tuple[int, ...]) -> Packed:
    """The same, packed."""
    return pack(random_ids(lengths))
