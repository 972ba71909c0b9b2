"""`regard train --task classify TABLE…`: a classifier from labelled texts."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from regard.cli.asked import Asked, shaped_like
from regard.cli.corpora import columns_of
from regard.cli.training import carried_out, joined, say
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.training.classification import ClassifierRun


def train_tables(asked: Asked, pretrain: tuple[Path, ...]) -> None:
    """Train a classifier, and score it."""
    from regard.data.reading import refuse_shared_files
    from regard.data.reading.labelled import labelled_corpus, unlabelled_corpus
    from regard.training.tables import TableSource

    if not asked.files:
        raise ConfigError("give a table or several, label<TAB>text: regard train --task classify TABLE…")
    columns = columns_of(asked.columns)
    if columns and len(columns) != 2:
        raise ConfigError(f"--columns {asked.columns} are not two columns: the label's, and the text's")
    start = asked.start()
    config = shaped_like(asked, start)
    made = {name: labelled_corpus(*files, columns=columns) for name, files in asked.sets.items()}
    refuse_shared_files(made)
    run = asked.run
    source = TableSource(
        train=made["training"],
        valid=made.get("validation"),
        test=made.get("the test"),
        separator=config.task.label_separator,
        plain=unlabelled_corpus(*pretrain, columns=columns) if pretrain else None,
        **asked.wanted(config, start),
    )
    with joined(run, config, asked.device) as world:
        from regard.training.classification import ClassifierRun

        task = ClassifierRun(run, config, lambda: source, world, start=start, sharded=asked.shard, tell=say)
        carried_out(task, asked.log_to, partial(_conclude, run))


def _conclude(run: Path, task: ClassifierRun) -> None:
    typer.echo(str(task.test()))
    typer.echo(f"what is taken for what is drawn in {run / 'confusion.svg'}")
    typer.echo(f"the model is in {run / 'best'}. Next:")
    typer.echo(f"  regard classify --model {shlex.quote(str(run))} {shlex.quote(task.example())}")
