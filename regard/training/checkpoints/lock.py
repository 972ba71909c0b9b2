"""One process at a time in a run folder.

The lock is the kernel's, on the file `.lock` in the folder: it goes with its process, however that ends, and
the file stays. What the file says is for people.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from regard.errors import ConfigError

LOCK = ".lock"
"""Its name; a folder that holds nothing else is empty."""


@contextmanager
def locked(folder: Path, tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Have a run folder, made if need be, to oneself for as long as the block runs.

    Of several processes that train together (`torchrun`), the first holds the lock for all.

    Raises:
        ConfigError: another process has it.
    """
    if os.environ.get("RANK", "0") != "0":
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    # "a": what another process wrote must still be there to be read.
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        _lock(file, folder, tell)
        yield


def _lock(file: TextIO, folder: Path, tell: Callable[[str], None]) -> None:
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        told = f"{holder} is at work in it; wait for it to end, or choose another folder with --out"
        raise ConfigError(told, str(folder)) from None
    except (ImportError, OSError) as error:  # some network folders, and systems without flock
        tell(f"{folder}: cannot be locked ({error}); see to it that no other process trains in it")
        return
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()}\n")
    file.flush()
