"""The machine as this process may use it: cores, memory, devices, and the C library's allocator.

Cores and memory are those of the machine, less what a container's control groups (cgroups) withhold. They are
read from Linux's files under a root that a test can choose; on other systems a function returns None, or what
Python's `os` knows. torch is imported by the functions that need it, not by this module.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROOT = Path("/")
PERIOD = 100_000
"""Default period of a quota, in microseconds."""
MOUNT = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) .*- cgroup(2?) \S+ (\S+)$", re.MULTILINE)
"""A line of mountinfo: the group that is mounted, where, the version 2 or none, and the controllers."""
NICENESS = 10
"""Of threads that step back: such a thread gets about a tenth of a core for which another one competes."""
LEAST_PRIORITY = 19
"""The largest niceness."""
UNLIMITED = 1 << 60
"""A limit above this is none: cgroups v1 write a number slightly below 2^63."""
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, ARENA_MAX = -1, -2, -3, -8
"""Parameters of `mallopt`, from glibc's malloc.h."""


# --- cores ------------------------------------------------------------------------------------------------


def logical_cores() -> frozenset[int]:
    """The numbers of the logical cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def physical_cores(logical: frozenset[int], root: Path = ROOT) -> int | None:
    """The number of physical cores behind these logical ones; None where the system does not say."""
    siblings = set()
    for core in logical:
        text = _read(root / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        if text is None:
            return None
        siblings.add(text)
    return len(siblings)


def processor_name(root: Path = ROOT) -> str | None:
    """The processor's model name."""
    match = re.search(r"^model name\s*:\s*(.+)$", _read(root / "proc/cpuinfo") or "", re.MULTILINE)
    return match and match[1]


def core_quota(root: Path = ROOT) -> float | None:
    """The cores that a container may keep busy: the lowest quota of all control groups above this process."""
    quotas = []
    for folder in _control_groups(root, "cpu"):
        if match := re.match(r"(\d+)(?:\s+(\d+))?$", _read(folder / "cpu.max") or ""):
            quotas.append(int(match[1]) / int(match[2] or PERIOD))
        v1 = _number(folder / "cpu.cfs_quota_us")
        if v1 is not None and v1 > 0:
            quotas.append(v1 / (_number(folder / "cpu.cfs_period_us") or PERIOD))
    return min(quotas, default=None)


def usable_cores(root: Path = ROOT) -> int:
    """The number of cores that this process may keep busy: by its affinity, quotas and sets of cores."""
    quota = core_quota(root)
    limits = [len(logical_cores()), *_sizes_of_core_sets(root), *([] if quota is None else [ceil(quota)])]
    return max(1, min(limits))


def _sizes_of_core_sets(root: Path) -> Iterator[int]:
    """The sizes of the sets of cores that control groups allow; a set that is empty allows all."""
    for folder in _control_groups(root, "cpuset"):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            if ranges := re.findall(r"(\d+)(?:-(\d+))?", _read(folder / name) or ""):
                yield sum(int(last or first) - int(first) + 1 for first, last in ranges)
                break


def default_threads(root: Path = ROOT) -> int:
    """The number of threads to start: `OMP_NUM_THREADS`, within the cores that this process may use."""
    n_cores, setting = usable_cores(root), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(n_cores, int(setting))) if setting.isdecimal() else n_cores


def torch_threads(root: Path = ROOT) -> int:
    """The number of threads for torch: its own, which knows no quotas, within the cores of this process."""
    import torch

    return min(torch.get_num_threads(), usable_cores(root))


def limit_torch_threads(root: Path = ROOT) -> None:
    """Let torch use no more threads than this process may use cores."""
    import torch

    if (n_threads := torch_threads(root)) < torch.get_num_threads():
        torch.set_num_threads(n_threads)


def allow_open_files(n: int) -> None:
    """Let this process open this many files, if the system allows it; often it starts with 1,024."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = n if hard == resource.RLIM_INFINITY else min(n, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def step_back() -> None:
    """Let other threads have the cores first; threads that this thread starts from now on do the same.

    Only on Linux, where every thread has a niceness of its own.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            process, thread = os.getpriority(os.PRIO_PROCESS, os.getpid()), threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, min(LEAST_PRIORITY, process + NICENESS))


# --- memory -----------------------------------------------------------------------------------------------


def total_memory(root: Path = ROOT) -> int | None:
    """Bytes of memory that this process may use, free or not; None where the system does not say."""
    limits = [limit for folder in _control_groups(root, "memory") if (limit := _memory_limit(folder))]
    if (total := _meminfo(root, "MemTotal")) is not None:
        limits.append(total)
    return min(limits, default=None)


def free_memory(device: torch.device | None = None, root: Path = ROOT) -> int | None:
    """Bytes that are free on a device, by default in main memory; None where the system does not say."""
    if device is not None and device.type == "cuda":
        return free_gpu_memory(device)
    free = _meminfo(root, "MemAvailable")
    if free is None:
        with suppress(AttributeError, OSError, ValueError):  # Windows has no sysconf
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        return None
    groups = [_free_in_group(folder) for folder in _control_groups(root, "memory")]
    return max(0, min([free, *(bytes_ for bytes_ in groups if bytes_ is not None)]))


