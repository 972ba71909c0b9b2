"""The folder of a run: whose it is, what may change in it, and what a killed process left behind.

RUN/data/           what it learns from, when that was made from files (`preparation.py`)
RUN/config.toml     the whole configuration, which may not change when the run is resumed
RUN/journal.jsonl   what happened
RUN/curves.svg      the same as a picture
RUN/confusion.svg   what a classifier takes for what
RUN/pretraining/    a run of its own, in which a classifier guessed hidden tokens first
RUN/probes/         where every head looked in a few sentences, at each validation
RUN/checkpoints/    the newest checkpoints
RUN/best/           the model folder with the lowest validation loss
RUN/last/           the model folder at the end
RUN/scores.json     what `regard train` measured on the test set, with signatures
"""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

from regard.config import RunConfig, read_config, to_toml
from regard.durable import write_atomically
from regard.errors import ConfigError
from regard.training.checkpoints.checkpoint import checkpoints
from regard.training.checkpoints.lock import LOCK

DATA, CHECKPOINTS = "data", "checkpoints"
"""Where a run keeps what was prepared for it, and what it goes on from."""
KEY = "key"
"""A file of prepared data, written last: what they were made from."""


def claim(folder: Path, config: RunConfig) -> None:
    """Make a folder this run's, before anything is written to it.

    Raises:
        ConfigError: see `refuse_other`.
    """
    refuse_other(folder, config)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "config.toml", to_toml(config))


def refuse_other(folder: Path, config: RunConfig) -> None:
    """Raise unless a folder is free for this run, or already its own; nothing is written.

    Raises:
        ConfigError: it holds something else, or a run of another configuration that has begun.
    """
    file = folder / "config.toml"
    if folder.exists() and not folder.is_dir():
        raise ConfigError("a file of that name is in the way; choose another folder", str(folder))
    if not file.exists() and folder.is_dir() and not _is_free(folder):
        raise ConfigError("the folder holds something else; choose another", str(folder))
    if has_begun(folder):
        before, now = (_flat(each) for each in (read_config(file=file), config))
        changed = [
            f"{name} was {before[name]} and is {now[name]}" for name in now if before[name] != now[name]
        ]
        if changed:
            hint = f"give it the same settings, or start another from it: --from {folder} --out NEW"
            raise ConfigError(changed, f"{folder}: a run goes on as it began; {hint}")


def _is_free(folder: Path) -> bool:
    """Whether a folder holds nothing, or nothing but data that were prepared for a run there."""
    held = {path.name for path in folder.iterdir()} - {LOCK}
    return not held or (held == {DATA} and (folder / DATA / KEY).is_file())


def has_begun(folder: Path) -> bool:
    """Whether there is a checkpoint to go on from; until then, settings and data may change."""
    return bool(checkpoints(folder / CHECKPOINTS))


def sweep(folder: Path) -> None:
    """Clear away what a killed process left half-written; a model that it had set aside comes back."""
    for name in ("best", "last"):
        for aside in folder.glob(f".{name}.*.old"):
            if not (folder / name).exists():
                aside.rename(folder / name)
    for left in (*folder.glob(".*.old"), *folder.glob(".*.new"), *folder.glob("*/.*.new")):
        shutil.rmtree(left, ignore_errors=True)


def _flat(config: RunConfig) -> dict[str, object]:
    sections = asdict(config)
    return {f"{s}.{name}": value for s, settings in sections.items() for name, value in settings.items()}
