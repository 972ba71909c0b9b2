"""What the last bits of a training step depend on, and how a resumed run keeps it.

On a CPU, torch divides sums among its threads, so that another number of threads rounds differently; so do
another processor and another version of torch. A checkpoint stores all of them. A resumed run uses the stored
number of threads, even on fewer cores, and reports what it cannot keep.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from regard.config.checking import counted
from regard.host import processor_name, torch_threads, usable_cores
from regard.training.distributed.world import World

ROUNDING = "results may differ by rounding from those of a run that was not interrupted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Arithmetic:
    """What the last bits of a step depend on beside weights, data and settings."""

    device: str
    """`cpu`, or the name of the GPU."""
    processes: int
    threads: int
    """Threads of torch in each process: sums are divided among them."""
    torch: str
    """Its version."""
    processor: str
    """The processor's name and the instructions that torch uses."""

    @staticmethod
    def here(world: World, threads: int) -> Arithmetic:
        """The arithmetic of this process."""
        on_gpu = world.device.type == "cuda"
        instructions = torch.backends.cpu.get_cpu_capability()
        return Arithmetic(
            device=torch.cuda.get_device_name(world.device) if on_gpu else world.device.type,
            processes=world.size,
            threads=threads,
            torch=torch.__version__,
            processor=f"{processor_name() or platform.machine()}, {instructions}",
        )

    def notes(self, before: Mapping[str, Any], *, usual_threads: int) -> list[str]:
        """What to report about a run that continues from a checkpoint.

        Args:
            before: the arithmetic in the checkpoint; empty in one of an older version.
            usual_threads: the number of threads of a new run.
        """
        if not before:
            return [f"the checkpoint does not say how many threads computed it: {ROUNDING}"]
        # A GPU does the arithmetic alone, and its results are reproducible to rounding only.
        names = ["device", "processes", "torch", *(["threads", "processor"] if self.device == "cpu" else [])]
        changes = [
            f"{name} was {before[name]} and is {getattr(self, name)}"
            for name in names
            if name in before and before[name] != getattr(self, name)
        ]
        notes = [f"{'; '.join(changes)}: {ROUNDING}"] if changes else []
        if self.device == "cpu" and self.threads == before.get("threads") != usual_threads:
            cores = usable_cores()
            more = f", more than the {counted(cores, 'core')} here" if self.threads > cores else ""
            notes.append(
                f"computing with {counted(self.threads, 'thread')} as before{more}, because another number "
                "gives other last bits; threads=N (--threads N) sets one"
            )
        return notes


def usual_threads() -> int:
    """Threads of a new run: torch's own number, within the cores that this process may use."""
    return torch_threads()


@contextmanager
def using_threads(count: int) -> Iterator[int]:
    """Let torch use this many threads in the block, more than there are cores if need be; yields how many.

    They are fewer where torch was built without OpenMP, or where `OMP_THREAD_LIMIT` is lower.
    """
    before, limit = torch.get_num_threads(), os.environ.get("OMP_THREAD_LIMIT", "")
    if count != before:
        torch.set_num_threads(count)
    try:
        now = torch.get_num_threads()
        yield min(now, int(limit)) if limit.isdecimal() and int(limit) else now
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
