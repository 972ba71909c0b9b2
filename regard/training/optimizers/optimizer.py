"""The optimizer of a run: one or several of torch's, as `training.optimizer` names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig, registries
from regard.training.distributed.sharding import like


class Optimizer:
    """Optimizers that divide the weights of a model among them."""

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        self.parts: Sequence[torch.optim.Optimizer] = registries.optimizers[config.optimizer](model, config)

    def step(self, rate: float, found_inf: Tensor | None) -> None:
        """One update; none where `found_inf` is 1, which the host need not read."""
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate
            if _skips_on_device(part):
                part.found_inf = found_inf  # type: ignore[attr-defined]
            elif found_inf is not None and bool(found_inf):
                continue
            part.step()

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for part in self.parts:
            part.zero_grad()

    def moments(self, model: nn.Module) -> dict[str, Tensor]:
        """The optimizers' state, as `weight.moment`."""
        return {
            f"{name}.{moment}": value
            for name, weight in model.named_parameters()
            for part in self.parts
            for moment, value in part.state.get(weight, {}).items()
        }

    def restore(self, model: nn.Module, saved: dict[str, Tensor]) -> None:
        """Undo `moments`: continue as if the run had not been interrupted."""
        owners = dict(self._owners())
        # Files are read in any order, and processes that share weights combine moments one by one.
        saved = dict(sorted(saved.items()))
        for name, weight in model.named_parameters():
            state = {key.removeprefix(f"{name}."): key for key in saved if key.rpartition(".")[0] == name}
            owners[weight].state[weight] = {moment: like(saved[key], weight) for moment, key in state.items()}

    def _owners(self) -> Iterator[tuple[nn.Parameter, torch.optim.Optimizer]]:
        for part in self.parts:
            for group in part.param_groups:
                yield from ((weight, part) for weight in group["params"])


def _skips_on_device(part: torch.optim.Optimizer) -> bool:
    """Whether an optimizer reads `found_inf` itself, as torch's fused ones do, so that no step waits."""
    return hasattr(part, "found_inf") or bool(part.defaults.get("fused"))
