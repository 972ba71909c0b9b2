"""How long something takes on one core, whatever else the machine is doing."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time

import torch


def core_seconds(work: Callable[[], object]) -> float:
    """Processor time of one core: the middle one of three, after one that does not count."""
    threads, taken = torch.get_num_threads(), []
    torch.set_num_threads(1)  # those that wait for each other would be counted too
    try:
        for _ in range(4):
            start = process_time()
            work()
            taken.append(process_time() - start)
    finally:
        torch.set_num_threads(threads)
    return median(taken[1:])
