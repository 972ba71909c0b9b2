"""How the C library treats the memory that tensors free.

glibc hands every large block back to the system and fetches it again, zeroed page by page, at the next step.
On a CPU that took up to a third of a training step; blocks that are kept are reused as they are.
"""

from __future__ import annotations

import ctypes
import platform

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, ARENA_MAX = -1, -2, -3, -8
"""Numbers of `mallopt`'s settings, from glibc's malloc.h."""
LARGE = 2**31 - 1


def keep_freed_memory() -> bool:
    """Have this process keep freed memory for its next tensors; says whether it could.

    The process holds on to its peak: this is for programs that train or serve, and never done on import.
    """
    return _set({TRIM_THRESHOLD: LARGE, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: LARGE})


def share_freed_memory() -> bool:
    """Have all threads of this process share what they free; says whether it could.

    By default each keeps a store of its own, and a server whose requests come by in ever other threads grows
    to the sum of their peaks.
    """
    return _set({ARENA_MAX: 2})


def _set(settings: dict[int, int]) -> bool:
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return sum(mallopt(name, value) for name, value in settings.items()) == len(settings)
