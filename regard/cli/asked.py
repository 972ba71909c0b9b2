"""What a command line of `regard train` asks for, whatever the task: files, settings, a place."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.training import say
from regard.config import RunConfig, read_config
from regard.config.checking import did_you_mean, shown
from regard.config.task import TASKS, TEMPLATES
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.train.starting import Start

BUILTIN = "numerals"
"""The corpus that is built in, and the preset for it."""
USUAL = {"generate": "generator", "classify": "classifier"}
"""The preset that a task has where none is named; the others have `small`."""
WHOLE = ["data.max_ratio=none", "data.max_characters=1000000", "data.cut_inputs=true"]
"""A summary is as short as it likes, and a long document is read as far as it goes."""
SHAPES = {
    "generate": ["model.architecture=decoder"],
    "classify": ["model.architecture=encoder", "model.n_labels=2"],
    **dict.fromkeys(TEMPLATES, WHOLE),
}
"""What a task asks of the model and its data; how many labels there are, the data tells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What was asked for, read and checked; no file of data is opened yet."""

    files: tuple[Path, ...]
    columns: str | None
    valid: tuple[Path, ...]
    test: tuple[Path, ...]
    start_from: Path | None
    """The model folder to start from."""
    out: Path | None
    config: RunConfig
    vocab_size: int | None
    """None: left to the data."""
    shape: tuple[str, ...]
    """The settings of the model that were written down, by their bare names."""
    device: str
    shard: bool
    log_to: list[str]

    @property
    def sets(self) -> dict[str, tuple[Path, ...]]:
        """The files of every set that was named."""
        named = {"training": self.files, "validation": self.valid, "the test": self.test}
        return {name: files for name, files in named.items() if files}

    @property
    def run(self) -> Path:
        """The folder of the run; named after the first file, unless told."""
        return self.out or Path("runs") / self.files[0].name.partition(".")[0]

    def wanted(self, config: RunConfig, start: Start | None) -> dict[str, Any]:
        """How texts become token stores: the fields of `Wanted`."""
        return {
            "vocab_size": self.vocab_size,
            "subwords": None if start is None else start.subwords,
            "max_tokens": config.model.max_length,
            "seed": config.training.seed,
            "data": config.data,
        }

    def start(self) -> Start | None:
        """The model to start from."""
        if self.start_from is None:
            return None
        from regard.train.starting import Start

        return Start.of(self.start_from)


def task_of(named: str | None, file: Path | None) -> str:
    """The task that is named, or that a file of settings names.

    Raises:
        ConfigError: there is no such task.
    """
    section = table(file).get("task", {})
    name = named or (section.get("name") if isinstance(section, dict) else None) or "translate"
    if name not in TASKS:
        known = f"there are {', '.join(TASKS)}"
        raise ConfigError(f"there is no task {name!r}; {known}{did_you_mean(name, TASKS)}")
    return str(name)


def configured(
    task: str, preset: str | None, file: Path | None, settings: list[str], builtin: str | None = None
) -> tuple[RunConfig, int | None]:
    """The configuration, and the size of the vocabulary, unless that is left to the data."""
    settings = [setting.strip() for setting in settings]
    usual = None if "preset" in table(file) else BUILTIN if builtin else USUAL.get(task, "small")
    shape = [] if task == "translate" else [f"task.name={task}", *SHAPES.get(task, [])]
    config = read_config(preset=preset or usual, file=file, settings=[*shape, *settings])
    sized = any(setting.startswith("model.vocab_size") for setting in settings)
    sized = sized or "vocab_size" in table(file).get("model", {})
    return config, config.model.vocab_size if builtin or sized else None


def shaped_like(asked: Asked, start: Start | None) -> RunConfig:
    """The configuration with the shape of the model that is started from; what is not taken is told."""
    config = asked.config
    if start is None:
        return config
    model = start.shape(config.model)
    unused = [name for name in asked.shape if getattr(config.model, name) != getattr(model, name)]
    told = ", ".join(f"model.{name}={shown(getattr(config.model, name))}" for name in unused)
    say(f"starting from {asked.start_from}, with its shape and subwords" + (f", not {told}" if told else ""))
    return replace(config, model=model)


def written_shape(file: Path | None, settings: list[str]) -> tuple[str, ...]:
    """The settings of the model that a file or the command line names, by their bare names, each once."""
    section = table(file).get("model", {})
    typed = (name for setting in settings if (name := setting.strip().partition("=")[0]).startswith("model."))
    return tuple(dict.fromkeys([*section, *(name.strip().removeprefix("model.") for name in typed)]))


def table(file: Path | None) -> dict[str, Any]:
    """What a configuration file holds; nothing where it cannot be read, which `read_config` reports."""
    try:
        return {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
