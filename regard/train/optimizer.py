"""Adam, as in the paper (5.3), with decoupled weight decay for those who ask for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Fused AdamW; weight decay on matrices only, since shrinking a gain or a bias means nothing."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, betas=(config.adam_beta1, config.adam_beta2), eps=config.adam_epsilon, fused=True
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers of each parameter, as `parameter.moment`."""
    return {
        f"{name}.{moment}": value
        for name, parameter in model.named_parameters()
        for moment, value in optimizer.state.get(parameter, {}).items()
    }


def restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, saved: dict[str, Tensor]) -> None:
    """Undo `moments`: the optimizer goes on as if it had never stopped."""
    for name, parameter in model.named_parameters():
        state = {key.removeprefix(f"{name}."): key for key in saved if key.rpartition(".")[0] == name}
        optimizer.state[parameter] = {
            moment: saved[key].to(parameter.device, copy=True) for moment, key in state.items()
        }
