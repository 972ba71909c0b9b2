"""What to make of the facts: what is broken, what slows things down, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal

from regard.doctor.facts import Cuda, Facts, Library, Processor, Threads

Kind = Literal["broken", "slow"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be."""

    kind: Kind
    what: str
    remedy: str


def findings(facts: Facts) -> list[Finding]:
    """Everything that is not as it should be, what is broken first."""
    found = [
        *(finding for each in facts.libraries for finding in _library(each)),
        *_not_installed(facts),
        *_threads(facts.threads, facts.processor),
        *_cuda(facts.cuda),
        *_cache(facts),
    ]
    return sorted(found, key=lambda each: each.kind)


def _library(library: Library) -> Iterator[Finding]:
    wanted = f"'{library.name}{library.required}'"
    if library.installed is None:
        yield Finding("broken", f"{library.name} is not installed", f"pip install {wanted}")
    elif not library.fits:
        has = f"{library.name} {library.installed} is installed, and {library.required} is needed"
        yield Finding("broken", has, f"pip install --upgrade {wanted}")
    elif library.problem:
        what = f"{library.name} {library.installed} cannot be imported: {library.problem}"
        yield Finding("broken", what, f"pip install --force-reinstall {wanted}")


def _not_installed(facts: Facts) -> Iterator[Finding]:
    if not facts.libraries:
        what = "regard runs from a folder and is not installed, so nothing tells which libraries it needs"
        yield Finding("broken", what, "pip install regard, or pip install -e . in that folder")


def _threads(threads: Threads, processor: Processor) -> Iterator[Finding]:
    cores, omp = processor.cores, threads.omp or ""
    started = max(threads.ctranslate2, threads.torch or 0)
    if omp.isdecimal() and int(omp) < cores:
        what = f"OMP_NUM_THREADS={omp} keeps engines to {omp} of {cores} cores"
        yield Finding("slow", what, "unset OMP_NUM_THREADS, unless the other cores are for others")
    if processor.quota is not None and started > ceil(processor.quota):
        most = ceil(processor.quota)
        what = f"this container may keep {processor.quota:g} cores busy, and {started} threads would start"
        yield Finding("slow", what, f"set OMP_NUM_THREADS={most}, or say --threads {most}")
    elif processor.physical is not None and processor.physical < min(cores, started):
        what = (
            f"{cores} cores are hyperthreads of {processor.physical}, and two on one core wait for each other"
        )
        yield Finding("slow", what, f"see whether --threads {processor.physical} is faster")


def _cuda(cuda: Cuda) -> Iterator[Finding]:
    if cuda.driver is None or cuda.gpus:
        return
    what = f"there is an NVIDIA driver, {cuda.driver}, and torch cannot use it"
    if cuda.built_for is None:
        yield Finding(
            "slow", f"{what}: it was built for CPUs alone", "install a torch that is built for CUDA"
        )
    else:
        remedy = (
            f"look at CUDA_VISIBLE_DEVICES, and whether the driver is new enough for CUDA {cuda.built_for}"
        )
        yield Finding("slow", what, remedy)


def _cache(facts: Facts) -> Iterator[Finding]:
    if not facts.cache.writable:
        what = f"{facts.cache.folder} cannot be written, so models are converted anew each time they start"
        yield Finding("slow", what, "set REGARD_CACHE to a folder that can be written")
