"""How the C library treats the memory that tensors free.

glibc hands every large block back to the system and fetches it again, zeroed page by page, at the next step.
On a CPU that took up to a third of a training step; blocks that are kept are reused as they are.
"""

from __future__ import annotations

import ctypes
import platform

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""Numbers of `mallopt`'s settings, from glibc's malloc.h."""
LARGE = 2**31 - 1


def keep_freed_memory() -> bool:
    """Have this process keep freed memory for its next tensors; says whether it could.

    The process holds on to its peak: this is for programs that train or serve, and never done on import.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = {TRIM_THRESHOLD: LARGE, TOP_PAD: 64 * 2**20, MMAP_THRESHOLD: LARGE}
    return sum(mallopt(name, value) for name, value in settings.items()) == len(settings)
