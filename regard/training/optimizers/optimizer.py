"""Adam, as in the paper (5.3), with decoupled weight decay for those who ask for it; or Muon and Adam."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig
from regard.training.distributed.sharding import like
from regard.training.optimizers.muon import Muon


class Optimizer:
    """What changes the weights: one optimizer of torch's, or two that share the weights between them."""

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        matrices = _inner_matrices(model) if config.optimizer == "muon" else []  # Departure 10
        inner = {id(matrix) for matrix in matrices}
        self.each: Sequence[torch.optim.AdamW | Muon] = [
            _adamw([weight for weight in weights if id(weight) not in inner], config),
            *([Muon(matrices, weight_decay=config.weight_decay)] if matrices else []),
        ]

    def step(self, rate: float, found_inf: Tensor | None) -> None:
        """One update; none where `found_inf` is 1, which the host need not know yet."""
        for each in self.each:
            for group in each.param_groups:
                group["lr"] = rate
            each.found_inf = found_inf  # type: ignore[union-attr]
            each.step()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for each in self.each:
            each.zero_grad()

    def moments(self, model: nn.Module) -> dict[str, Tensor]:
        """What is remembered of each weight, as `weight.moment`."""
        return {
            f"{name}.{moment}": value
            for name, weight in model.named_parameters()
            for each in self.each
            for moment, value in each.state.get(weight, {}).items()
        }

    def restore(self, model: nn.Module, saved: dict[str, Tensor]) -> None:
        """Undo `moments`: go on as if nothing had happened in between."""
        owners = dict(self._owners())
        # Files are read in any order, and processes that share weights put moments together one by one.
        saved = dict(sorted(saved.items()))
        for name, weight in model.named_parameters():
            state = {key.removeprefix(f"{name}."): key for key in saved if key.rpartition(".")[0] == name}
            owners[weight].state[weight] = {moment: like(saved[key], weight) for moment, key in state.items()}

    def _owners(self) -> Iterator[tuple[nn.Parameter, torch.optim.Optimizer]]:
        for each in self.each:
            for group in each.param_groups:
                yield from ((weight, each) for weight in group["params"])


def _adamw(weights: Sequence[nn.Parameter], config: TrainingConfig) -> torch.optim.AdamW:
    """Fused AdamW; weight decay on matrices only, since shrinking a gain or a bias means nothing."""
    groups = [  # Departure 11, where there is any decay
        {"params": [w for w in weights if w.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, betas=(config.adam_beta1, config.adam_beta2), eps=config.adam_epsilon, fused=True
    )


def _inner_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices of the layers: all but those that look tokens up or score the vocabulary."""
    named = model.named_parameters()
    return [w for name, w in named if w.dim() == 2 and name.startswith(("encoder.", "decoder."))]
