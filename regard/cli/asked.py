"""What a command line of `regard train` asks for, whatever the task: files, settings, a place."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.training import say
from regard.config import RunConfig, read_config
from regard.config.checking import did_you_mean, shown
from regard.config.registries import tasks
from regard.config.task import TEMPLATES
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.training.starting import Start

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
    written: tuple[str, ...]
    """The settings that were written down, by name, such as model.d_model."""
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
        from regard.training.starting import Start

        return Start.of(self.start_from)


def task_of(named: str | None, file: Path | None) -> str:
    """The task that is named, or that a file of settings names.

    Raises:
        ConfigError: there is no such task.
    """
    section = table(file).get("task", {})
    name = named or (section.get("name") if isinstance(section, dict) else None) or "translate"
    if name not in tasks:
        known = f"there are {', '.join(tasks.names)}"
        raise ConfigError(f"there is no task {name!r}; {known}{did_you_mean(name, tasks.names)}")
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
    shape = [name.removeprefix("model.") for name in asked.written if name.startswith("model.")]
    unused = [name for name in shape if getattr(config.model, name) != getattr(model, name)]
    told = ", ".join(f"model.{name}={shown(getattr(config.model, name))}" for name in unused)
    say(f"starting from {asked.start_from}, with its shape and subwords" + (f", not {told}" if told else ""))
    return replace(config, model=model)


def taught_like(asked: Asked, config: RunConfig, start: Start | None) -> RunConfig:
    """The configuration with the language tag and the search of a start that did the same; this is told.

    What was written down stays as it was written.
    """
    if start is None or not start.does(config.task):
        return config
    task, own = config.task, start.bundle.decoding
    if start.bundle.task.has_tags and not task.has_tags and "task.language_tag" not in asked.written:
        task = replace(task, language_tag=True)
        say(f"it knows this direction by the tag <2{task.target}>, which stays before each input")
    names = [each.name for each in fields(own) if f"decoding.{each.name}" not in asked.written]
    taken = {
        name: getattr(own, name) for name in names if getattr(own, name) != getattr(config.decoding, name)
    }
    if taken:
        say(f"it searches with {', '.join(f'decoding.{k}={shown(v)}' for k, v in taken.items())}, as before")
    return replace(config, task=task, decoding=replace(config.decoding, **taken))


def written_settings(file: Path | None, settings: list[str]) -> tuple[str, ...]:
    """The settings that a file or the command line names, each once."""
    sections = {name: section for name, section in table(file).items() if isinstance(section, dict)}
    in_file = (f"{section}.{name}" for section, names in sections.items() for name in names)
    typed = (setting.partition("=")[0].strip() for setting in settings)
    return tuple(dict.fromkeys([*in_file, *typed]))


def table(file: Path | None) -> dict[str, Any]:
    """What a configuration file holds; nothing where it cannot be read, which `read_config` reports."""
    try:
        return {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
