"""`regard train`: from text files to a scored model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.asked import Asked, configured, task_of, written_settings
from regard.cli.shared.options import ConfigOption, DeviceOption, PresetOption, SetOption
from regard.cli.train_fields import train_fields
from regard.cli.train_pairs import train_pairs
from regard.cli.train_tables import train_tables
from regard.cli.train_texts import train_texts
from regard.errors import ConfigError
from regard.text.languages import is_code


def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SRC TGT | TABLE | TEXT…",
            help="Two files in step: line i of one translates line i of the other. Or a table, TSV or JSONL, "
            "with --columns; - is standard input. For other tasks, texts or tables, see --task.",
        ),
    ] = None,
    *,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="translate, by default; generate, from TEXT…: a plain file is one document, and of a table "
            "each row; classify, from TABLE…: a label, a tab and a text, or JSONL; "
            "summarise, converse and answer, from JSONL whose fields task.input and task.output name.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Columns of tables, by name or, where TSV has no head, by number from 1; a.b is b in a.",
        ),
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="SRC TGT | TABLE", help="To validate with; else split off."),
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="SRC TGT | TABLE", help="To score with; else split off.")
    ] = None,
    pretrain: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TEXT…", help="Texts whose tokens a classifier guesses before it learns labels."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL | CODE",
            help="A model folder to start from, with its subwords; or the language of SRC.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="CODE", help="Language of TGT, if its name does not tell.")
    ] = None,
    both_directions: Annotated[
        bool, typer.Option("--both-directions", help="Train one model for both, SRC to TGT and TGT to SRC.")
    ] = False,
    builtin: Annotated[
        str | None, typer.Option(metavar="NAME", help="A built-in corpus instead of files: numerals.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the run, else one in runs/; the same one goes on with it."
        ),
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after so many steps.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Stop after so many times through the data.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes.")] = None,
    device: DeviceOption = "auto",
    shard: Annotated[
        bool, typer.Option("--shard", help="Share the weights among the processes of torchrun, too.")
    ] = False,
    log_to: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Tell tensorboard, wandb or mlflow, too; may be repeated."),
    ] = None,
    preset: PresetOption = None,
    file: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Train a model on texts, and score it.

    It is a translator of pairs of texts, or a model for another task. Run the same command again to go on
    with it.
    """
    name = task_of(task, file)
    start_from, source = _start_or_language(source)
    limits = {"max_steps": max_steps, "max_epochs": max_epochs, "max_minutes": max_minutes}
    ways = ["task.both_directions=true"] if both_directions else []
    settings = [*(settings or ()), *ways, *(f"training.{k}={v}" for k, v in limits.items() if v is not None)]
    config, vocab_size = configured(name, preset, file, settings, builtin)
    asked = Asked(
        files=tuple(files or ()),
        columns=columns,
        valid=tuple(valid or ()),
        test=tuple(test or ()),
        start_from=start_from,
        out=out,
        config=config,
        vocab_size=vocab_size,
        written=written_settings(file, settings),
        device=device,
        shard=shard,
        log_to=log_to or [],
    )
    only_pairs = {"--from CODE": source, "--to": target, "--both-directions": both_directions}
    if name != "translate":
        _refuse(name, only_pairs | {"--builtin": builtin})
    if name != "classify":
        _refuse(name, {"--pretrain": pretrain})
    if log_to:
        from regard.training.display.trackers import check_trackers

        check_trackers(log_to)
    if name == "translate":
        train_pairs(asked, source, target, builtin)
    elif name == "generate":
        train_texts(asked)
    elif name == "classify":
        train_tables(asked, tuple(pretrain or ()))
    else:
        train_fields(asked)


def _start_or_language(words: str | None) -> tuple[Path | None, str | None]:
    """What --from means: the folder of a model, or a language."""
    if words is None or (is_code(words) and not Path(words).is_dir()):
        return None, words
    return Path(words), None


def _refuse(task: str, given: Mapping[str, object]) -> None:
    if beside := [name for name, value in given.items() if value]:
        raise ConfigError(f"{', '.join(beside)}: not for the task {task}")
