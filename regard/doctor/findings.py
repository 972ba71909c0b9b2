"""What is broken or slow, according to the facts, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal

from regard.doctor.facts import Cuda, Facts, Library, Processor, Threads

Kind = Literal["broken", "slow"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and its remedy."""

    kind: Kind
    what: str
    remedy: str


def findings(facts: Facts) -> list[Finding]:
    """All problems; what is broken comes first."""
    problems = [
        *(finding for library in facts.libraries for finding in _library(library)),
        *_not_installed(facts),
        *_threads(facts.threads, facts.processor),
        *_cuda(facts.cuda),
        *_cache(facts),
        *_files(facts),
    ]
    return sorted(problems, key=lambda finding: finding.kind)


def _library(library: Library) -> Iterator[Finding]:
    wanted = f"'{library.name}{library.required}'"
    if library.installed is None:
        yield Finding("broken", f"{library.name} is not installed", f"pip install {wanted}")
    elif not library.fits:
        has = f"{library.name} {library.installed} is installed, but {library.required} is required"
        yield Finding("broken", has, f"pip install --upgrade {wanted}")
    elif library.problem:
        what = f"{library.name} {library.installed} cannot be imported: {library.problem}"
        yield Finding("broken", what, f"pip install --force-reinstall {wanted}")


def _not_installed(facts: Facts) -> Iterator[Finding]:
    if not facts.libraries:
        what = "regard is not installed (it runs from a folder), so its requirements are unknown"
        yield Finding("broken", what, "pip install regard, or pip install -e . in that folder")


def _threads(threads: Threads, processor: Processor) -> Iterator[Finding]:
    cores, omp = processor.cores, threads.omp or ""
    started = max(threads.ctranslate2, threads.torch or 0)
    if omp.isdecimal() and int(omp) < cores:
        what = f"OMP_NUM_THREADS={omp} limits engines to {omp} of {cores} cores"
        yield Finding("slow", what, "unset OMP_NUM_THREADS, unless other programs need the cores")
    if processor.quota is not None and started > ceil(processor.quota):
        most = ceil(processor.quota)
        what = f"this container may use {processor.quota:g} cores, but {started} threads would start"
        yield Finding("slow", what, f"set OMP_NUM_THREADS={most}, or use --threads {most}")
    elif processor.physical is not None and processor.physical < min(cores, started):
        what = (
            f"{cores} logical cores are hyperthreads of {processor.physical} physical ones, which they share"
        )
        yield Finding("slow", what, f"try whether --threads {processor.physical} is faster")


def _cuda(cuda: Cuda) -> Iterator[Finding]:
    if cuda.driver is None or cuda.gpus:
        return
    what = f"torch cannot use the NVIDIA driver {cuda.driver}"
    if cuda.built_for is None:
        yield Finding("slow", f"{what}: it is a CPU build", "install a torch that is built for CUDA")
    else:
        remedy = f"check CUDA_VISIBLE_DEVICES, and whether the driver supports CUDA {cuda.built_for}"
        yield Finding("slow", what, remedy)


def _files(facts: Facts) -> Iterator[Finding]:
    for problem in facts.damaged_models:
        yield Finding("broken", f"bundled model {problem}", "install regard again")
    for name in facts.cache.damaged:
        what = f"the cached conversion {name} has changed since it was written"
        yield Finding("broken", what, f"remove {facts.cache.folder}; conversions are made again when needed")


def _cache(facts: Facts) -> Iterator[Finding]:
    if not facts.cache.writable:
        what = f"{facts.cache.folder} cannot be written, so models are converted at every start"
        yield Finding("slow", what, "set REGARD_CACHE to a writable folder")
