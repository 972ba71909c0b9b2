"""The arguments of `regard.train`, as a task, a configuration and files; nothing is trained here."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config import RunConfig, read_config, registries, written_task
from regard.config.checking import counted, did_you_mean, shown
from regard.data.reading.dataset_folder import dataset_files
from regard.errors import ConfigError, CorpusError
from regard.tasks.task import DataFiles, Job, Reporter, Task, rows_file, task_named
from regard.text.files.tables import Column
from regard.training.checkpoints.run_folder import CONFIG
from regard.training.starting import Start

Data = Path | str | Sequence[Any]
"""A file, several files, or rows."""


def chosen_task(
    task: str | type[Task] | Task | None, file: Path | None, settings: Sequence[str] = ()
) -> Task:
    """The task that is given, or that single settings or a file name.

    Raises:
        ConfigError: it is not registered, or single settings name another one.
    """
    if task is None:
        task = written_task(file, settings) or "translate"
    chosen, named = _task(task), written_task(settings=settings)
    if named not in (None, chosen.name):
        raise ConfigError(
            f"the task is {chosen.name}, and task.name={named} is another one; give one of them",
            code="conflicting_tasks",
        )
    return chosen


def _task(task: str | type[Task] | Task) -> Task:
    if isinstance(task, str):
        if task not in registries.tasks:
            names = registries.tasks.names
            near = did_you_mean(task, names)
            known = f"known are {', '.join(names)}{near}"
            raise ConfigError(f"the task {task!r} is not registered; {known}", code="unknown_choice")
        return task_named(task)()
    kind = task if isinstance(task, type) else type(task)
    if not any(task_named(name) is kind for name in registries.tasks.names):
        raise ConfigError(
            f"{kind.__name__} is not registered; add @registries.tasks.register('a-name')",
            code="unknown_choice",
        )
    return task() if isinstance(task, type) else task


SIZED_LIKE: dict[str, str] = {
    "encoder-decoder": "small",
    "decoder": "generator",
    "encoder": "classifier",
}
"""The preset of each architecture that gives what a plan leaves open."""


def is_planned(task: Task, preset: str | None, file: Path | None, builtin: str | None) -> bool:
    """Whether sizes are chosen from the data: nobody has named a preset."""
    return not (preset or builtin or task.preset or "preset" in _table(file))


def configured(
    task: Task, preset: str | None, file: Path | None, settings: list[str], builtin: str | None
) -> dict[str, Any]:
    """The configuration, and the size of the vocabulary, unless it is left to the data."""
    in_table = _table(file).get("preset")
    usual = None if in_table is not None else builtin or task.preset or SIZED_LIKE[task.architecture]
    in_file = written_settings(file, ())
    own = [each for each in task.settings if each.partition("=")[0] not in in_file]
    own.append(f"task.name={task.name}")
    config = read_config(preset=preset or usual, file=file, settings=[*own, *settings])
    sized = any(setting.startswith("model.vocab_size") for setting in settings)
    sized = sized or "model.vocab_size" in in_file
    sized = sized or str(preset or in_table).startswith("paper-")  # whose vocabulary is the paper's
    return {"config": config, "vocab_size": config.model.vocab_size if builtin or sized else None}


def as_words(settings: Mapping[str, Any]) -> list[str]:
    """Settings of Python as those of the command line: `True` is `true`, and `None` is `none`."""
    return [
        f"{name}={str(value).lower() if value is None or isinstance(value, bool) else value}"
        for name, value in settings.items()
    ]


def as_begun(config: RunConfig, folder: Path, written: Collection[str]) -> RunConfig:
    """The configuration of a planned run that has begun: what was chosen then, and what is written now.

    Limits of passes and minutes are never chosen, so that one that is no longer written does not hold.
    """
    before, names = (
        read_config(file=folder / CONFIG),
        {*written, "training.max_epochs", "training.max_minutes"},
    )
    sections = {}
    for section in ("model", "training"):
        own = [name.partition(".")[2] for name in names if name.startswith(f"{section}.")]
        now = {name: getattr(getattr(config, section), name) for name in own}
        sections[section] = replace(getattr(before, section), **now)
    return replace(config, **sections)


def shaped_like(job: Job, start: Start, written: Sequence[str]) -> RunConfig:
    """The configuration with the shape of the model to start from; reports settings that it overrides."""
    model, own = start.shape(job.config.model), job.config.model
    names = [name.removeprefix("model.") for name in written if name.startswith("model.")]
    unused = [name for name in names if getattr(own, name) != getattr(model, name)]
    ignored = ", ".join(f"model.{name}={shown(getattr(own, name))}" for name in unused)
    job.report(
        f"starting from {start.bundle.folder}, with its shape and subwords"
        + (f"; ignored: {ignored}" if ignored else "")
    )
    return replace(job.config, model=model)


def written_settings(file: Path | None, settings: Sequence[str]) -> tuple[str, ...]:
    """The names of the settings in a file and in a list, without duplicates."""
    sections = {name: section for name, section in _table(file).items() if isinstance(section, dict)}
    in_file = (f"{section}.{name}" for section, names in sections.items() for name in names)
    single = (setting.partition("=")[0].strip() for setting in settings)
    return tuple(dict.fromkeys([*in_file, *single]))


def _table(file: Path | None) -> dict[str, Any]:
    """The contents of a configuration file; empty where it cannot be read, which `read_config` reports."""
    try:
        return {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def data_files(
    task: Task, stack: ExitStack, data: Sequence[Data], valid: Data, test: Data, columns: Sequence[Column]
) -> dict[str, Any]:
    """The files of each set; rows are written to temporary files."""
    if all(isinstance(each, Path | str) for each in data):
        sets = {"train": as_paths(data), "valid": as_paths(valid), "test": as_paths(test)}
        return {**sets, "columns": tuple(columns)}
    if len(data) != 1:
        raise ConfigError("give files, or one list of rows", code="bad_files")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="regard-rows-")))
    rows = {"train": data[0], "valid": valid, "test": test}
    names = tuple(columns) or task.columns
    files = {
        name: (rows_file(folder / f"{name}.jsonl", task, list(given), names),) if len(given) else ()
        for name, given in rows.items()
        if not isinstance(given, Path | str)
    }
    return {**files, "columns": names if "columns" in task.options else ()}


def with_dataset(files: DataFiles, report: Reporter) -> DataFiles:
    """The files of data sets instead of their folders; splits that are not named are taken from there.

    Raises:
        CorpusError: a data set is damaged, or lacks the split.
    """
    found: dict[str, tuple[Path, ...]] = {}
    folder: Path | None = None
    for name, given in files.sets.items():
        if len(given) != 1 or not given[0].is_dir() or (sets := dataset_files(given[0])) is None:
            continue
        wanted = name if name in sets or name == "train" or len(sets) > 1 else next(iter(sets))
        if wanted not in sets:
            known = ", ".join(sets)
            raise CorpusError(
                f"{given[0]}: the data set has no split for {name}, only {known}; give `{name}` another file",
                code="missing_split",
            )
        found[name] = sets[wanted]
        if name == "train":
            folder = given[0]
            found |= {
                other: sets[other] for other in ("valid", "test") if other in sets and other not in files.sets
            }
    if folder is not None:
        sizes = ", ".join(f"{name} ({counted(len(paths), 'file')})" for name, paths in found.items())
        report(f"{folder}: a data set with {sizes}")
    own = frozenset(found) - frozenset(files.sets)
    return replace(files, **found, folder=folder, found=own)  # type: ignore[arg-type]


def as_paths(data: Data) -> tuple[Path, ...]:
    """One file or several."""
    return (Path(data),) if isinstance(data, Path | str) else tuple(map(Path, data))


def refuse_builtin(task: Task, files: DataFiles) -> None:
    """Raise where a built-in corpus is named that the task does not have, or files beside one."""
    if not files.builtin or not task.builtins:
        return
    if files.builtin not in task.builtins:
        known = ", ".join(task.builtins)
        raise ConfigError(
            f"there is no built-in corpus {files.builtin!r}; known: {known}", code="bad_builtin"
        )
    if files.train:
        raise ConfigError(f"`builtin={files.builtin}` takes no files with it", code="bad_builtin")
    source, target = files.languages
    others: dict[str, object] = {"columns": files.columns, "valid": files.valid, "test": files.test}
    others |= {"source": source, "target": target}
    if given := [f"`{name}`" for name, value in others.items() if value]:
        raise ConfigError(
            f"`builtin` has its own sets and languages; leave out {', '.join(given)}", code="bad_builtin"
        )


def refuse_options(task: Task, files: DataFiles, *, both_directions: bool) -> None:
    """Raise where an option is given that the task does not have."""
    source, target = files.languages
    given: dict[str, dict[str, object]] = {
        "columns": {"columns": files.columns},
        "languages": {"source": source, "target": target, "both_directions": both_directions},
        "pretrain": {"pretrain": files.pretrain},
    }
    given["builtin"] = {} if task.builtins else {"builtin": files.builtin}
    wrong = [
        f"`{name}`"
        for option, values in given.items()
        if option not in task.options
        for name, value in values.items()
        if value
    ]
    if wrong:
        raise ConfigError(f"{', '.join(wrong)}: not for the task {task.name}", code="option_not_for_task")
