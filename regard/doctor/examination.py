"""Examine this machine and this installation. Imports torch, to find out whether it works."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from regard import bundled
from regard.bundle.manifest import intact_files, read_manifest
from regard.doctor.facts import ConversionCache, Cuda, EngineState, Extra, Facts, Library, Processor, Threads
from regard.engine.loading import ORDER
from regard.exchange.ctranslate2.cache import cache_folder, damaged_conversions
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
"""Without one of these, torch computes bf16 products in float32, which is slower."""


def examine(*, deep: bool = False) -> Facts:
    """The facts about this machine; `deep` reads bundled models and cached conversions as a whole."""
    wanted, names = declared()
    # An engine has the name of its library, which has compiled parts and may be installed but broken.
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
        cache=_cache(cache_folder(), deep=deep),
        damaged_models=tuple(_damaged_models()) if deep else (),
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


def _cache(folder: Path, *, deep: bool) -> ConversionCache:
    """The cache, and whether its folder can be written or created."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return ConversionCache(str(folder), writable, tuple(damaged_conversions()) if deep else ())


def _damaged_models() -> Iterator[str]:
    for name in bundled.names():
        problems: list[str] = []
        folder = bundled.folder(name)
        for _ in intact_files(folder, read_manifest(folder), problems):
            pass
        yield from (f"{name}: {problem}" for problem in problems)


Installed = Callable[[str], str | None]
NOT_FOR_USERS = ("dev",)
"""Extras for developers of `regard`, which are not listed."""


def declared() -> tuple[list[Requirement], list[str]]:
    """The requirements of `regard` and the names of its extras; empty if it is not installed."""
    try:
        extras = metadata("regard").get_all("Provides-Extra") or []
        return [Requirement(line) for line in requires("regard") or []], extras
    except PackageNotFoundError:
        return [], []


def installed_version(name: str) -> str | None:
    """The version of a library; None if it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def import_problem(name: str) -> str | None:
    """Why a library cannot be imported; None if it can."""
    try:
        import_module(name)
    except Exception as error:  # a broken library may raise anything
        return f"{type(error).__name__}: {error}"
    return None


def libraries(
    wanted: Iterable[Requirement], installed: Installed, problems: Mapping[str, str | None]
) -> list[Library]:
    """The required libraries; `problems` says why some cannot be imported."""
    return [
        Library(
            name=needed.name,
            required=str(needed.specifier),
            installed=version,
            fits=_fits(needed, version),
            problem=problems.get(needed.name),
        )
        for needed in wanted
        if _applies(needed, extra="")
        for version in [installed(needed.name)]
    ]


def extras(wanted: list[Requirement], names: Iterable[str], installed: Installed) -> list[Extra]:
    """The optional libraries by extra, with those that are missing."""
    return [
        Extra(name, tuple(str(needed.name) for needed in wanted if _lacks(needed, name, installed)))
        for name in names
        if name not in NOT_FOR_USERS
    ]


def _lacks(needed: Requirement, extra: str, installed: Installed) -> bool:
    belongs = not _applies(needed, extra="") and _applies(needed, extra=extra)
    return belongs and not _fits(needed, installed(needed.name))


def _applies(needed: Requirement, extra: str) -> bool:
    return needed.marker is None or needed.marker.evaluate({"extra": extra})


def _fits(needed: Requirement, version: str | None) -> bool:
    return version is not None and needed.specifier.contains(version, prereleases=True)
