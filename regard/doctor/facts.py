"""Facts about an installation and its machine, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from regard.host import Gpu


@dataclass(frozen=True, slots=True)
class Library:
    """A required library."""

    name: str
    required: str
    """The accepted versions, such as >=2.11; empty if all are."""
    installed: str | None
    """Its version; None if it is missing."""
    fits: bool
    problem: str | None = None
    """Why it cannot be imported; None if it can, or was not tried."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Optional libraries: `pip install 'regard[NAME]'`."""

    name: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Processor:
    """The CPU, as this process may use it."""

    name: str
    cores: int
    """Logical cores that this process may run on."""
    physical: int | None
    """Physical cores among them, hyperthreads not counted; None if unknown."""
    quota: float | None
    """Cores that a container may keep busy (cgroups); None without a limit."""
    memory: int | None
    """Bytes of memory of the machine or of its container; None if unknown."""
    bf16: str | None
    """The instruction set with fast bf16 products; None if there is none."""


@dataclass(frozen=True, slots=True)
class Threads:
    """The numbers of threads that engines would start."""

    omp: str | None
    """The value of OMP_NUM_THREADS."""
    ctranslate2: int
    torch: int | None


@dataclass(frozen=True, slots=True)
class Cuda:
    """CUDA, its driver, and the GPUs."""

    built_for: str | None
    """The CUDA version that torch was built for; None for a CPU build."""
    driver: str | None
    """The version of NVIDIA's driver; None if there is none."""
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine, and the number types that it supports here."""

    name: str
    computes_in: tuple[str, ...]
    """Empty if the engine cannot run."""


@dataclass(frozen=True, slots=True)
class ConversionCache:
    """The cache of converted models."""

    folder: str
    writable: bool
    damaged: tuple[str, ...] = ()
    """Conversions whose content has changed; found by a deep examination."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts that `regard doctor` reports."""

    regard: str
    python: str
    system: str
    libraries: tuple[Library, ...]
    extras: tuple[Extra, ...]
    processor: Processor
    threads: Threads
    cuda: Cuda
    engines: tuple[EngineState, ...]
    """In the order in which `auto` tries them."""
    models: tuple[str, ...]
    """Names of the bundled models."""
    cache: ConversionCache
    damaged_models: tuple[str, ...] = ()
    """Problems of bundled models; found by a deep examination."""

    @property
    def engine(self) -> str | None:
        """The engine that `auto` uses; None if none can run."""
        return next((engine.name for engine in self.engines if engine.computes_in), None)
