"""Models that do not fit on one device: every process keeps a part of each weight (FSDP2).

A layer's weights are put together for the time that it computes, and its gradients are summed and cut up as
they come. The optimizer and averages work on the parts; files hold whole weights, whoever wrote them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from regard.model.assembly import Assembly
    from regard.training.distributed.world import World


def shard(objective: nn.Module, model: Assembly, world: World) -> None:
    """Cut the weights up among the processes: layer by layer, and what belongs to no layer together."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    for name, stack in model.named_children():
        if name in ("encoder", "decoder"):
            for layer in stack.get_submodule("layers").children():
                fully_shard(layer, mesh=mesh)
    fully_shard(objective, mesh=mesh)


def cut_up_again(objective: nn.Module) -> None:
    """Put the outer weights back into parts; without a backward pass, torch leaves them whole."""
    if hasattr(objective, "reshard"):
        objective.reshard()  # type: ignore[operator]


def is_sharded(tensor: Tensor) -> bool:
    """Whether this process has only a part of it."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, on every process; all of them must ask."""
    tensor = tensor.detach()
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def like(saved: Tensor, weight: Tensor) -> Tensor:
    """A copy of something saved, on the device of the weight it belongs to, and cut up as that is."""
    if not is_sharded(weight) or is_sharded(saved) or saved.shape != weight.shape:
        return saved.to(weight.device, copy=True)
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = weight.device_mesh, weight.placements  # type: ignore[attr-defined]
    # Every process has all of it: nothing is sent, so it does not matter in which order they ask.
    return distribute_tensor(saved.to(weight.device), mesh, placements, src_data_rank=None)


def put(weight: Tensor, saved: Tensor) -> None:
    """Overwrite a weight with something saved."""
    with torch.no_grad():
        weight.copy_(like(saved, weight))
