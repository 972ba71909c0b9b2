"""Muon: momentum whose every update is made orthogonal, for the matrices inside the layers.

Keller Jordan and others, 2024. An update is replaced by the nearest matrix whose singular values are all
about one, by five Newton-Schulz iterations; its size is then scaled so that learning rates tuned for Adam
serve (Liu and others, 2025). Matrices of one shape go through the iterations together, as one batched
product: a model has hundreds of small ones, and a GPU would spend its time starting them one by one.

It does what `torch.optim.Muon` does, and a test holds the two together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
LIKE_ADAM = 0.2
"""Root mean square of an element of Adam's update, about."""


def orthogonal(g_BMN: Tensor) -> Tensor:
    """Each matrix with its singular values brought near one, in bfloat16."""
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
    """Where this is 1, a step changes nothing; as fused AdamW has it, so that no step waits."""

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
            # Not a number times nought is not a number: what is no number has to be replaced.
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
