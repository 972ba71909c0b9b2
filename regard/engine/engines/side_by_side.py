"""Batches side by side on a CPU, a core each.

Batches share nothing, so cores that each take one need not wait for each other, as they do after every
operation when they divide one between them. (CTranslate2 calls this replicas.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def cores(device: torch.device | str) -> int:
    """Batches that can run side by side: as many as torch may have threads, and one elsewhere."""
    return torch.get_num_threads() if torch.device(device).type == "cpu" else 1


def each(work: Callable[[Job], Result], jobs: Sequence[Job], device: torch.device | str) -> list[Result]:
    """What comes of the jobs, in their order. `work` must not change what another's work reads."""
    n_threads = min(cores(device), len(jobs))
    if n_threads < 2:
        return [work(job) for job in jobs]

    def without_gradients(job: Job) -> Result:
        with torch.inference_mode():  # which holds for one thread, and so must be said in each
            return work(job)

    # How many threads torch divides an operation among is a matter of each thread; but one that starts later
    # takes the number that was set last, by whomever.
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(without_gradients, jobs))
    finally:
        torch.set_num_threads(before)
