"""What something costs: time of one core, memory kept; and where one cost comes to exceed another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import exp, log
from statistics import median
from time import process_time

import torch
from torch import Tensor, nn


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for a while: of small models more of them mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def core_seconds(work: Callable[[], object]) -> float:
    """Processor time of one core, whatever else runs: the middle one of three, after one not counted."""
    taken = []
    with one_thread():
        for _ in range(4):
            start = process_time()
            work()
            taken.append(process_time() - start)
    return median(taken[1:])


def kept_bytes(layer: nn.Module, x: Tensor) -> int:
    """What a layer keeps of this input for its backward pass, besides its weights and the input."""
    others = {tensor.untyped_storage().data_ptr() for tensor in (x, *layer.parameters())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in others:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer(x)
    assert output.requires_grad, "held until here, so that no memory was taken twice"
    return sum(kept.values())


def crossing(x: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """Where `one` comes to exceed `other` for good, by straight lines between logarithms; None if nowhere."""
    apart = [log(a / b) for a, b in zip(one, other, strict=True)]
    places = [i for i, (before, after) in enumerate(pairwise(apart)) if before <= 0 < after]
    if not places or min(apart[places[-1] + 1 :]) <= 0:
        return None
    at = places[-1]
    share = apart[at] / (apart[at] - apart[at + 1])
    return exp(log(x[at]) + share * (log(x[at + 1]) - log(x[at])))
