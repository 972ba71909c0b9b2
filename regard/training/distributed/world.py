"""The processes that train together: a single one, or those that `torchrun` started.

Gradients are summed after the backward pass, in a few large messages. torch's DistributedDataParallel would
send them during it, but a compiled backward pass returns all its gradients at its end, so that gains nothing.
Besides, a process that runs out of memory can repeat its share in smaller parts while the others wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.host import missing_mps

T = TypeVar("T")

MESSAGE = 1 << 24
"""Approximate number of values per message: large messages use a network best."""
PATIENCE = timedelta(hours=6)
"""Timeout of processes that wait for each other: one of them may be preparing a large corpus."""


@dataclass(frozen=True, slots=True)
class World:
    """This process among those that train together."""

    device: torch.device
    rank: int = 0
    size: int = 1
    n_here: int = 1
    """Processes on this machine."""

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the sum of all processes' gradients."""
        if self.size == 1:
            return
        held: list[Tensor] = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            held.append(parameter.grad)
        for bundle in _bundles(held):
            flat = torch.cat([grad.flatten() for grad in bundle])
            dist.all_reduce(flat)
            pieces = flat.split([grad.numel() for grad in bundle])
            for grad, piece in zip(bundle, pieces, strict=True):
                grad.copy_(piece.view_as(grad))

    def gather(self, value: T) -> list[T]:
        """The values of all processes, in the order of their ranks, on every process."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Block until all processes have called this."""
        self.gather(None)


def _bundles(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    bundle: list[Tensor] = []
    for tensor in tensors:
        bundle.append(tensor)
        if sum(each.numel() for each in bundle) >= MESSAGE:
            yield bundle
            bundle = []
    if bundle:
        yield bundle


@contextmanager
def join_world(device: str = "auto") -> Iterator[World]:
    """Join the other processes that `torchrun` started, if any, for the duration of the block."""
    rank, size, local = (int(os.environ.get(name, 0)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    here = choose_device(device, local)
    if size <= 1:
        yield World(here)
        return
    if here.type == "mps":
        problem = f"mps is one device, and {size} processes need one each; start one process"
        raise ConfigError(problem, code="missing_device")
    if here.type == "cuda":
        torch.cuda.set_device(here)
    dist.init_process_group("nccl" if here.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield World(here, rank, size, int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    finally:
        dist.destroy_process_group()


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The device of that name; "auto" is an NVIDIA GPU if there is one, else the CPU.

    Raises:
        ConfigError: there is no such device here.
    """
    if name not in ("auto", "cpu", "cuda", "mps"):
        raise ConfigError(f"unknown device {name!r}: use auto, cpu, cuda or mps", code="unknown_device")
    if name == "mps":
        if problem := missing_mps():
            raise ConfigError(problem, code="missing_device")
        return torch.device("mps")
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not n_gpus):
        return torch.device("cpu")
    if local_rank >= n_gpus:
        found = f"this machine has {n_gpus} CUDA devices, and process {local_rank} needs one of its own"
        advice = "start fewer processes, or give --device cpu" if n_gpus else "give --device cpu"
        raise ConfigError(f"{found}; {advice}", code="missing_device")
    return torch.device("cuda", local_rank)
