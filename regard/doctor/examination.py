"""Looking at this machine and this installation. Imports torch, as it wants to know whether it works."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from regard import bundled
from regard.doctor.facts import Cache, Cuda, EngineState, Facts, Processor, Threads
from regard.doctor.libraries import declared, extras, import_problem, installed_version, libraries
from regard.engine.loading import ORDER
from regard.exchange.ctranslate2.cache import cache_folder
from regard.host import (
    core_quota,
    default_threads,
    driver_version,
    gpus,
    logical_cores,
    physical_cores,
    processor_name,
    total_memory,
)
from regard.version import __version__

FAST_BF16 = ("amx_bf16", "avx512_bf16")
"""Without one of these, torch makes products in bf16 out of products in float32, and slower."""


def examine() -> Facts:
    """All that there is to tell."""
    wanted, names = declared()
    # An engine goes by the name of its library, which has compiled parts, and may be there and not work.
    problems = {str(name): import_problem(name) for name in ORDER}
    broken = {name for name, problem in problems.items() if problem}
    cuda = Cuda(None, driver_version()) if "torch" in broken else _cuda()
    return Facts(
        regard=__version__,
        python=f"{platform.python_version()} ({sys.executable})",
        system=f"{platform.system()} {platform.machine()}",
        libraries=tuple(libraries(wanted, installed_version, problems)),
        extras=tuple(extras(wanted, names, installed_version)),
        processor=_processor(torch_works="torch" not in broken),
        threads=_threads(broken),
        cuda=cuda,
        engines=tuple(
            EngineState(name, () if name in broken else _computes_in(name, cuda)) for name in ORDER
        ),
        models=tuple(bundled.names()),
        cache=_cache(cache_folder()),
    )


def _processor(*, torch_works: bool) -> Processor:
    allowed = logical_cores()
    return Processor(
        name=processor_name() or platform.processor() or platform.machine(),
        cores=len(allowed),
        physical=physical_cores(allowed),
        quota=core_quota(),
        memory=total_memory(),
        bf16=_fast_bf16() if torch_works else None,
    )


def _fast_bf16() -> str | None:
    import torch

    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return next((name for name in FAST_BF16 if capabilities.get(name)), None)


def _threads(broken: set[str]) -> Threads:
    replicas = 0 if "ctranslate2" in broken else default_threads()
    return Threads(
        os.environ.get("OMP_NUM_THREADS"), replicas, None if "torch" in broken else _torch_threads()
    )


def _torch_threads() -> int:
    import torch

    return torch.get_num_threads()


def _cuda() -> Cuda:
    import torch

    return Cuda(torch.version.cuda, driver_version(), gpus())


def _computes_in(engine: str, cuda: Cuda) -> tuple[str, ...]:
    if engine == "torch":
        return ("float32", "bfloat16 on the GPU") if cuda.gpus else ("float32", "bfloat16")
    from ctranslate2 import get_supported_compute_types

    return tuple(sorted(get_supported_compute_types("cpu")))


def _cache(folder: Path) -> Cache:
    """Whether a folder can be written, or made where it is not there yet."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return Cache(str(folder), there.is_dir() and os.access(there, os.W_OK | os.X_OK))