def free_gpu_memory(device: torch.device) -> int:
    """Bytes that are free on a GPU."""
    import torch

    return torch.cuda.mem_get_info(device)[0]


def _meminfo(root: Path, field: str) -> int | None:
    match = re.search(rf"^{field}:\s*(\d+) kB", _read(root / "proc/meminfo") or "", re.MULTILINE)
    return match and int(match[1]) * 1024


def _memory_limit(group: Path) -> int | None:
    limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
    return limit if limit is not None and limit < UNLIMITED else None


def _free_in_group(group: Path) -> int | None:
    limit = _memory_limit(group)
    used = _number(group / "memory.current") or _number(group / "memory.usage_in_bytes")
    if limit is None or used is None:
        return None
    # Files that were read stay cached until a process needs the memory, so they count as free.
    statistics = _read(group / "memory.stat") or ""
    cached = re.findall(r"^(?:total_)?inactive_file (\d+)", statistics, re.MULTILINE)
    return limit - used + max(map(int, cached), default=0)


def _control_groups(root: Path, controller: str) -> list[Path]:
    """The folders of this process's control group and of those above it, in cgroups v1, v2 or both."""
    folders: dict[Path, None] = {}
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for top, mounted in _mounts(root, controllers, controller):
            # In a container the path may be that of the host, of which a part is mounted; or lie outside.
            inside = path[len(mounted) :] if f"{path}/".startswith(f"{mounted}/") else path
            here = top / ("" if ".." in inside else inside.lstrip("/"))
            folders |= dict.fromkeys(each for each in (here, *here.parents) if each.is_relative_to(top))
    return [*folders]


def _mounts(root: Path, controllers: str, controller: str) -> Iterator[tuple[Path, str]]:
    """Where a hierarchy of control groups is mounted, and which group is there; empty for the first."""
    found = [
        (root / top.lstrip("/"), mounted.rstrip("/"))
        for mounted, top, version, options in MOUNT.findall(_read(root / "proc/self/mountinfo") or "")
        if (controller in options.split(",") if controllers else version == "2")
    ]
    usual = dict.fromkeys([controller, controllers] if controllers else ["", "unified"])
    yield from found or ((root / "sys/fs/cgroup" / name, "") for name in usual)


def _number(file: Path) -> int | None:
    try:
        return int(_read(file) or "")
    except ValueError:
        return None


def _read(file: Path) -> str | None:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip()
    return None


# --- devices ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch can use."""

    name: str
    memory: int
    capability: str
    bf16: bool


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that torch can use, in its order."""
    import torch

    if not torch.cuda.is_available():
        return ()
    properties = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return tuple(
        Gpu(gpu.name, gpu.total_memory, f"{gpu.major}.{gpu.minor}", bf16=gpu.major >= 8) for gpu in properties
    )


def has_mps() -> bool:
    """Whether torch can use the GPU of a Mac (MPS, Metal Performance Shaders)."""
    import torch

    return torch.backends.mps.is_available()


def missing_mps() -> str | None:
    """Why the device `mps` cannot be used, and what to do; None if it can."""
    if has_mps():
        return None
    return "mps is the GPU of a Mac with Apple silicon, which torch does not have here; use cpu or auto"


def widest_float(device: torch.device | str) -> torch.dtype:
    """The widest floating-point type of a device: float64; on mps, which lacks it, float32."""
    import torch

    return torch.float32 if torch.device(device).type == "mps" else torch.float64


def driver_version(root: Path = ROOT) -> str | None:
    """The version of NVIDIA's kernel driver; None where there is none."""
    text = _read(root / "proc/driver/nvidia/version")
    if text is None:
        return None
    match = re.search(r"\s(\d+\.[\d.]+)\s", text)
    return match[1] if match else "unknown"


# --- the C library's allocator ----------------------------------------------------------------------------


def keep_freed_memory() -> bool:
    """Make this process keep freed memory for its next tensors; returns whether that worked.

    By default glibc returns every large block to the system and fetches it again, zeroed page by page, at the
    next step; on a CPU that took up to a third of a training step. The process then holds its peak memory, so
    only programs that train or serve do this, never an import.
    """
    large = 2**31 - 1
    return _mallopt({TRIM_THRESHOLD: large, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: large})


def share_freed_memory() -> bool:
    """Make the threads of this process share freed memory; returns whether that worked.

    By default every thread keeps its own store, and a server whose requests run in changing threads grows to
    the sum of their peaks.
    """
    return _mallopt({ARENA_MAX: 2})


def return_freed_memory() -> None:
    """Return freed memory to the system; it takes up to some hundred milliseconds."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def _mallopt(parameters: dict[int, int]) -> bool:
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return sum(mallopt(name, value) for name, value in parameters.items()) == len(parameters)
