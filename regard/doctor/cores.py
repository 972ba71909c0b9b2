"""Cores and memory that this process may really use: the machine's, less what a container withholds.

Each function reads a few files of Linux under a root that a test can choose; where they are missing, as on
other systems, it says that it does not know.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

ROOT = Path("/")
UNLIMITED = 1 << 60
"""What cgroups of the first version write for no limit is a little less than 2^63."""


def allowed_cores() -> frozenset[int] | None:
    """The numbers of the logical cores that the system lets this process run on."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def physical_cores(allowed: frozenset[int], root: Path = ROOT) -> int | None:
    """How many cores of their own these are: hyperthreads of one core count once."""
    siblings = set()
    for core in allowed:
        text = _read(root / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        if text is None:
            return None
        siblings.add(text)
    return len(siblings)


def processor_name(root: Path = ROOT) -> str | None:
    """What the processor calls itself."""
    found = re.search(r"^model name\s*:\s*(.+)$", _read(root / "proc/cpuinfo") or "", re.MULTILINE)
    return found and found[1]


def cgroup_quota(root: Path = ROOT) -> float | None:
    """How many cores a container may keep busy: the least that any group above this process says."""
    found = []
    for folder in _groups(root, "cpu"):
        if (text := _read(folder / "cpu.max")) and not text.startswith("max"):
            quota, period = text.split()
            found.append(int(quota) / int(period))
        old = _read(folder / "cpu.cfs_quota_us")
        if old is not None and int(old) > 0:
            found.append(int(old) / int(_read(folder / "cpu.cfs_period_us") or 100_000))
    return min(found, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes that this process may use: the machine's, or what a container has."""
    found = [
        int(text)
        for folder in _groups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        if (text := _read(folder / name)) and text.isdecimal() and int(text) < UNLIMITED
    ]
    if total := re.search(r"^MemTotal:\s*(\d+) kB", _read(root / "proc/meminfo") or "", re.MULTILINE):
        found.append(int(total[1]) * 1024)
    return min(found, default=None)


def _groups(root: Path, controller: str) -> list[Path]:
    """The folders of this process's group and of those above it, in either version of cgroups."""
    found = []
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controllers and controller)
        here = top / path.lstrip("/")
        # Inside of a container, the path may be that of the host, and only the top is there.
        found += [folder for folder in (here, *here.parents) if folder == top or top in folder.parents]
    return found


def _read(file: Path) -> str | None:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip()
    return None
