"""The folder of a run: claimed by one configuration, used by one process at a time.

RUN/config.toml     the configuration; once the run has a checkpoint, only its limits may change
RUN/data/           the prepared data
RUN/journal.jsonl   what happened, one JSON object per line
RUN/curves.svg      the journal as a picture
RUN/probes/         attention in a few held-out sentences, at each validation
RUN/checkpoints/    the newest checkpoints
RUN/best/           the model that is kept: with the lowest validation loss, or the last (training.selection)
RUN/last/           the model of the last step; until the first validation, of the newest checkpoint
RUN/scores.json     the scores on the test set
RUN/confusion.svg   which labels a classifier confuses
RUN/pretraining/    the run folder of a classifier's pretraining
"""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from regard.config import RunConfig, read_config, to_toml
from regard.durable import LEFTOVER, make_folder, sweep, sync_folder, write_atomically
from regard.errors import ConfigError
from regard.tasks.data_folder import KEY
from regard.training.checkpoints.checkpoint import checkpoints
from regard.training.stopping import LIMITS

CONFIG, DATA, CHECKPOINTS, JOURNAL, LOCK = "config.toml", "data", "checkpoints", "journal.jsonl", ".lock"


def claim(folder: Path, config: RunConfig) -> None:
    """Reserve a folder for this run: remove what a killed process left there, and write the configuration.

    Raises:
        ConfigError: see `refuse_other`.
    """
    refuse_other(folder, config)
    make_folder(folder)
    sweep(folder)
    write_atomically(folder / CONFIG, to_toml(config))


def refuse_other(folder: Path, config: RunConfig) -> None:
    """Raise unless a folder is free or belongs to this run; nothing is written.

    Raises:
        ConfigError: it holds other files, or a run with a checkpoint and another configuration; its limits
            may differ.
    """
    file = folder / CONFIG
    if folder.exists() and not folder.is_dir():
        raise ConfigError("a file has that name; choose another folder", str(folder), code="folder_in_use")
    if not file.exists() and folder.is_dir() and not _is_free(folder):
        raise ConfigError("the folder holds other files; choose another", str(folder), code="folder_in_use")
    if has_begun(folder):
        before, now = (_flat(each) for each in (read_config(file=file), config))
        # A run of an older version has no value for a setting that is new.
        sections = tomllib.loads(file.read_text(encoding="utf-8"))
        written = [f"{section}.{name}" for section, names in sections.items() for name in names]
        limits = [f"training.{name}" for name in LIMITS]
        changed = [
            f"{name} was {before[name]} and is {now[name]}"
            for name in written
            if name not in limits and before[name] != now[name]
        ]
        if changed:
            hint = f"use the same settings, or start a new run from it: --from {folder} --out NEW"
            raise ConfigError(
                changed, f"{folder}: only the limits of a run can change; {hint}", code="settings_changed"
            )


def _is_free(folder: Path) -> bool:
    """Whether a folder holds nothing, or only data that was prepared for a run there."""
    held = {path.name for path in folder.iterdir() if not LEFTOVER.fullmatch(path.name)} - {LOCK}
    return not held or (held == {DATA} and (folder / DATA / KEY).is_file())


def has_begun(folder: Path) -> bool:
    """Whether there is a checkpoint; until then, settings and data may change."""
    return bool(checkpoints(folder / CHECKPOINTS))


def _flat(config: RunConfig) -> dict[str, object]:
    sections = asdict(config)
    return {f"{s}.{name}": value for s, settings in sections.items() for name, value in settings.items()}


@contextmanager
def locked(folder: Path, report: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Lock a run folder, created if necessary, while the block runs.

    The lock is the kernel's, on the file `.lock`: it ends with its process, and the file stays. Of several
    processes that train together, the first holds the lock for all.

    Raises:
        ConfigError: another process has the lock.
    """
    if os.environ.get("RANK", "0") != "0":
        yield
        return
    make_folder(folder)
    # "a+" keeps the name of the process that holds the lock, which the error message quotes.
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        _lock(file, folder, report)
        yield


def _lock(file: TextIO, folder: Path, report: Callable[[str], None]) -> None:
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        advice = "wait until it ends, or choose another folder with `out`"
        raise ConfigError(
            f"{holder} is using the folder; {advice}", str(folder), code="folder_locked"
        ) from None
    except (ImportError, OSError) as error:  # some network folders, and systems without flock
        report(f"{folder}: cannot be locked ({error}); make sure that no other process trains in it")
        return
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()}\n")
    file.flush()


class Journal:
    """The events of a run in an append-only file.

    A resumed run cuts it to the length that its checkpoint had, so that it reads as if the run had never
    stopped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        sync_folder(path.parent)

    def write(self, **entry: Any) -> None:
        """Append one entry."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def sync(self) -> int:
        """Wait until all entries are on disk; returns the size in bytes."""
        with self.path.open("ab") as file:
            os.fsync(file.fileno())
        return self.length()

    def length(self) -> int:
        """The size in bytes."""
        return self.path.stat().st_size

    def cut(self, length: int) -> None:
        """Truncate the file to this length."""
        if self.length() > length:
            os.truncate(self.path, length)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
