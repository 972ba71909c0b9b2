"""What can be told of an installation and its machine, as values; nothing here looks at either."""

from __future__ import annotations

from dataclasses import dataclass

from regard.host import Gpu


@dataclass(frozen=True, slots=True)
class Library:
    """A library that is always needed."""

    name: str
    required: str
    """The versions that will do, like >=2.11; empty where any will."""
    installed: str | None
    """Its version; None where it is missing."""
    fits: bool
    problem: str | None = None
    """Why it cannot be imported, where that was tried and failed."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Libraries that only some need: `pip install 'regard[NAME]'`."""

    name: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Processor:
    """The CPU, as far as this process may use it."""

    name: str
    cores: int
    """Logical cores that the system lets this process run on."""
    physical: int | None
    """How many of them are cores of their own and not hyperthreads; None where nothing tells."""
    quota: float | None
    """How many of them a container may keep busy (cgroups); None where it may all."""
    memory: int | None
    """Bytes that this process may use, of the machine or of its container."""
    bf16: str | None
    """The instructions that make products in bf16 fast; None where there are none."""


@dataclass(frozen=True, slots=True)
class Threads:
    """How many of them would be started."""

    omp: str | None
    """What OMP_NUM_THREADS says."""
    ctranslate2: int
    torch: int | None


@dataclass(frozen=True, slots=True)
class Cuda:
    """What stands between torch and a GPU."""

    built_for: str | None
    """The CUDA that torch was built for; None where it was built for CPUs alone."""
    driver: str | None
    """The version of NVIDIA's driver; None where there is none."""
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine, and in which types of numbers it can compute here."""

    name: str
    computes_in: tuple[str, ...]
    """Nothing where it cannot run."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Where conversions of models are kept."""

    folder: str
    writable: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it."""

    regard: str
    python: str
    system: str
    libraries: tuple[Library, ...]
    extras: tuple[Extra, ...]
    processor: Processor
    threads: Threads
    cuda: Cuda
    engines: tuple[EngineState, ...]
    """The one that `auto` asks first comes first."""
    models: tuple[str, ...]
    """Those that come with the package, by name."""
    cache: Cache

    @property
    def engine(self) -> str | None:
        """The engine that `auto` takes; None where none can run."""
        return next((each.name for each in self.engines if each.computes_in), None)
