"""Adam, as in the paper (5.3), with optional decoupled weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from regard.config import TrainingConfig, registries

FUSED = ("cpu", "cuda")
"""Devices whose fused kernels read `found_inf`; those of others do not promise it."""


@registries.optimizers.register("adamw")
def adamw(model: nn.Module, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """AdamW on all weights that learn."""
    return [adamw_of([weight for weight in model.parameters() if weight.requires_grad], config)]


def adamw_of(weights: Sequence[nn.Parameter], config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW on these weights; decay on matrices only, because gains and biases need none."""
    groups = [  # Departure 11, where there is any decay
        {"params": [w for w in weights if w.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
    ]
    fused = all(weight.device.type in FUSED for weight in weights)
    return torch.optim.AdamW(
        groups, betas=(config.adam_beta1, config.adam_beta2), eps=config.adam_epsilon, fused=fused
    )
