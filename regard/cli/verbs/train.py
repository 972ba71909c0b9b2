"""`regard train`: from files to a scored model."""

import os
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared.command import is_model
from regard.cli.shared.data_files import parse_columns
from regard.cli.shared.options import ConfigOption, DeviceOption, PresetOption, SetOption
from regard.errors import ConfigError
from regard.text.languages import known_code

DIVERGED = 2
INTERRUPTED = 130
"""Exit status of an interrupted run: a command after `&&` must not start."""


def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SRC TGT | TABLE | TEXT…",
            help="Two files: line i of one translates line i of the other. Or a table: TSV, CSV, JSONL, "
            "Parquet, TMX, XLIFF, the folder of a Hugging Face data set; - is standard input. For other "
            "tasks, texts or tables: see --task.",
        ),
    ] = None,
    *,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="translate (default); generate, from TEXT…: a plain file is one document, as is each row "
            "of a table; classify, from TABLE…: label, tab, text, or columns of these names; summarise, "
            "converse and answer, from tables whose fields task.input and task.output name.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Columns of tables, by name, or by number from 1 in TSV and CSV without a header; a.b is b "
            "in a. Default: those named after the languages, or label and text.",
        ),
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="SRC TGT | TABLE", help="To validate with. Default: split off."),
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="SRC TGT | TABLE", help="To score with. Default: split off.")
    ] = None,
    pretrain: Annotated[
        list[Path] | None,
        typer.Option(metavar="TEXT…", help="Texts without labels, on which a classifier is pretrained."),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option("--from", metavar="MODEL", help="A model to start from, with its subwords."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of SRC, if its name does not say it.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of TGT, if its name does not say it.")
    ] = None,
    both_directions: Annotated[
        bool, typer.Option("--both-directions", help="Train one model for both directions.")
    ] = False,
    builtin: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A built-in corpus instead of files: numerals; rooms, to summarise, answer or converse.",
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad", help="Leave out and count rows that cannot be read. Default: refuse their file."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the run. Default: one in runs/. An existing run is resumed.",
        ),
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Stop after this many passes over the data.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Stop after this many minutes.")] = None,
    device: DeviceOption = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="CPU threads of each process. Default: one per core; in a resumed run, as before."
        ),
    ] = None,
    shard: Annotated[
        bool, typer.Option("--shard", help="Divide the weights among the processes of torchrun.")
    ] = False,
    log_to: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also log to tensorboard, wandb or mlflow; may be repeated."),
    ] = None,
    preset: PresetOption = None,
    file: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Train a model, and score it.

    By default a translator, from pairs of texts. Run the same command again to resume; the
    limits of steps, epochs and minutes may change.
    """
    from regard.training.run import train as run_training
    from regard.training.stopping import DivergedError

    if start_from is not None:
        _check_is_no_language(start_from)
    limits = {"max_steps": max_steps, "max_epochs": max_epochs, "max_minutes": max_minutes}
    directions = ["task.both_directions=true"] if both_directions else []
    limited = [f"training.{name}={value}" for name, value in limits.items() if value is not None]
    try:
        run = run_training(
            *(files or ()),
            task=task,
            out=out,
            valid=valid or (),
            test=test or (),
            pretrain=pretrain or (),
            columns=parse_columns(columns),
            source=source,
            target=target,
            builtin=builtin,
            skip_bad=skip_bad,
            start_from=start_from,
            preset=preset,
            config=file,
            settings=[*(settings or ()), *directions, *limited],
            device=device,
            threads=threads,
            shard=shard,
            trackers=log_to or (),
            display=True,
        )
    except DivergedError:
        if os.environ.get("RANK", "0") == "0":  # all processes diverge, and one reports it
            raise
        raise typer.Exit(DIVERGED) from None
    if run.interrupted:
        raise typer.Exit(INTERRUPTED)
    if run.result is not None:
        typer.echo(run.result.text)
        typer.echo(f"the model is in {run.folder / 'best'}. Next:")
        for command in run.task.next_commands(run.folder, run.result.example):
            typer.echo(f"  {command}")


def _check_is_no_language(model: Path) -> None:
    """Check that the model to start from is not the code of a language.

    Raises:
        ConfigError: it is, and no model has that name.
    """
    if known_code(str(model)) and not is_model(str(model)):
        raise ConfigError(
            f"--from {model}: names no model to start from; --source {model} gives the language of SRC",
            code="missing_model",
        )
