"""Sharding of models that do not fit on one device: every process keeps a part of each weight (FSDP2).

A layer's weights are gathered while it computes, and its gradients are summed and scattered. The optimizer
and the averages work on the parts; files hold whole weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from regard.model.assembly import Assembly
    from regard.training.distributed.world import World


def shard(objective: nn.Module, model: Assembly, world: World) -> None:
    """Shard the weights among the processes: layer by layer, and all other weights together."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    for name, stack in model.named_children():
        if name in ("encoder", "decoder"):
            for layer in stack.get_submodule("layers").children():
                fully_shard(layer, mesh=mesh)
    fully_shard(objective, mesh=mesh)


def cut_up_again(objective: nn.Module) -> None:
    """Shard the weights outside the layers again; without a backward pass, torch leaves them whole."""
    if hasattr(objective, "reshard"):
        objective.reshard()  # type: ignore[operator]


def is_sharded(tensor: Tensor) -> bool:
    """Whether this process has only a part of the tensor."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor, on every process; all processes must call this."""
    tensor = tensor.detach()
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def like(saved: Tensor, weight: Tensor) -> Tensor:
    """A copy of a saved tensor, on the device of its weight and sharded in the same way."""
    if not is_sharded(weight) or is_sharded(saved) or saved.shape != weight.shape:
        return saved.to(weight.device, copy=True)
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = weight.device_mesh, weight.placements  # type: ignore[attr-defined]
    # Every process has the whole tensor: nothing is sent, so the order of calls does not matter.
    return distribute_tensor(saved.to(weight.device), mesh, placements, src_data_rank=None)


def put(weight: Tensor, saved: Tensor) -> None:
    """Overwrite a weight with a saved tensor."""
    with torch.no_grad():
        weight.copy_(like(saved, weight))
