"""Muon: momentum with orthogonal updates, for the matrices inside the layers.

Keller Jordan and others, 2024. Five Newton-Schulz iterations replace an update by the nearest matrix whose
singular values are all about 1; it is then scaled so that learning rates tuned for Adam fit (Liu and others,
2025). Matrices of one shape go through the iterations as one batched product: a model has hundreds of small
ones, and a GPU would spend its time launching them one by one.

The result equals that of `torch.optim.Muon`; a test compares the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import TrainingConfig, registries
from regard.training.optimizers.adamw import adamw_of

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
LIKE_ADAM = 0.2
"""Approximate root mean square of an element of Adam's update."""


@registries.optimizers.register("muon")  # Departure 10
def muon(model: nn.Module, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """Muon on the matrices of the layers, AdamW on everything else."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    matrices = _inner_matrices(model)
    inner = {id(matrix) for matrix in matrices}
    others = adamw_of([weight for weight in weights if id(weight) not in inner], config)
    return [others, *([Muon(matrices, weight_decay=config.weight_decay)] if matrices else [])]


muon.needs_whole_matrices = True  # type: ignore[attr-defined]  # so weights cannot be sharded


def _inner_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices of the layers: all except those that embed tokens or score the vocabulary."""
    named = model.named_parameters()
    return [w for name, w in named if w.dim() == 2 and name.startswith(("encoder.", "decoder."))]


def orthogonal(g_BMN: Tensor) -> Tensor:
    """Each matrix with its singular values brought close to 1, in bfloat16."""
    a, b, c = COEFFICIENTS
    x_BMN = g_BMN.bfloat16()
    tall = x_BMN.shape[1] > x_BMN.shape[2]
    x_BMN = x_BMN.transpose(1, 2) if tall else x_BMN
    x_BMN = x_BMN / x_BMN.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram_BMM = x_BMN @ x_BMN.transpose(1, 2)
        x_BMN = torch.baddbmm(
            x_BMN, torch.baddbmm(gram_BMM, gram_BMM, gram_BMM, beta=b, alpha=c), x_BMN, beta=a
        )
    return x_BMN.transpose(1, 2) if tall else x_BMN


class Muon(torch.optim.Optimizer):
    """Orthogonal updates with Nesterov momentum, and decoupled weight decay."""

    found_inf: Tensor | None = None
    """Where this is 1, a step changes nothing; the same interface as fused AdamW, so that no step waits."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """One update of every matrix."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    alike[parameter.shape].append(parameter)
            for shape, matrices in alike.items():
                self._step_together(matrices, group, LIKE_ADAM * max(shape) ** 0.5)

    def _step_together(self, matrices: list[nn.Parameter], group: dict[str, Any], size: float) -> None:
        grads = [matrix.grad for matrix in matrices if matrix.grad is not None]
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        buffers = [self.state[matrix]["momentum"] for matrix in matrices]
        if self.found_inf is not None:
            # NaN times 0 is NaN, so NaN gradients must be replaced.
            grads = [
                torch.where(self.found_inf > 0, buffer, grad)
                for grad, buffer in zip(grads, buffers, strict=True)
            ]
        torch._foreach_lerp_(buffers, grads, 1 - group["momentum"])
        ahead = torch._foreach_lerp(grads, buffers, group["momentum"])
        update_BMN = orthogonal(torch.stack(ahead))
        rate: float | Tensor = group["lr"]
        if self.found_inf is not None:
            rate = group["lr"] * (1.0 - self.found_inf)
        weights: list[Tensor] = list(matrices)
        torch._foreach_mul_(weights, 1 - rate * group["weight_decay"])
        updates: list[Tensor] = list((update_BMN.to(weights[0].dtype) * (-rate * size)).unbind())
        torch._foreach_add_(weights, updates)
